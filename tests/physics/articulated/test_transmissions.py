"""Bounded rows: dry friction of joints, limited servos, ties. Closed forms, momentum, differences, bad input."""

# pyright: reportAttributeAccessIssue=false

import math

import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import InputError, ModelError, Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactSettings, Joint, Transmission, tree

DOUBLE = torch.float64


def row(*numbers):
    return torch.tensor([numbers], dtype=DOUBLE)


def slider(transmissions=(), dt=0.01, mass=2.0, **joint):
    body = Body("slider", None, [Joint("prismatic", (1, 0, 0), name="x", **joint)], mass=mass)
    return tree([body], dt=dt, gravity=(0, 0, 0), contact="event", transmissions=transmissions)


def two_sliders(transmissions, dt=0.01, masses=(2.0, 3.0), contact="event", shapes=((), ())):
    bodies = [
        Body(name, None, [Joint("prismatic", (1, 0, 0), name=name)], mass=mass, shapes=own)
        for name, mass, own in zip("ab", masses, shapes, strict=True)
    ]
    return tree(
        bodies, dt=dt, gravity=(0, 0, 0), contact=ContactSettings(contact, restitution=1.0), transmissions=transmissions
    )


def pushed(engine, force, steps, pulls=0):
    """The same force on the first velocity in each step, and nothing else."""
    result = torch.zeros(1, steps, engine.nu, dtype=DOUBLE)
    result[..., 0] = force
    return result


@pytest.mark.parametrize("force", [4.9, -4.9, 0.0])
def test_dry_friction_holds_what_is_pushed_less_than_it_resists(force):
    engine = slider(friction_loss=5.0)
    path = engine.rollout(State(row(0.3), row(0.0)), 100, pushed(engine, force, 100))
    assert float((path.q - 0.3).abs().max()) < 1e-14


@pytest.mark.parametrize("force", [6.0, -6.0])
def test_dry_friction_is_a_constant_force_on_what_slides(force):
    engine, sign = slider(friction_loss=5.0), math.copysign(1.0, force)
    loss = torch.tensor([5.0], dtype=DOUBLE, requires_grad=True)
    path = engine.rollout(State(row(0.0), row(0.0)), 100, pushed(engine, force, 100), {"friction_loss": loss})
    assert float(path.q[0, -1, 0].detach()) == pytest.approx(sign * (6.0 - 5.0) / 2.0 / 2, abs=1e-12)
    (slope,) = torch.autograd.grad(path.q[0, -1, 0], loss)
    assert float(slope) == pytest.approx(-sign / 2.0 / 2, abs=1e-12)


def test_dry_friction_stops_what_slides_for_good():
    """From v0 it takes m v0 / f seconds and v0 / 2 times as many meters; here both are whole steps."""
    engine = slider(friction_loss=5.0)
    path = engine.rollout(State(row(0.0), row(1.0)), 100)
    assert float(path.q[0, 40, 0]) == pytest.approx(0.4 / 2, abs=1e-12)
    assert float((path.q[0, 40:] - path.q[0, 40]).abs().max()) < 1e-13


def test_the_place_of_a_stop_within_a_step_is_of_second_order_in_its_length():
    """Velocities are right at the end of each step; within the one in which it stops the force is taken as constant."""
    exact = 0.987 * 0.987 * 2.0 / 5.0 / 2
    for dt in (4e-3, 1e-3):
        steps = round(0.6 / dt)
        end = slider(dt=dt, friction_loss=5.0).rollout(State(row(0.0), row(0.987)), steps).q[0, -1, 0]
        assert abs(float(end) - exact) < 0.25 * 5.0 / 2.0 * dt * dt


@pytest.mark.parametrize("stiffness", [30.0, 3e6])
def test_a_servo_without_limits_is_that_of_a_joint(stiffness):
    """Spring and drag at the end of the step, the spring's rest at 0.7 by the control or by itself."""
    of_joint = slider(
        stiffness=stiffness, damping=1.5, spring_reference=(0.7,), implicit_spring=True, limits=(-9.0, 9.0)
    )
    start = State(row(0.2), row(-0.4))
    target = of_joint.rollout(start, 300)
    for rest, control in ((0.7 / 0.5, 0.0), (0.0, 0.7 * stiffness * 2)):
        # With gear g the joint feels g² of stiffness and damping.
        servo = Transmission({"x": 2.0}, stiffness=stiffness / 4, damping=1.5 / 4, rest_position=rest)
        engine = slider([servo])
        controls = torch.tensor([0.0, control / 4], dtype=DOUBLE).expand(1, 300, 2)
        path = engine.rollout(start, 300, controls)
        assert float((path.q - target.q).abs().max()) < 1e-11
        assert float((path.v - target.v).abs().max()) < 1e-9


