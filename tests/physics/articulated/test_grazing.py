"""Contacts that graze: the motion has no derivative there, and the status says where."""

import math

import pytest
import torch

from physvision import State
from physvision.core import Placed, Plane, Sphere
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
