"""Contacts that are forces: rest and sliding in closed form, bad input."""

import math

import pytest
import torch
from contact_comparison import Penalty, Soft
from physics.articulated.trees import contact_tree

from physvision import State
from physvision.core import Box, InputError, Placed, Plane, Sphere
from physvision.physics.articulated import Body, Joint

DOUBLE = torch.float64
LAWS = [Penalty(stiffness=2e3, damping=30.0), Soft(stiffness=2e3, distance=4e-3)]
MASS, GRAVITY = 0.8, 10.0


def free(shape, damping=0.0):
    return Body("body", None, [Joint("free", damping=damping)], mass=MASS, inertia=(0.01,) * 3, shapes=[Placed(shape)])


def world(bodies, law, **options):
    return contact_tree(bodies, gravity=(0, 0, -GRAVITY), static_shapes=[Placed(Plane())], contact=law, **options)


@pytest.mark.extended
@pytest.mark.parametrize("law", LAWS, ids=["penalty", "soft"])
def test_a_ball_rests_where_its_weight_is_carried(law):
    """k g = −m G of a penalty, k δ log(1 + exp(−g/δ)) = m G of a soft force; a drag brings the ball there."""
    engine = world([free(Sphere(0.1), damping=5.0)], law, dt=1e-3)
    start = engine.initial_state(dtype=DOUBLE)
    end = engine.rollout(State(start.q + torch.tensor([0, 0, 0.11, 0, 0, 0, 0]), start.v), 8000).final
    gap = -MASS * GRAVITY / law.stiffness
    if isinstance(law, Soft):
        gap = -law.distance * math.log(math.expm1(MASS * GRAVITY / (law.stiffness * law.distance)))
    assert float(end.q[0, 2]) - 0.1 == pytest.approx(gap, rel=1e-9)
    assert float(end.v.abs().max()) < 1e-9
    listed = engine.contacts(end, max_separation=1.0)
    torch.testing.assert_close(listed.impulse[0, 0], torch.tensor([0, 0, MASS * GRAVITY * 1e-3], dtype=DOUBLE))


@pytest.mark.extended
@pytest.mark.parametrize("law", LAWS, ids=["penalty", "soft"])
def test_friction_of_what_slides_is_the_normal_force_times_its_coefficient(law):
    """Δp_x = −μ (m G T + Δp_z), but for what friction lacks at the speed v: a share of ε² / 2 v²."""
    friction, total, speed = 0.3, 0.2, 4.0
    engine = world([free(Box((0.4, 0.4, 0.1)))], law, dt=1e-3, friction=friction)
    start = engine.initial_state(dtype=DOUBLE)
    q, v = start.q + torch.tensor([0, 0, 0.05, 0, 0, 0, 0]), start.v.clone()
    v[0, 0] = speed
    end = engine.rollout(State(q, v), round(total / 1e-3)).final
    lost = friction * (GRAVITY * total + float(end.v[0, 2]))
    assert float(end.v[0, 0]) - speed == pytest.approx(-lost, rel=(law.slip_speed / (speed - lost)) ** 2)


def test_bad_numbers_are_named():
    with pytest.raises(InputError, match="stiffness"):
        Penalty(stiffness=-1.0)
    with pytest.raises(InputError, match="damping"):
        Penalty(damping=-1.0)
    with pytest.raises(InputError, match="distance"):
        Soft(distance=0.0)
