"""Contacts that graze: the motion has no derivative there, and the status says where."""

import math

import pytest
import torch

from physvision import State
from physvision.core import Box, Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64
R = 0.1


def ball(name):
    return Body(name, None, [Joint("free")], mass=1.0, inertia=(0.004,) * 3, shapes=[Placed(Sphere(R))])


@pytest.mark.parametrize(("ahead", "passes"), [(0.503, 51), (0.5, 50)])
@pytest.mark.parametrize(("depth", "named"), [(3e-7, True), (-3e-7, True), (1e-4, False), (-1e-4, False)])
def test_a_ball_that_passes_another(depth, named, ahead, passes):
    """They come within 2 R of each other by so much, in a step or at its end: a micrometre decides."""
    engine = tree([ball("a"), ball("b")], dt=0.01, gravity=(0, 0, 0), contact=ContactSettings(restitution=1.0))
    start = engine.initial_state(2, DOUBLE)
    q, v = start.q.clone(), start.v.clone()
    q[:, 0], q[0, 1], v[:, 0] = -ahead, 2 * R - depth, 1.0
    q[1, 1] = 5.0  # the other world's balls are far apart
    status = engine.rollout(State(q, v), 100).status
    assert status is not None
    assert status.converged.all()
    # At 1 m/s it is beside the other after as many seconds as it starts meters away.
    assert status.first_grazing_step.tolist() == [passes if named else -1, -1]


@pytest.mark.parametrize(("offset", "named"), [(2e-7, True), (-2e-7, True), (1e-4, False), (-1e-4, False)])
def test_a_ball_thrown_up_to_a_ceiling(offset, named):
    """It gets so much higher than the ceiling, at no speed."""
    ceiling = Placed(Plane(), pose=((1.0, 0, 0, 0), (0, -1, 0, 0), (0, 0, -1, 1.0), (0, 0, 0, 1)))
    engine = tree([ball("a")], dt=0.01, static_shapes=[ceiling], contact=ContactSettings(restitution=0.5))
    start = engine.initial_state(1, DOUBLE)
    v = start.v.clone()
    v[0, 2] = math.sqrt(2 * 9.81 * (1.0 - R + offset))
    status = engine.rollout(State(start.q, v), 60).status
    assert status is not None
    assert status.converged.all()
    top = math.floor(float(v[0, 2]) / 9.81 / 0.01) + 1
    assert status.first_grazing_step.tolist() == [top if named else -1]


def test_what_falls_and_bounces_does_not_graze():
    engine = tree(
        [ball("a")], dt=0.01, static_shapes=[Placed(Plane())], contact=ContactSettings(restitution=0.5, friction=0.3)
    )
    start = engine.initial_state(1, DOUBLE)
    q = start.q.clone()
    q[0, 2] = 0.7
    status = engine.rollout(State(q, start.v), 300).status
    assert status is not None
    assert status.converged.all()
    assert status.first_grazing_step.tolist() == [-1]
    assert float(status.residual) < 1e-11


BOX = (0.4, 0.3, 0.2)


def flat_box(velocity, height=0.0, tilt=0.0, friction=0.4, steps=20):
    """The status of a homogeneous box that moves at this velocity from this height above the ground."""
    inertia = tuple((BOX[(k + 1) % 3] ** 2 + BOX[(k + 2) % 3] ** 2) / 12 for k in range(3))
    body = Body("box", None, [Joint("free")], mass=1.0, inertia=inertia, shapes=[Placed(Box(BOX))])
    settings = ContactSettings(friction=friction, restitution=0.0)
    engine = tree([body], dt=0.01, static_shapes=[Placed(Plane())], contact=settings)
    half = torch.tensor(tilt / 2, dtype=DOUBLE)
    turn = torch.stack([half.cos(), 0.6 * half.sin(), 0.8 * half.sin(), 0.0 * half])
    place = torch.tensor([0.0, 0.0, BOX[2] / 2 + height], dtype=DOUBLE)
    status = engine.rollout(State(torch.cat([place, turn])[None], torch.tensor([velocity], dtype=DOUBLE)), steps).status
    assert status is not None
    assert status.converged.all()
    return status


def test_corners_that_strike_at_the_same_time():
    """A box that falls flat on four corners, in the fifth step from 1 cm; with a tilt it strikes with one corner."""
    fall = [0.0] * 6
    assert flat_box(fall, height=0.01).first_grazing_step.tolist() == [5]
    assert flat_box(fall, height=0.03, tilt=0.05, steps=8).first_grazing_step.tolist() == [-1]


@pytest.mark.parametrize(
    ("velocity", "friction", "named"),
    [
        ([0.5, 0.2, 0, 0, 0, 1.0], 0.4, True),
        ([0.5, 0.2, 0, 0, 0, 0], 0.4, False),
        ([0.5, 0.2, 0, 0, 0, 1.0], 0.0, False),
        ([0.0] * 6, 0.4, False),
    ],
)
def test_a_flat_side_that_slides_and_spins(velocity, friction, named):
    """Its friction is undetermined; not if it does not spin, has no friction, or stands still."""
    assert flat_box(velocity, friction=friction).first_grazing_step.tolist() == [1 if named else -1]