def test_a_velocity_servo_with_a_largest_force():
    """At its limit it accelerates at F / m until the wanted velocity is reached, which it then keeps, and no longer."""
    servo = Transmission({"x": 1.0}, damping=1e9, force_range=(-4.0, 4.0))
    engine = slider([servo])
    target, steps = 0.6, 60
    controls = torch.tensor([0.0, target * 1e9], dtype=DOUBLE).expand(1, steps, 2).clone()
    path = engine.rollout(State(row(0.0), row(0.0)), steps, controls)
    times = torch.arange(31, dtype=DOUBLE) * 0.01
    assert path.v[0, :31, 0].tolist() == pytest.approx((times * 2.0).tolist(), abs=1e-8)
    assert path.v[0, 30:, 0].tolist() == pytest.approx([target] * 31, abs=1e-8)
    # Pushed harder than it can resist, it gives way by what is left.
    controls[..., 0] = -7.0
    path = engine.rollout(State(row(0.0), row(0.6)), 10, controls[:, :10])
    assert float(path.v[0, -1, 0]) == pytest.approx(0.6 + (4.0 - 7.0) / 2.0 * 0.1, abs=1e-9)


def test_a_servo_with_a_largest_speed_is_a_motor_with_a_gain():
    """Far from its target it runs at that speed, near it at the distance as a step begins times the gain.

    What it asks for it has at the end of the step, but for m / (h c) = 2e-7 of it.
    """
    gain, speed, damping = 30.0, 0.5, 1e9
    servo = Transmission({"x": 1.0}, stiffness=gain * damping, damping=damping, max_speed=speed)
    target, q, before, expected = 0.103, 0.0, 0.0, [0.0]
    controls = torch.tensor([0.0, gain * damping * target], dtype=DOUBLE).expand(1, 60, 2)
    path = slider([servo]).rollout(State(row(0.0), row(0.0)), 60, controls)
    for _ in range(60):
        candidates = max(-speed, min(speed, gain * (target - q)))
        q, before = q + 0.01 * (before + candidates) / 2, candidates
        expected.append(q)
    assert path.q[0, :, 0].tolist() == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ModelError, match="max_speed must be at least zero and needs a servo with damping"):
        slider([Transmission({"x": 1.0}, stiffness=1.0, max_speed=1.0)])


def test_what_is_tied_moves_as_one():
    """x_a = 3 x_b: a force on a accelerates m_a + m_b / 9; energy and tie stay."""
    engine = two_sliders([Transmission({"a": 1.0, "b": -3.0}, "equality")])
    path = engine.rollout(State(row(0.3, 0.1), row(0.6, 0.2)), 100, pushed(engine, 1.4, 100))
    acceleration = 1.4 / (2.0 + 3.0 / 9)
    assert float(path.q[0, -1, 0]) == pytest.approx(0.3 + 0.6 + acceleration / 2, abs=1e-11)
    assert float((path.q[0, :, 0] - 3 * path.q[0, :, 1]).abs().max()) < 1e-12


def test_a_tie_that_is_off_closes():
    engine = two_sliders([Transmission({"a": 1.0, "b": -1.0}, "equality", rest_position=0.5)])
    path = engine.rollout(State(row(0.4, 0.0), row(0.0, 0.0)), 200)
    separation = path.q[0, :, 0] - path.q[0, :, 1] - 0.5
    assert float(separation[-1].abs()) < 1e-9
    assert bool((separation <= 1e-12).all())


