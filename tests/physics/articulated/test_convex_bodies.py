# ruff: noqa: E501
"""Bodies of convex shapes: hulls that are boxes, edges that strike, flat sides that stand, a cylinder that rolls."""

# pyright: reportCallIssue=false, reportInvalidTypeForm=false

import math
from itertools import product

import numpy as np
import pytest
import torch
from physics.articulated.trees import contact_tree
from scipy.spatial.transform import Rotation

from physvision import State
from physvision.core import Box, Cylinder, Hull, Placed
from physvision.physics import articulated

pytestmark = pytest.mark.extended


def box_hull(size):
    """The corners of a box."""
    return Hull(tuple(tuple((0.5 * np.array(size) * sign).tolist()) for sign in product((-1, 1), repeat=3)))


STILL = (0.0, 0.0, 0.0)
STRAIGHT = (1.0, 0.0, 0.0, 0.0)


def world(bodies, **options):
    return contact_tree(bodies, contact="event", **({"gravity": STILL, "dt": 0.01} | options))


def free(name, shape, mass=1.0, inertia=(0.01, 0.012, 0.014)):
    return articulated.Body(name, None, [articulated.Joint("free")], mass, STILL, inertia, shapes=[Placed(shape)])


def state(*bodies):
    q = [[*place, *turn] for place, _, _, turn in bodies]
    v = [[*speed, *spin] for _, speed, spin, _ in bodies]
    return State(
        torch.tensor(q, dtype=torch.float64).reshape(1, -1), torch.tensor(v, dtype=torch.float64).reshape(1, -1)
    )


def test_hulls_of_boxes_move_as_boxes():
    """Collisions of two boxes, of one with the hull of the other's corners, and of both hulls."""
    sizes = (0.3, 0.4, 0.25), (0.35, 0.2, 0.3)
    engines = [
        world([free("a", shape_a), free("b", shape_b, 1.5)], friction=0.4, restitution=0.5)
        for shape_a, shape_b in [(Box(sizes[0]), Box(sizes[1])), (box_hull(sizes[0]), Box(sizes[1])), (box_hull(sizes[0]), box_hull(sizes[1]))]
    ]  # fmt: skip
    rng, hit_body = np.random.default_rng(4), 0
    for _ in range(8):
        turns, aside, spin = (
            Rotation.random(2, rng).as_quat()[:, [3, 0, 1, 2]],
            0.08 * rng.normal(size=2),
            2 * rng.normal(size=(2, 3)),
        )
        start = state((STILL, (2.0, 0, 0), spin[0], turns[0]), ((0.75, *aside), (-1.0, 0, 0), spin[1], turns[1]))
        ends = [engine.rollout(start, 40) for engine in engines]
        assert all(bool(end.status.converged) for end in ends)
        for end in ends[1:]:
            torch.testing.assert_close(end.q, ends[0].q, rtol=0, atol=1e-12)
        hit_body += int(float((ends[0].v[0, -1] - ends[0].v[0, 0]).abs().max()) > 0.1)
    assert hit_body == 8


