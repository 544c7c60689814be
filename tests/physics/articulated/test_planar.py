# ruff: noqa: E501
"""The same planar scenes in `rigid2d` and as trees that slide and turn in a plane: same motion, same gradients.

The plane's x is the tree's x, its y (downwards) the tree's −z, and its angle turns about the tree's y.
"""

import math

import numpy as np
import pytest
import torch

from physvision import State
from physvision.core import Box, Placed, Plane, Sphere
from physvision.physics import rigid2d
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64
SIGNS = (1.0, -1.0, 1.0)


def planar(name, shape, mass, inertia):
    joints = [Joint("prismatic", (1, 0, 0)), Joint("prismatic", (0, 0, 1)), Joint("revolute", (0, 1, 0))]
    return Body(name, None, joints, mass, (0, 0, 0), (inertia,) * 3, shapes=[Placed(shape)])


def plane(angle, point):
    """A plane whose z axis is turned by an angle about y, through a point (x, z)."""
    c, s = math.cos(angle), math.sin(angle)
    return Placed(
        Plane(), pose=((c, 0.0, s, point[0]), (0.0, 1.0, 0.0, 0.0), (-s, 0.0, c, point[1]), (0.0, 0.0, 0.0, 1.0))
    )


def static(size, position, angle=0.0, **numbers):
    return rigid2d.Rectangle(size, position, angle, static=True, **numbers)


def pair(circles, boxes, planes, obstacles, dt, friction, restitution):
    """The two engines: (radius, position), (size, position, angle) of bodies of density one."""
    numbers = {"friction": friction, "restitution": restitution}
    flat = [rigid2d.Circle(r, p, mass=math.pi * r * r, **numbers) for r, p in circles]
    flat += [rigid2d.Rectangle(s, p, a, mass=s[0] * s[1], **numbers) for s, p, a in boxes]
    world = rigid2d.World([*flat, *(static(*obstacle, **numbers) for obstacle in obstacles)], gravity=(0, 10.0), dt=dt)
    bodies = [planar(f"c{k}", Sphere(r), math.pi * r * r, math.pi * r**4 / 2) for k, (r, _) in enumerate(circles)]
    bodies += [
        planar(f"b{k}", Box((s[0], 1.0, s[1])), s[0] * s[1], s[0] * s[1] * (s[0] ** 2 + s[1] ** 2) / 12)
        for k, (s, _, _) in enumerate(boxes)
    ]
    engine = tree(
        bodies, dt=dt, gravity=(0, 0, -10.0), static_shapes=[plane(*entry) for entry in planes], contact=ContactSettings(friction=friction, restitution=restitution),
    )  # fmt: skip
    return world, engine


def compared(world, engine, velocity, steps, leaves=()):
    """Largest differences of the final states, and of their derivatives by start, friction and restitution."""
    start = world.initial_state(1, DOUBLE)
    signs = torch.tensor(SIGNS, dtype=DOUBLE).repeat(world.nq // 3)
    v = torch.tensor([velocity], dtype=DOUBLE)
    ends, gradients = [], []
    for entry, turn in ((world, torch.ones_like(signs)), (engine, signs)):
        state = State((start.q * turn).requires_grad_(), (v * turn).requires_grad_())
        own = {name: getattr(entry.properties, name).clone().requires_grad_() for name in leaves}
        path = entry.rollout(state, steps, properties=own or None)
        assert path.status is not None
        assert bool(path.status.converged)
        ends.append(torch.cat([path.q[0, -1] * turn, path.v[0, -1] * turn]))
        rows = []
        for row in ends[-1]:
            result = torch.autograd.grad(row, (state.q, state.v, *own.values()), retain_graph=True)
            rows.append(torch.cat([result[0][0] * turn, result[1][0] * turn, *(x.sum()[None] for x in result[2:])]))
        gradients.append(torch.stack(rows))
    return float((ends[0] - ends[1]).abs().max().detach()), float((gradients[0] - gradients[1]).abs().max())


@pytest.mark.parametrize("dt", [1e-2, 2e-3])
def test_a_ball_that_spins_meets_floor_and_wall(dt):
    world, engine = pair(
        [(0.2, (0.0, -1.0))], [], [(0.0, (0, 0)), (-math.pi / 2, (1.5, 0))],
        [((10, 2), (0, 1.0)), ((2, 10), (2.5, -4.0))], dt, 0.3, 0.7,
    )  # fmt: skip
    far, slope = compared(world, engine, [2.0, 0.5, 3.0], round(0.9 / dt), ("friction", "restitution"))
    assert far < 1e-7
    assert slope < 1e-7


def test_a_box_slides_down_a_slope():
    angle = 0.4
    normal = np.array([math.sin(angle), -math.cos(angle)])  # in the plane, y downwards
    world, engine = pair(
        [],
        [((0.4, 0.2), tuple(0.1 * normal), angle)],
        [(angle, (0, 0))],
        [((20, 2), tuple(-1.0 * normal), angle)],
        0.01,
        0.2,
        0.0,
    )
    far, slope = compared(world, engine, [0.3 * math.cos(angle), 0.3 * math.sin(angle), 0.0], 60, ("friction",))
    assert far < 1e-7
    assert slope < 1e-7


def test_a_slider_on_the_floor():
    world, engine = pair([], [((0.4, 0.2), (0, -0.1), 0.0)], [(0.0, (0, 0))], [((20, 2), (0, 1.0))], 0.01, 0.2, 0.0)
    far, slope = compared(world, engine, [2.0, 0.0, 0.0], 60, ("friction",))
    assert far < 1e-7
    assert slope < 1e-7


@pytest.mark.extended
def test_a_pile_of_three_comes_closer_with_the_step():
    """Boxes that fall on each other and slide: between events forces change, so both engines err by their order."""
    boxes = [((0.6, 0.2), (0.0, -0.1), 0.0), ((0.5, 0.2), (0.05, -0.3), 0.0), ((0.4, 0.2), (-0.03, -0.5), 0.0)]
    results = []
    for dt in (1e-2, 1e-3):
        world, engine = pair([], boxes, [(0.0, (0, 0))], [((20, 2), (0, 1.0))], dt, 0.3, 0.0)
        results.append(compared(world, engine, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], round(0.2 / dt))[0])
    assert results[1] < max(1e-9, results[0] / 4)


