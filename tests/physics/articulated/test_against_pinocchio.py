"""Random trees against Pinocchio's aba, rnea and crba."""

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from physics.articulated.pinocchio_oracle import Oracle
from physics.articulated.trees import descriptions, random_bodies, random_state

from physvision import State
from physvision.physics.articulated import tree

PRECISION = 1e-9  # relative to the largest number, where the mass matrix is well conditioned


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(descriptions())
def test_dynamics_of_random_trees(description):
    seed, kinds, free_root = description
    bodies = random_bodies(seed, kinds, free_root)
    engine, oracle = tree(bodies), Oracle(bodies)
    state = random_state(engine, seed)
    torque = torch.randn(1, engine.nv, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    q, v = state.q[0].numpy(), state.v[0].numpy()

    mass_matrix = oracle.mass_matrix(q)
    np.testing.assert_allclose(engine.mass_matrix(state)[0], mass_matrix, atol=PRECISION * np.abs(mass_matrix).max())

    needed = oracle.torque(q, v, torque[0].numpy())
    result = engine.inverse_dynamics(state, torque)[0].numpy()
    np.testing.assert_allclose(result, needed, atol=PRECISION * max(1.0, np.abs(needed).max()))

    acceleration = engine.acceleration(state, torque)
    if np.linalg.cond(mass_matrix) < 1e6:
        reference = oracle.acceleration(q, v, torque[0].numpy())
        np.testing.assert_allclose(
            acceleration[0], reference, atol=PRECISION * max(1.0, np.abs(reference).max()), rtol=0
        )
    else:
        back = oracle.torque(q, v, acceleration[0].numpy())
        scale = max(1.0, np.abs(mass_matrix).max() * float(acceleration.abs().max()))
        np.testing.assert_allclose(back, torque[0], atol=PRECISION * scale, rtol=0)


def test_a_batch_is_its_worlds():
    """Worlds do not see each other, and one world is a batch of one."""
    engine = tree(random_bodies(11, ["ball", "revolute", "fixed", "prismatic"], True))
    states = random_state(engine, 11, batch=5)
    together = engine.acceleration(states)
    alone = [engine.acceleration(State(states.q[k : k + 1], states.v[k : k + 1])) for k in range(5)]
    assert torch.equal(together, torch.cat(alone))
