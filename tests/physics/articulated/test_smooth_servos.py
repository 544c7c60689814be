"""Servos that saturate smoothly: closed forms, limits, gradients under every contact, model files."""

import math
from dataclasses import replace

import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import ModelError, Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Body, ContactSettings, Joint, ServoSettings, Transmission, scenes, tree

DOUBLE = torch.float64
MASS, STIFFNESS, DAMPING, BOUND = 2.0, 300.0, 4.0, 5.0
METHODS = ["event", pytest.param("compliant", marks=pytest.mark.extended)]


def slider(contact, dt=0.01, **options):
    servo = Transmission(
        {"x": 1.0}, stiffness=STIFFNESS, damping=DAMPING, force_range=(-BOUND, 2 * BOUND), smooth=True, **options
    )
    body = Body("slider", None, [Joint("prismatic", (1, 0, 0), name="x")], mass=MASS)
    return tree([body], dt=dt, gravity=(0, 0, 0), contact=contact, transmissions=[servo])


def one_step(engine, control, q=0.1, v=-0.3):
    """Velocity after one step from a control of the servo, and its derivative."""
    controls = torch.tensor([[[0.0, control]]], dtype=DOUBLE, requires_grad=True)
    state = State(torch.tensor([[q]], dtype=DOUBLE), torch.tensor([[v]], dtype=DOUBLE))
    path = engine.rollout(state, 1, controls)
    assert path.status is not None
    assert path.status.converged.all()
    (slope,) = torch.autograd.grad(path.v[0, 1, 0], controls)
    return float(path.v[0, 1, 0].detach()), float(slope[0, 0, 1])


def saturation(x):
    """Force that a demand x makes, and its derivative."""
    bound = 2 * BOUND if x > 0 else BOUND
    root = math.hypot(1.0, x / bound)
    return x / root, root**-3


@pytest.mark.parametrize("contact", METHODS)
@pytest.mark.parametrize("control", [0.0, 31.0, 60.0, 3e3, -3e3])
def test_a_step_is_that_of_the_linearized_force(contact, control):
    """By events spring and damping are those of the end of the step, with compliant contact damping alone."""
    h, q, v = 0.01, 0.1, -0.3

    def after(control):
        force, slope = saturation(control - STIFFNESS * q - DAMPING * v)
        if contact == "event":
            drag = slope * (DAMPING + h * STIFFNESS)
            return (MASS * v + h * (force + slope * DAMPING * v)) / (MASS + h * drag)
        return v + h * force / (MASS + h * slope * DAMPING)

    velocity, slope = one_step(slider(contact), control)
    assert velocity == pytest.approx(after(control), rel=1e-12)
    shift = 1e-3 * max(1.0, abs(control) / 30)
    expected = (after(control + shift) - after(control - shift)) / (2 * shift)
    assert slope == pytest.approx(expected, rel=1e-5)
    assert slope > 0


def test_hard_bounds_have_no_gradient_beyond_them():
    """The same servo without the option, which is what the option is for."""
    engine = slider("event")
    joint = Transmission({"x": 1.0}, stiffness=STIFFNESS, damping=DAMPING, force_range=(-BOUND, 2 * BOUND))
    hard = tree(
        [Body("slider", None, [Joint("prismatic", (1, 0, 0), name="x")], mass=MASS)], dt=0.01, gravity=(0, 0, 0),
        contact="event", transmissions=[joint],
    )  # fmt: skip
    assert one_step(hard, 300.0)[1] == 0.0
    assert one_step(engine, 300.0)[1] > 1e-7


@pytest.mark.parametrize("control", [1e6, -1e6])
def test_the_force_stays_within_its_bounds(control):
    """However much is demanded, the slider accelerates by the bound, and never by more."""
    engine = slider("event", dt=1e-3)
    controls = torch.tensor([0.0, control], dtype=DOUBLE).expand(1, 500, 2)
    path = engine.rollout(State(*torch.zeros(2, 1, 1, dtype=DOUBLE)), 500, controls)
    speed = (2 * BOUND if control > 0 else -BOUND) * 0.5 / MASS
    assert float(path.v[0, -1, 0]) == pytest.approx(speed, rel=1e-6)
    assert (path.v[0].diff(dim=0).abs() <= abs(speed) * 2e-3 * (1 + 1e-12)).all()


def test_a_smooth_speed_is_approached():
    """A motor that asks for at most 0.5 m/s, of which it has less the nearer its target is."""
    engine = slider("event", max_speed=0.5)
    bound = 0.5 * DAMPING
    demand = 40.0 - STIFFNESS * 0.1
    demand = demand / math.hypot(1.0, demand / bound)
    force, slope = saturation(demand + DAMPING * 0.3)
    expected = (MASS * -0.3 + 0.01 * (force - slope * DAMPING * 0.3)) / (MASS + 0.01 * slope * DAMPING)
    velocity, derivative = one_step(engine, 40.0)
    assert velocity == pytest.approx(expected, rel=1e-12)
    assert derivative > 0


