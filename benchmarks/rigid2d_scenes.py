"""Scenes that planar benchmarks, experiments and tests share.

They are those of "End-to-End Differentiable Physics for Learning and Control" (2018), in pixels with y down; piles; and
random mixtures of bodies and joints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core.checks import check_count
from physvision.physics.rigid2d import Body, Circle, Joint, Polygon, Rectangle, Revolute, Spring, World

GRAVITY = 100.0
PUSH = 1500.0
PUSH_STEPS = 3


def walls(restitution: float = 1.0, friction: float = 0.0) -> list[Rectangle]:
    """Return the walls, 20 thick, of a box with an inside of 400 × 400, from (0, 0)."""
    wide, high = (440, 20), (20, 440)
    places = {"top": (wide, (200, -10)), "bottom": (wide, (200, 410)), "left": (high, (-10, 200))}
    places["right"] = (high, (410, 200))
    return [
        Rectangle(size, position, name=name, static=True, restitution=restitution, friction=friction)
        for name, (size, position) in places.items()
    ]


def billiard(
    positions: Sequence[Sequence[float]],
    velocities: Sequence[Sequence[float]],
    radius: float = 20,
    dt: float = 1 / 30,
) -> World:
    """Return a world of elastic, frictionless balls of mass 1 in the box, without gravity."""
    balls = [
        Circle(radius, place, velocity=velocity, restitution=1.0, friction=0.0)
        for place, velocity in zip(positions, velocities, strict=True)
    ]
    return World([*walls(), *balls], gravity=(0, 0), dt=dt)


def struck_chain(links: int, mass: float = 7.0, dt: float = 1 / 30) -> World:
    """Return a chain that hangs at (300, 30), and a ball of mass 1 that `push` drives against its last link.

    Args:
        links: float of rectangles of 20 × 60; neighbors do not touch.
        mass: Mass of the whole chain.
        dt: Duration of a step, in seconds.
    """
    check_count("links", links)
    rods = [
        Rectangle((20, 60), (300, 50 + 50 * i), mass=mass / links, name=f"link {i}", friction=0.0) for i in range(links)
    ]
    joints = [Revolute("link 0", None, (300, 30))]
    joints += [Revolute(f"link {i}", f"link {i - 1}", (300, 25 + 50 * i)) for i in range(1, links)]
    ball = Circle(20, (50, 50 * links), mass=1.0, restitution=1.0, friction=0.0, name="ball")
    return World([*rods, ball], joints, gravity=(0, GRAVITY), dt=dt)


def push(world: World, steps: int, batch: int = 1) -> Float[Tensor, "batch steps nu"]:
    """Return controls that push the ball of a struck chain to the right for three steps, and carry its weight."""
    controls = torch.zeros(1, steps, world.nu, dtype=torch.float64)
    controls[:, :PUSH_STEPS, -3] = PUSH
    controls[:, :, -2] = -GRAVITY
    return controls.expand(batch, -1, -1)


def pile(count: int, seed: int, dt: float = 1 / 60) -> World:
    """Return circles, boxes and convex polygons of random size, friction and restitution, dropped into a bin."""
    generator = Random(seed)
    friction, restitution = generator.uniform(0.0, 0.6), generator.choice((0.0, 0.0, generator.uniform(0.0, 0.5)))
    columns = max(2, round(math.sqrt(count / 2)))
    width = 1.3 * columns
    surface: dict[str, Any] = {"static": True, "friction": friction, "restitution": restitution}
    bin_walls = [
        Rectangle((width + 2, 1), (0, -0.5), name="floor", **surface),
        *(Rectangle((1, 4 * count), (side * (width + 1) / 2, 2 * count - 1), **surface) for side in (-1, 1)),
    ]
    bodies = []
    for i in range(count):
        place = (
            (i % columns - (columns - 1) / 2) * 1.3 + generator.uniform(-0.1, 0.1),
            0.8 + 1.3 * (i // columns) + generator.uniform(0.0, 0.1),
        )
        size, angle = generator.uniform(0.25, 0.5), generator.uniform(0.0, 2 * math.pi)
        kind = generator.randrange(3)
        loose: dict[str, Any] = {"friction": friction, "restitution": restitution, "mass": 4 * size * size}
        if kind == 0:
            bodies.append(Circle(size, place, **loose))
        elif kind == 1:
            sides = (2 * size * generator.uniform(0.5, 0.8), 2 * size * generator.uniform(0.4, 0.6))
            bodies.append(Rectangle(sides, place, angle=angle, **loose))
        else:
            around = [2 * math.pi * (k + generator.uniform(0.0, 0.6)) / 5 for k in range(5)]
            corners = [(size * math.cos(turn), size * math.sin(turn)) for turn in around]
            bodies.append(Polygon(corners, place, angle=angle, **loose))
    return World([*bin_walls, *bodies], gravity=(0, -9.81), dt=dt)


def mixture(seed: int, flip: float = 1.0, shuffle: bool = False) -> tuple[World, list[int]]:
    """Return three to twelve random bodies between walls, with joints and springs, and their order.

    The scene is mirrored if `flip` is −1; if `shuffle` is true, bodies and joints are in another order. Steps are of
    1e-3 to 1/30 s.
    """
    generator = Random(seed)
    count, dt = generator.randint(3, 12), 10 ** generator.uniform(-3, math.log10(1 / 30))
    surface: dict[str, Any] = {"friction": generator.random(), "restitution": generator.random(), "static": True}
    sides = [
        Rectangle((20, 1), (0, -0.5), name="floor", **surface),
        *(Rectangle((1, 20), (side * 3.5, 9.5), name=f"wall {side}", **surface) for side in (-1, 1)),
    ]
    bodies: list[Body] = []
    for i in range(count):
        place = (flip * ((i % 4 - 1.5) * 1.4 + generator.uniform(-0.1, 0.1)), 0.8 + 1.4 * (i // 4))
        loose: dict[str, Any] = {
            "velocity": (flip * generator.uniform(-3, 3), generator.uniform(-3, 1)),
            "spin": flip * generator.uniform(-3, 3),
            "mass": generator.uniform(0.3, 3),
            "friction": generator.random(),
            "restitution": generator.random(),
            "name": f"{i}",
        }
        size, angle, kind = generator.uniform(0.2, 0.5), generator.uniform(0, 6), generator.randrange(3)
        around = [2 * math.pi * (k + generator.uniform(0.0, 0.6)) / 5 for k in range(5)]
        if kind == 0:
            bodies.append(Circle(size, place, **loose))
        elif kind == 1:
            bodies.append(Rectangle((1.6 * size, size), place, angle=flip * angle, **loose))
        else:
            corners = [(flip * size * math.cos(turn), size * math.sin(turn)) for turn in around]
            bodies.append(Polygon(corners[:: int(flip)], place, **loose))
    joints: list[Joint] = []
    for i in range(count - 1):
        chance = generator.random()
        if chance < 0.15 and i % 4 != 3:
            middle = [(a + b) / 2 for a, b in zip(bodies[i].center, bodies[i + 1].center, strict=True)]
            joints.append(Revolute(f"{i}", f"{i + 1}", middle))
        elif chance < 0.25:
            joints.append(Spring(f"{i}", f"{i + 1}", stiffness=generator.uniform(1, 50), damping=0.1))
    order = list(range(count))
    if shuffle:
        generator.shuffle(order)
        generator.shuffle(joints)
    return World([*sides, *(bodies[i] for i in order)], joints, gravity=(0, -9.81), dt=dt), order
