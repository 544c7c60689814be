"""Contacts that are forces: rest and sliding in closed form, gradients against differences, bad input."""

import math

import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import Box, Capsule, InputError, Placed, Plane, Sphere
from physvision.physics.articulated import Body, Joint, Penalty, Soft, tree

DOUBLE = torch.float64
LAWS = [Penalty(stiffness=2e3, damping=30.0), Soft(stiffness=2e3, distance=4e-3)]
MASS, GRAVITY = 0.8, 10.0


def free(shape, damping=0.0):
    return Body("body", None, [Joint("free", damping=damping)], mass=MASS, inertia=(0.01,) * 3, shapes=[Placed(shape)])


def world(bodies, law, **options):
    return tree(bodies, gravity=(0, 0, -GRAVITY), scenery=[Placed(Plane())], contact=law, **options)


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
    listed = engine.contacts(end, within=1.0)
    torch.testing.assert_close(listed.impulse[0, 0], torch.tensor([0, 0, MASS * GRAVITY * 1e-3], dtype=DOUBLE))


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


LEAVES = (
    "mass", "center_of_mass", "inertia", "position", "orientation", "joint_damping", "joint_limits", "gravity",
    "friction", "shape_pose", "shape_size",
)  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=["penalty", "soft"])
def test_gradients_of_every_input_and_property(law):
    """A robot of three bodies with stops falls on the ground and on its own foot, and slides."""
    knee = Joint("revolute", (0, 1, 0.1), damping=0.1, limits=(-0.4, 0.1))
    ankle = Joint("prismatic", (0, 0, 1), limits=(-0.02, 0.3))
    bodies = [
        Body(
            "trunk", None, [Joint("free")], mass=1.0, center_of_mass=(0.01, 0, 0), inertia=(0.02, 0.03, 0.02),
            shapes=[Placed(Box((0.3, 0.2, 0.1)))],
        ),
        Body(
            "leg", "trunk", [knee], mass=0.3, center_of_mass=(0, 0, -0.1), inertia=(0.003, 0.003, 0.001),
            position=(0.1, 0, -0.06), shapes=[Placed(Capsule(0.03, 0.2))],
        ),
        Body(
            "foot", "leg", [ankle], mass=0.2, inertia=(0.001,) * 3, position=(0, 0, -0.2),
            shapes=[Placed(Sphere(0.05))],
        ),
    ]  # fmt: skip
    engine = world(bodies, law, dt=2e-3, friction=0.5)
    steps, rng = 60, torch.Generator().manual_seed(2)
    start = engine.initial_state(dtype=DOUBLE)
    q = engine.integrate(start.q, 0.2 * torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE))
    q[0, 2] = 0.31
    v = torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE)
    v[0, 2] = -1.0
    own = engine.properties
    values = {"q": q, "v": v, "u": 0.3 * torch.randn(1, steps, engine.nu, generator=rng, dtype=DOUBLE)}
    values |= {name: getattr(own, name).clone() for name in LEAVES}
    weights = torch.randn(2, engine.nq, generator=rng, dtype=DOUBLE)
    deepest = []

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), steps, given["u"], {name: given[name] for name in LEAVES})
        deepest.append(float(path.status.overlap.min()))
        return (path.q @ weights[0] + path.v @ weights[1, : engine.nv]).mean(1)

    def direction(name, value):
        along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if name in ("mass", "friction", "shape_size", "joint_damping"):
            along = along * value
        if name == "joint_limits":
            along = torch.where(value.isfinite(), along, 0.0)
        return (along + along.mT) * 0.001 if name == "inertia" else along

    assert compare(loss, values, direction) >= 12  # of 14
    assert min(deepest) > 1e-3


def test_bad_numbers_are_named():
    with pytest.raises(InputError, match="stiffness"):
        Penalty(stiffness=-1.0)
    with pytest.raises(InputError, match="damping"):
        Penalty(damping=-1.0)
    with pytest.raises(InputError, match="distance"):
        Soft(distance=0.0)