def leg(contact, speed, integrator):
    """A hip and a knee with smooth servos above the ground that the foot strikes."""
    body = {"mass": 0.8, "inertia": (0.01, 0.012, 0.004), "center_of_mass": (0, 0, -0.1)}
    foot = Placed(Sphere(0.05), pose=((1.0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, -0.25), (0, 0, 0, 1)))
    bodies = [
        Body("trunk", None, [Joint("prismatic", (0, 0, 1), name="lift")], mass=3.0),
        Body("thigh", "trunk", [Joint("revolute", (0, 1, 0.2), name="hip")], **body),
        Body(
            "shin", "thigh", [Joint("revolute", (0, 1, 0), name="knee")], position=(0, 0, -0.25), shapes=[foot], **body
        ),
    ]
    servos = [
        Transmission({"hip": 1.0}, "servo", 90.0, 0.6, rest_position=0.3, force_range=(-4.0, 6.0), smooth=True),
        Transmission(
            {"hip": 0.5, "knee": 1.0}, stiffness=60.0, damping=1.2, rest_position=-0.6, force_range=(-10.0, 8.0),
            max_speed=speed, smooth=True,
        ),
    ]  # fmt: skip
    return tree(
        bodies,
        dt=0.01 if contact == "event" else 2e-3,
        contact=ContactSettings(contact, friction=0.6),
        static_shapes=[Placed(Plane())],
        transmissions=servos,
        integrator=integrator,
    )


@pytest.mark.parametrize("speed", [math.inf, 2.0])
@pytest.mark.parametrize(
    ("contact", "integrator"),
    [
        ("event", "semi_implicit_euler"),
        pytest.param("compliant", "semi_implicit_euler", marks=pytest.mark.extended),
        pytest.param("compliant", "runge_kutta_4", marks=pytest.mark.extended),
    ],
)
def test_gradients(contact, integrator, speed):
    """Controls demand several times what the servos may, and still have derivatives."""
    engine, checked = leg(contact, speed, integrator), 0
    leaves = ["stiffness", "damping", "rest_position", "force_range", *(["max_speed"] if speed < math.inf else [])]
    for seed in range(3):
        rng = torch.Generator().manual_seed(seed)
        controls = torch.randn(1, 30, engine.nu, generator=rng, dtype=DOUBLE)
        controls[..., -2:] *= 30.0
        values = {
            "q": torch.tensor([[0.62, 0.2, -0.5]], dtype=DOUBLE)
            + 0.02 * torch.randn(1, 3, generator=rng, dtype=DOUBLE),
            "v": torch.randn(1, 3, generator=rng, dtype=DOUBLE),
            "controls": controls,
        }
        values |= {name: getattr(engine.properties, f"transmission_{name}").clone() for name in leaves}
        weights = torch.randn(6, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            properties = {f"transmission_{name}": given[name] for name in leaves}
            if "max_speed" in leaves:  # that of the first servo is infinite
                properties["transmission_max_speed"] = given["max_speed"].nan_to_num(posinf=math.inf)
            path = engine.rollout(State(given["q"], given["v"]), 30, given["controls"], properties)
            assert path.status is not None
            assert path.status.converged.all()
            return torch.cat([path.q[:, -1], path.v[:, -1]], 1) @ weights

        def along(name, value, rng=rng):
            direction = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
            if name in ("q", "v", "controls"):
                return direction
            return torch.where(value.isinf(), 0.0, direction * value)

        checked += compare(loss, values, along)
        variable = controls.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss({**values, "controls": variable}).sum(), variable)
        # A step in which the joint's speed changes so much that its force would leave the range is cut off.
        assert (gradient[0, :, -2:] != 0).double().mean() > 0.8
    assert checked >= 2 * 3 + 9


@pytest.mark.parametrize("contact", METHODS)
def test_the_quadruped_of_a_file(contact):
    """Its servos have a range of forces; demanded far beyond it, only smooth ones have a gradient."""
    slopes = {}
    for smooth in (False, True):
        engine = articulated.load(
            scenes.path("quadruped"),
            2e-3,
            contact=contact,
            servos=ServoSettings(scenes.MAX_SERVO_SPEED["quadruped"], smooth),
        )
        start = engine.initial_state(1, DOUBLE)
        controls = torch.full((1, 20, engine.nu), 1e4, dtype=DOUBLE, requires_grad=True)
        path = engine.rollout(start, 20, controls)
        assert path.status is not None
        assert path.status.converged.all()
        (slope,) = torch.autograd.grad(path.q[0, -1].square().sum(), controls)
        slopes[smooth] = float(slope.abs().max())
    assert slopes[False] == 0.0
    assert slopes[True] > 0.0


def test_bad_servos():
    servo = Transmission({"x": 1.0}, stiffness=1.0, smooth=True)
    body = Body("slider", None, [Joint("prismatic", (1, 0, 0), name="x")], mass=MASS)
    for transmission in (replace(servo, force_range=(0.0, 1.0)), replace(servo, kind="friction")):
        with pytest.raises(ModelError, match="smooth needs a servo with a force_range around zero"):
            tree([body], contact="event", transmissions=[transmission])
