"""Capsules beside each other touch at both ends: what rocks or falls flat does not sink in."""

# pyright: reportAttributeAccessIssue=false

import numpy as np
import pytest
import torch
from physics.articulated.slopes import compare
from physics.articulated.trees import contact_tree
from scipy.spatial.transform import Rotation

from physvision import State
from physvision.core import Capsule, Placed
from physvision.physics.articulated import Body, Joint

DOUBLE = torch.float64
RADIUS, LENGTH = 0.1, 0.6
ALONG_X = ((0.0, 0.0, 1.0, 0.0), (0.0, 1.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))


def log(length=LENGTH, **options):
    """A capsule along x that falls onto one that stands still."""
    shape = Placed(Capsule(RADIUS, length), pose=ALONG_X)
    body = Body("log", None, [Joint("free")], 1.0, inertia=(0.004, 0.04, 0.04), shapes=[shape])
    still = [Placed(Capsule(RADIUS, LENGTH), pose=ALONG_X)]
    options = {
        "dt": 0.01,
        "contact": "event",
        "gravity": (0, 0, -10),
        "static_shapes": still,
        "friction": 0.5,
    } | options
    return contact_tree([body], **options)


def start(tilt, speed, spin=0.0, height=0.23):
    turn = [np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0]
    v = [[0.0, 0.0, -speed, 0.0, spin, 0.0]]
    return State(torch.tensor([[0.02, 0.0, height, *turn]], dtype=DOUBLE), torch.tensor(v, dtype=DOUBLE))


def separations(path, length=LENGTH):
    """Separations of 101 points of the log's axis from the still capsule, (times, points)."""
    q = path.q[0].numpy()
    axes = Rotation.from_quat(q[:, [4, 5, 6, 3]]).apply([1.0, 0, 0])
    points = q[:, None, :3] + np.linspace(-length / 2, length / 2, 101)[:, None] * axes[:, None]
    points[..., 0] -= points[..., 0].clip(-LENGTH / 2, LENGTH / 2)
    return np.linalg.norm(points, axis=-1) - 2 * RADIUS


@pytest.mark.parametrize("length", [0.4, LENGTH])
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_a_log_that_rocks_does_not_sink_in(length, restitution):
    """One end strikes, then the other while the first is held; with equal lengths either end is that of one capsule."""
    engine = log(length, restitution=restitution)
    path = engine.rollout(start(0.08, 1.0, 1.0), 80)
    assert bool(path.status.converged.all())
    assert float(path.status.penetration[0]) < 2e-4
    assert separations(path, length).min() > -2e-4
    total = sum(engine.energy(State(path.q[0], path.v[0])))
    assert float((total - total.cummin(0).values).max()) < 1e-3 * float(total.abs().max())


def test_a_log_comes_to_rest_on_both_ends():
    engine = log(0.4)
    path = engine.rollout(start(0.08, 1.0, 1.0), 200)
    assert np.abs(separations(path, 0.4)[-1]).max() < 1e-5
    assert float(path.v[0, -1].abs().max()) < 1e-6
    contacts = engine.contacts(path.final, max_separation=1e-4)
    center = float(path.q[0, -1, 0])
    assert sorted(contacts.point[0, :, 0].tolist()) == pytest.approx([center - 0.2, center + 0.2], abs=1e-6)
    assert float(contacts.impulse[0, :, 2].sum().abs()) == pytest.approx(10 * 0.01, abs=1e-8)


@pytest.mark.parametrize("length", [0.4, 0.9])
def test_gradients_through_the_strikes_of_both_ends(length):
    """To the state and the lengths; the ends that strike are those of the first capsule, then those of the second."""
    engine = log(length, restitution=0.5)
    begin = start(0.08, 1.0, 1.0)
    rng = torch.Generator().manual_seed(0)
    values = {"q": begin.q, "v": begin.v, "shape_size": engine.properties.shape_size}
    weights = torch.randn(2, 6, generator=rng, dtype=DOUBLE)

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), 20, properties={"shape_size": given["shape_size"]})
        return path.q[:, -1, :6] @ weights[0] + path.v[:, -1] @ weights[1]

    path = engine.rollout(begin, 20)
    impulses = engine.contacts(State(path.q[0, :-1], path.v[0, :-1]), max_separation=1.0)
    assert len(set(impulses.point[impulses.impulse[..., 2] != 0][:, 0].sign().tolist())) == 2  # both ends strike

    def direction(name, value):
        along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        return along * value if name == "shape_size" else along

    assert compare(loss, values, direction) == 3
