"""Scenes on which methods of contact are compared: five with closed forms, and a robot that is dropped."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from physvision import State
from physvision.core import Box, Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Articulation, Body, ContactLaw, Joint

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # where the robot is described

DOUBLE = torch.float64
GRAVITY, RADIUS = 10.0, 0.1

Method = str | ContactLaw


@dataclass(frozen=True)
class Scene:
    """A motion whose end is known.

    Attributes:
        name: Name of what moves.
        engine: made for a method and a step.
        start: the value that the derivative is taken by.
        state: where it starts, from an engine and that value.
        seconds: Duration of the motion, s.
        read: the number that is compared, from the final state.
        exact: that number and its derivative.
        elastic: If true, impacts should conserve energy.
        rubs: If true, friction matters.
    """

    name: str
    engine: Callable[[Method, float], Articulation]
    start: float
    state: Callable[[Articulation, Tensor], State]
    seconds: float
    read: Callable[[State], Tensor]
    exact: tuple[float, float]
    elastic: bool = True
    rubs: bool = False


def ball(name: str) -> Body:
    return Body(name, None, [Joint("free")], mass=1.0, inertia=(0.004,) * 3, shapes=[Placed(Sphere(RADIUS))])


def dropped() -> Scene:
    """An elastic ball from a height of 1 m, one bounce: z = s d − g d²/2, ∂z/∂h = −1 + 2 g d / s."""
    height, seconds = 1.0, 0.8
    speed = math.sqrt(2 * GRAVITY * height)
    after = seconds - speed / GRAVITY

    def engine(method: Method, dt: float) -> Articulation:
        return articulated.tree(
            [ball("ball")],
            dt=dt,
            gravity=(0, 0, -GRAVITY),
            static_shapes=[Placed(Plane())],
            contact=articulated.ContactSettings(method, restitution=1.0),
        )

    def state(mechanism: Articulation, value: Tensor) -> State:
        rest = mechanism.initial_state(dtype=DOUBLE)
        up = torch.tensor([0, 0, 1, 0, 0, 0, 0], dtype=DOUBLE)
        return State(rest.q + up * (value + RADIUS), rest.v)

    exact = speed * after - GRAVITY * after**2 / 2, -1 + 2 * GRAVITY * after / speed
    return Scene("bounce", engine, height, state, seconds, lambda final: final.q[0, 2] - RADIUS, exact)


def head_on() -> Scene:
    """Two equal elastic balls: the one that was struck goes on with the other's place, ∂x₂/∂x₁ = 1."""
    speed, seconds = 2.0, 0.8

    def engine(method: Method, dt: float) -> Articulation:
        return articulated.tree(
            [ball("one"), ball("two")],
            dt=dt,
            gravity=(0, 0, 0),
            contact=articulated.ContactSettings(method, restitution=1.0),
        )

    def state(mechanism: Articulation, value: Tensor) -> State:
        rest = mechanism.initial_state(dtype=DOUBLE)
        along = torch.eye(14, dtype=DOUBLE)
        v = torch.zeros_like(rest.v)
        v[0, 0] = speed
        return State(rest.q + value * along[0] + 0.6 * along[7], v)

    # Had they passed through each other, the first would be where the second is, but for their diameter.
    exact = speed * seconds + 2 * RADIUS, 1.0
    return Scene("head on", engine, 0.0, state, seconds, lambda final: final.q[0, 7], exact)


def row() -> Scene:
    """An elastic ball runs into a row of three: the last goes on in its place, ∂x₄/∂x₁ = 1."""
    speed, seconds, places = 2.0, 0.8, (0.0, 0.4, 0.65, 0.9)

    def engine(method: Method, dt: float) -> Articulation:
        balls = [ball(f"{k}") for k in range(4)]
        return articulated.tree(
            balls, dt=dt, gravity=(0, 0, 0), contact=articulated.ContactSettings(method, restitution=1.0)
        )

    def state(mechanism: Articulation, value: Tensor) -> State:
        rest = mechanism.initial_state(dtype=DOUBLE)
        along, v = torch.eye(28, dtype=DOUBLE), torch.zeros_like(rest.v)
        v[0, 0] = speed
        q = rest.q + sum(place * along[7 * k] for k, place in enumerate(places))
        return State(q + value * along[0], v)

    exact = speed * seconds + 3 * 2 * RADIUS, 1.0
    return Scene("ball into a row", engine, 0.0, state, seconds, lambda final: final.q[0, 21], exact)