def struck_chain(dt, seconds):
    """Two rods that hang from the world and a ball that strikes the lower: the ball's place and the rods' angles."""
    size, numbers = (0.1, 0.5), {"friction": 0.3, "restitution": 0.5}
    rods = [rigid2d.Rectangle(size, (0.0, 0.25 + 0.5 * k), mass=0.05, **numbers) for k in range(2)]
    ball = rigid2d.Circle(0.1, (-0.3, 0.75), velocity=(2.0, -0.5), mass=0.04, **numbers)
    joints = [rigid2d.Revolute(rods[0], None, (0.0, 0.0)), rigid2d.Revolute(rods[0], rods[1], (0.0, 0.5))]
    world = rigid2d.World([*rods, ball], joints, gravity=(0, 10.0), dt=dt)
    inertia = 0.05 * (size[0] ** 2 + size[1] ** 2) / 12
    links = [
        Body(f"rod {k}", f"rod {k - 1}" if k else None, [Joint("revolute", (0, 1, 0))], 0.05, (0, 0, -0.25), (inertia,) * 3,
             (0, 0, -0.5 * k), shapes=[Placed(Box((0.1, 1.0, 0.5)), pose=((1.0, 0, 0, 0), (0, 1.0, 0, 0), (0, 0, 1.0, -0.25), (0, 0, 0, 1.0)))])
        for k in range(2)
    ]  # fmt: skip
    engine = tree(
        [*links, planar("ball", Sphere(0.1), 0.04, 0.04 * 0.1**2 / 2)],
        dt=dt,
        gravity=(0, 0, -10.0),
        contact=ContactSettings(friction=0.3, restitution=0.5),
    )
    q = torch.tensor([[0.0, 0.0, -0.3, -0.75, 0.0]], dtype=DOUBLE)
    v = torch.tensor([[0.0, 0.0, 2.0, 0.5, 0.0]], dtype=DOUBLE)
    flat = world.rollout(world.initial_state(1, DOUBLE), round(seconds / dt)).q[0, -1]
    path = engine.rollout(State(q, v), round(seconds / dt))
    assert path.status is not None
    assert bool(path.status.converged)
    bent = path.q[0, -1]
    return torch.stack(
        [flat[2] - bent[0], flat[5] - bent[0] - bent[1], flat[6] - bent[2], flat[7] + bent[3], flat[8] - bent[4]]
    )


def test_a_chain_that_a_ball_strikes_comes_closer_with_the_step():
    """The engines' schemes differ where rods swing; the difference falls with their order, the first."""
    results = [float(struck_chain(dt, 0.4).abs().max()) for dt in (4e-3, 1e-3)]
    assert results[0] < 2e-2
    assert results[1] < results[0] / 3