def test_an_impact_is_felt_through_a_tie():
    """A ball of mass 1 strikes a, tied to b at a tenth of its way: elastic against a mass of m_a + m_b / 100."""
    ball = Body("ball", None, [Joint("prismatic", (1, 0, 0), name="ball")], mass=1.0, shapes=[Placed(Sphere(0.1))])
    bodies = [
        Body("a", None, [Joint("prismatic", (1, 0, 0), name="a")], mass=2.0, shapes=[Placed(Sphere(0.1))]),
        Body("b", None, [Joint("prismatic", (1, 0, 0), name="b")], mass=3.0, position=(0, 5, 0)),
    ]
    engine = tree(
        [ball, *bodies], dt=0.01, gravity=(0, 0, 0), contact=ContactSettings(restitution=1.0),
        transmissions=[Transmission({"a": 1.0, "b": -10.0}, "equality")],
    )  # fmt: skip
    path = engine.rollout(State(row(-0.5, 0.0, 0.0), row(1.0, 0.0, 0.0)), 60)
    mass = 2.0 + 3.0 / 100
    assert float(path.v[0, -1, 1]) == pytest.approx(2 / (1 + mass), abs=1e-11)
    assert float(path.v[0, -1, 2]) == pytest.approx(2 / (1 + mass) / 10, abs=1e-11)
    assert float(path.v[0, -1, 0]) == pytest.approx((1 - mass) / (1 + mass), abs=1e-11)


LIMIT = Transmission({"a": -1.0, "b": -1.0}, "limit", rest_position=-0.253)  # a + b is at most 0.253