def on_a_slope(name: str, friction: float, exact: Callable[[float, float], tuple[float, float]]) -> Scene:
    """A block on a slope; `exact` tells its place and its derivative by the first speed, from that and how it slows."""
    angle, speed, seconds = 0.3, 1.5, 0.8
    slowing = GRAVITY * (friction * math.cos(angle) - math.sin(angle))

    def engine(method: Method, dt: float) -> Articulation:
        block = Body(
            "block", None, [Joint("free")], mass=1.0, inertia=(0.02,) * 3, shapes=[Placed(Box((0.4, 0.4, 0.05)))]
        )
        down = (GRAVITY * math.sin(angle), 0.0, -GRAVITY * math.cos(angle))
        return articulated.tree(
            [block],
            dt=dt,
            gravity=down,
            static_shapes=[Placed(Plane())],
            contact=articulated.ContactSettings(method, friction=friction),
        )

    def state(mechanism: Articulation, value: Tensor) -> State:
        rest = mechanism.initial_state(dtype=DOUBLE)
        up = torch.tensor([0, 0, 0.025, 0, 0, 0, 0], dtype=DOUBLE)
        return State(rest.q + up, rest.v + value * torch.eye(6, dtype=DOUBLE)[0])

    result = exact(speed, slowing)
    return Scene(name, engine, speed, state, seconds, lambda final: final.q[0, 0], result, elastic=False, rubs=True)


def sticking() -> Scene:
    """It slides to rest and stays, at v² / 2a: a = g (μ cos α − sin α), ∂x/∂v = v / a."""
    return on_a_slope("slides to rest", 0.8, lambda speed, slowing: (speed**2 / (2 * slowing), speed / slowing))


def sliding() -> Scene:
    """It slides faster and faster, x = v t − a t² / 2, ∂x/∂v = t."""
    return on_a_slope("slides on", 0.2, lambda speed, slowing: (speed * 0.8 - slowing * 0.8**2 / 2, 0.8))


def robot(method: Method, dt: float) -> Articulation:
    """A Laikago on four toes whose servos hold its legs bent."""
    from contact import standing_bodies  # pyright: ignore[reportMissingImports]

    bodies = [
        replace(body, joints=[replace(joint, implicit_spring=joint.kind != "free") for joint in body.joints])
        for body in standing_bodies("")
    ]
    return articulated.tree(
        bodies, dt=dt, static_shapes=[Placed(Plane())], contact=articulated.ContactSettings(method, friction=0.8)
    )


@cache
def landing() -> Scene:
    """A Laikago dropped from 0.1 m, its height 0.4 s later; what is exact is taken from events at steps of 25 µs."""

    def state(mechanism: Articulation, value: Tensor) -> State:
        from contact import above_ground  # pyright: ignore[reportMissingImports]

        start = above_ground(mechanism)  # the lowest toe at 10 mm
        up = torch.eye(mechanism.nq, dtype=DOUBLE)[2]
        return State(start.q + (value - 0.01) * up, start.v)

    scene = Scene("robot", robot, 0.1, state, 0.4, lambda final: final.q[0, 2], (0.0, 0.0), elastic=False)
    value = torch.tensor(scene.start, dtype=DOUBLE, requires_grad=True)
    fine = robot("event", 2.5e-5)
    height = scene.read(fine.rollout(state(fine, value), round(scene.seconds / 2.5e-5)).final)
    (slope,) = torch.autograd.grad(height, value)
    return replace(scene, exact=(height.item(), slope.item()))
