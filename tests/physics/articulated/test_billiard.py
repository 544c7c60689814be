"""Spheres in a box against an exact event-driven simulation that shares no code: state and full Jacobian."""

import numpy as np
import pytest
import torch
from mpmath import mpf
from physics.articulated.billiard import Billiard

from physvision import State
from physvision.core import Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64
SIZE = 1.0


def walls():
    """Six planes, their z axes inwards."""
    results = []
    for axis in range(3):
        for side in (1, -1):
            pose, z, x = np.eye(4), side * np.eye(3)[axis], np.eye(3)[(axis + 1) % 3]
            pose[:3, :3] = np.stack([x, np.cross(z, x), z], 1)
            pose[axis, 3] = 0.0 if side == 1 else SIZE
            results.append(Placed(Plane(), pose=tuple(map(tuple, pose.tolist()))))
    return results


def spheres(count, seed):
    """Positions without overlap, velocities, radii and masses."""
    rng = np.random.default_rng(seed)
    radii, masses = rng.uniform(0.08, 0.16, count), rng.uniform(0.5, 2.0, count)
    while True:
        x = rng.uniform(0.2, 0.8, (count, 3))
        separation = np.linalg.norm(x[:, None] - x[None], axis=-1) - radii[:, None] - radii[None] + np.eye(count)
        if separation.min() > 0.02:
            return x, rng.normal(size=(count, 3)), radii, masses


def engine_of(radii, masses, dt, restitution):
    bodies = [
        Body(f"{k}", None, [Joint("free")], mass=m, inertia=[0.4 * m * r**2] * 3, shapes=[Placed(Sphere(r))])
        for k, (r, m) in enumerate(zip(radii, masses, strict=True))
    ]
    return tree(
        bodies, dt=dt, gravity=(0, 0, 0), static_shapes=walls(), contact=ContactSettings(restitution=restitution)
    )


def flat(state):
    """Positions, then linear velocities, of all spheres."""
    q, v = state.q.unflatten(1, (-1, 7))[..., :3], state.v.unflatten(1, (-1, 6))[..., :3]
    return torch.cat([q.flatten(1), v.flatten(1)], 1)


@pytest.mark.parametrize(("seed", "dt", "restitution"), [(0, 1e-2, 1.0), (1, 1e-3, 1.0), (2, 1e-2, 0.98)])
def test_fifty_collisions_and_their_jacobian(seed, dt, restitution):
    x, v, radii, masses = spheres(4, seed)
    # The time after which there were fifty: the exact one is run for a little longer each time.
    duration, impacts = 0.0, 0
    while impacts < 50:
        duration += 0.5
        exact = Billiard(x, v, radii, masses, SIZE, restitution)
        impacts = exact.run(mpf(round(duration / dt)) * mpf(dt))
    engine = engine_of(radii, masses, dt, restitution)
    q = torch.zeros(4, 7, dtype=DOUBLE)
    q[:, :3], q[:, 3] = torch.tensor(x), 1.0
    velocity = torch.cat([torch.tensor(v), torch.zeros(4, 3, dtype=DOUBLE)], 1)
    rows = 24
    start = State(
        q.reshape(1, -1).repeat(rows, 1).requires_grad_(), velocity.reshape(1, -1).repeat(rows, 1).requires_grad_()
    )
    path = engine.rollout(start, round(duration / dt))
    assert path.status is not None
    assert bool(path.status.converged.all())
    end = flat(path.final)
    by_q, by_v = torch.autograd.grad((end * torch.eye(rows, dtype=DOUBLE)).sum(), (start.q, start.v))
    result = flat(State(by_q, by_v)).numpy()
    expected = exact.jacobian()
    allowed = max(1e-6, 1e-14 * np.abs(expected).max())
    np.testing.assert_allclose(end[0].detach().numpy(), exact.state(), atol=allowed)
    assert np.abs(result - expected).max() < allowed * np.abs(expected).max()