def test_a_limit_of_a_combination_is_an_inelastic_stop():
    """The impulse λ along −(1, 1) that stops the sum of a unit velocity: 1 = λ (1/2 + 1/3); it is felt by both."""
    path = two_sliders([LIMIT]).rollout(State(row(0.0, 0.0), row(1.0, 0.0)), 100)
    torch.testing.assert_close(path.final.v, row(0.4, -0.4), rtol=0, atol=1e-9)
    total = path.q[0].sum(-1)
    # The step that ends at the limit takes the mean velocity: at most half of it beyond, which is recovered.
    assert float(total.max()) < 0.253 + 0.5 * 0.01
    assert float(total[-1]) == pytest.approx(0.253, abs=1e-9)
    away = two_sliders([LIMIT]).rollout(State(row(0.25, 0.0), row(-1.0, 0.0)), 20)
    torch.testing.assert_close(away.final.v, row(-1.0, 0.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps", [24, 27, 40])
def test_gradients_of_a_limit(steps):
    """Before the stop, in the step that reaches it or the recovery, and at rest on it."""
    engine, weights = two_sliders([LIMIT]), torch.tensor([0.7, -0.4], dtype=DOUBLE)
    values = {"q": row(0.0, 0.01), "v": row(1.0, 0.02), "u": 0.1 * torch.ones(1, steps, 3, dtype=DOUBLE)}
    values["mass"] = torch.tensor([2.0, 3.0], dtype=DOUBLE)
    values["transmission_rest_position"] = torch.tensor([-0.253], dtype=DOUBLE)

    def loss(given):
        properties = {name: given[name] for name in ("mass", "transmission_rest_position")}
        end = engine.rollout(State(given["q"], given["v"]), steps, given["u"], properties).final
        return end.q @ weights + 0.3 * end.v @ weights.flip(0)

    rng = torch.Generator().manual_seed(0)
    checked = compare(loss, values, lambda _name, value: 0.1 * torch.randn(value.shape, generator=rng, dtype=DOUBLE))
    assert checked == len(values)


def leg(speeds=(math.inf, math.inf)):
    """A hip and a knee above the ground, with dry friction, limited servos, and a wheel tied to the knee."""
    body = {"mass": 0.8, "inertia": (0.01, 0.012, 0.004), "center_of_mass": (0, 0, -0.1)}
    foot = Placed(Sphere(0.05), pose=((1.0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, -0.25), (0, 0, 0, 1)))
    bodies = [
        Body("trunk", None, [Joint("prismatic", (0, 0, 1), name="lift")], mass=3.0),
        Body("thigh", "trunk", [Joint("revolute", (0, 1, 0.2), name="hip", friction_loss=0.3)], **body),
        Body(
            "shin", "thigh", [Joint("revolute", (0, 1, 0), name="knee", friction_loss=0.1)], position=(0, 0, -0.25),
            shapes=[foot], **body,
        ),
        Body("wheel", "trunk", [Joint("revolute", (1, 0, 0), name="wheel")], mass=0.4, inertia=(0.01, 0.01, 0.02)),
    ]  # fmt: skip
    rows = [
        Transmission(
            {"hip": 1.0}, stiffness=90.0, damping=0.6, rest_position=0.3, force_range=(-4.0, 6.0), max_speed=speeds[0]
        ),
        Transmission(
            {"hip": 0.5, "knee": 1.0},
            stiffness=60.0,
            damping=1.2,
            rest_position=-0.6,
            force_range=(-30.0, 30.0),
            max_speed=speeds[1],
        ),
        Transmission({"knee": 1.0, "wheel": -0.4}, "equality", rest_position=-0.5),
        Transmission({"wheel": 1.0, "hip": -1.0}, "friction", force_range=(-0.2, 0.4)),
    ]
    return tree(
        bodies, dt=0.01, contact=ContactSettings(friction=0.6), static_shapes=[Placed(Plane())], transmissions=rows
    )


@pytest.mark.parametrize("speeds", [(math.inf, math.inf), (2.0, 0.7)])
def test_gradients_of_all_rows(speeds):
    """Also where the foot strikes the ground within a step, which cuts the time that forces have."""
    engine, checked = leg(speeds), 0
    leaves = (
        *(
            "transmission_stiffness",
            "transmission_damping",
            "transmission_rest_position",
            "friction_loss",
            "mass",
            "position",
        ),
        *("joint_damping", "friction"),
    )
    for seed in range(3):
        rng = torch.Generator().manual_seed(seed)
        values = {
            "q": row(0.62, 0.2, -0.5, 0.0) + 0.02 * torch.randn(1, 4, generator=rng, dtype=DOUBLE),
            "v": torch.randn(1, 4, generator=rng, dtype=DOUBLE),
            "controls": torch.randn(1, 30, engine.nu, generator=rng, dtype=DOUBLE),
            "limits": engine.properties.transmission_force_range[:2].clone(),
        }
        if math.isfinite(speeds[0]):
            values["speeds"] = engine.properties.transmission_max_speed[:2].clone()
        values |= {name: getattr(engine.properties, name).clone() for name in leaves}
        weights = torch.randn(8, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            properties = {name: given[name] for name in leaves}
            rest = engine.properties.transmission_force_range[2:].expand(*given["limits"].shape[:-2], -1, -1)
            properties["transmission_force_range"] = torch.cat([given["limits"], rest], -2)
            if "speeds" in given:
                rest = engine.properties.transmission_max_speed[2:].expand(*given["speeds"].shape[:-1], -1)
                properties["transmission_max_speed"] = torch.cat([given["speeds"], rest], -1)
            path = engine.rollout(State(given["q"], given["v"]), 30, given["controls"], properties)
            assert path.status is not None
            assert path.status.converged.all()
            return torch.cat([path.q[:, -1], path.v[:, -1]], 1) @ weights

        def along(name, value, rng=rng):
            result = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
            return result if name in ("q", "v", "controls", "position") else result * value

        checked += compare(loss, values, along)
    assert checked >= 30  # of 36


def test_bad_rows():
    bodies = [Body("a", None, [Joint("ball", name="a")]), Body("b", None, [Joint("revolute", name="b")])]

    def result(*given, **options):
        return tree(bodies, contact="event", transmissions=[Transmission(*given, **options, name="pull")])

    with pytest.raises(ModelError, match="'pull': there is no joint 'c'"):
        result({"c": 1.0}, damping=1.0)
    with pytest.raises(ModelError, match="'pull': joint 'a' is neither revolute nor prismatic"):
        result({"a": 1.0}, damping=1.0)
    with pytest.raises(ModelError, match="needs stiffness or damping"):
        result({"b": 1.0})
    with pytest.raises(ModelError, match="expected force_range"):
        result({"b": 1.0}, damping=1.0, force_range=(1.0, -1.0))
    with pytest.raises(ModelError, match=r"expected a kind among .*, got 'rope'"):
        result({"b": 1.0}, "rope")
    with pytest.raises(ModelError, match="force_range of friction must contain zero"):
        result({"b": 1.0}, "friction", force_range=(1.0, 2.0))
    with pytest.raises(InputError, match="make the engine with contact='event'"):
        tree(bodies, transmissions=[Transmission({"b": 1.0}, damping=1.0)])
    with pytest.raises(InputError, match="dry friction is a constraint of its own"):
        slider().rollout(State(row(0.0), row(0.0)), 1, properties={"friction_loss": torch.ones(1, dtype=DOUBLE)})