@pytest.mark.parametrize("turned", [0.0, 0.4])
@pytest.mark.parametrize("dt", [0.01, 0.003])
def test_an_edge_strikes_an_edge(turned, dt):
    """Two boxes on edge, without friction: an impulse along the normal across both edges, when they meet.

    Before it both move by themselves; after it as J = (1 + e) w / (Σ 1/m + (r × n) · I⁻¹ (r × n)) along n says.
    """
    sizes, masses, inertia = ((0.4, 0.3, 0.3), (0.2, 0.5, 0.2)), (1.0, 1.7), np.array([0.01, 0.012, 0.014])
    engine = world(
        [free(name, Box(size), mass, tuple(inertia)) for name, size, mass in zip("ab", sizes, masses, strict=True)],
        restitution=0.6, friction=0.0, dt=dt,
    )  # fmt: skip
    # Edges along x and, but for what it is turned by, along y, where the boxes' middles are aside of the crossing.
    turns = [Rotation.from_euler("x", math.pi / 4), Rotation.from_euler("yz", [math.pi / 4, turned])]
    positions, separation, speed = np.array([[0.05, 0.0, 0.0], [0.0, 0.12, 0.0]]), 0.06, 1.5
    arms = [np.array([0.0, 0.0, -0.15 * math.sqrt(2)]), np.array([0.0, 0.0, 0.1 * math.sqrt(2)])]
    positions[0, 2], positions[1, 2] = separation - arms[0][2], -arms[1][2]
    # The crossing, seen from above: y = 0 on the first edge; on the second along its direction from its middle.
    along = turns[1].apply([0.0, 1.0, 0.0])
    crossing = positions[1] + arms[1] - along * (positions[1, 1] / along[1])
    normal, hit_body, seconds = np.array([0.0, 0.0, 1.0]), separation / speed, 0.06
    lever = [crossing - positions[1], np.array([*crossing[:2], separation]) - positions[0]]
    fractions = 0.0
    for arm, mass, turn in zip((lever[1], lever[0]), masses, turns, strict=True):
        moment = turn.inv().apply(np.cross(arm, normal))
        fractions += 1 / mass + moment @ (moment / inertia)
    impulse = 1.6 * speed / fractions
    path = engine.rollout(
        state(*(
            (place, (0, 0, -speed if k == 0 else 0), STILL, turn.as_quat()[[3, 0, 1, 2]])
            for k, (place, turn) in enumerate(zip(positions, turns, strict=True))
        )),
        round(seconds / dt),
    )  # fmt: skip
    assert bool(path.status.converged)
    left = seconds - hit_body
    for k, (arm, sign) in enumerate(((lever[1], 1.0), (lever[0], -1.0))):
        velocity = np.array([0, 0, (-speed if k == 0 else 0.0) + sign * impulse / masses[k]])
        at_impact = positions[k] + (np.array([0, 0, -separation]) if k == 0 else 0)
        np.testing.assert_allclose(path.q[0, -1, 7 * k : 7 * k + 3], at_impact + left * velocity, rtol=0, atol=1e-9)
        np.testing.assert_allclose(path.v[0, -1, 6 * k : 6 * k + 3], velocity, rtol=0, atol=1e-9)
        spun = turns[k].inv().apply(np.cross(arm, sign * impulse * normal)) / inertia
        soon = path.v[0, math.ceil(hit_body / dt), 6 * k + 3 : 6 * k + 6].numpy()
        # The spin turns on by itself from there; until the end of the step by no more than Euler's equations say.
        rate = np.cross(inertia * spun, spun) / inertia
        np.testing.assert_allclose(soon, spun, rtol=0, atol=1e-9 + 2 * dt * np.abs(rate).max())


def test_what_stands_on_flat_sides_stays():
    """Hulls, boxes and cylinders in two towers on a box, one a cylinder of the same size on another, for 2 s."""
    shapes = [
        box_hull((0.4, 0.4, 0.2)),
        Cylinder(0.15, 0.3),
        box_hull((0.5, 0.2, 0.1)),
        Cylinder(0.2, 0.2),
        Cylinder(0.2, 0.2),
    ]
    positions = [(0, 0, 0.1), (0, 0, 0.35), (0, 0, 0.55), (1.0, 0, 0.1), (1.0, 0, 0.3)]
    floor = Placed(
        Box((4.0, 4.0, 1.0)), pose=tuple(map(tuple, (np.eye(4) + np.outer([0, 0, -0.5, 0], [0, 0, 0, 1])).tolist()))
    )
    engine = world(
        [free(f"{k}", shape) for k, shape in enumerate(shapes)],
        static_shapes=[floor],
        gravity=(0, 0, -10),
        friction=0.5,
    )
    start = state(*((place, STILL, STILL, STRAIGHT) for place in positions))
    path = engine.rollout(start, 200)
    assert bool(path.status.converged)
    assert float((path.q[0, -1] - start.q[0]).abs().max()) < 1e-6


def test_a_cylinder_rolls_on_a_box():
    """On its side it rolls with two thirds of the weight along the slope."""
    radius, length, mass = 0.1, 0.3, 2.0
    across = mass * (3 * radius**2 + length**2) / 12
    drum = free("drum", Cylinder(radius, length), mass, (across, across, mass * radius**2 / 2))
    downhill = 10 * math.sin(0.2)
    engine = world(
        [drum], static_shapes=[Placed(Box((6.0, 2.0, 0.2)))], gravity=(downhill, 0.0, -10 * math.cos(0.2)), friction=0.6
    )
    lying = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)  # its axis along y
    path = engine.rollout(state(((0, 0, 0.1 + radius), STILL, STILL, lying)), 100)
    assert bool(path.status.converged)
    assert float(path.q[0, -1, 0]) == pytest.approx(downhill / 3, abs=1e-4)
    assert float(path.v[0, -1, 0]) == pytest.approx(2 / 3 * downhill, abs=1e-4)
