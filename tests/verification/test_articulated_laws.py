"""Laws of mechanics that the articulated engine must keep."""

# pyright: reportAttributeAccessIssue=false

import math
import warnings

import numpy as np
import pytest
import torch
from physics.articulated.trees import everything, random_bodies, random_state

from physvision import State
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint, tree


def test_free_fall_and_a_free_spin():
    """A thrown body: its center of mass flies a parabola, and it keeps its spin about a principal axis."""
    body = Body("stone", None, [Joint("free")], mass=2.0, center_of_mass=(0.1, 0.0, 0.0), inertia=(0.1, 0.2, 0.3))
    engine = tree([body], dt=0.001, integrator="runge_kutta_4")
    q = torch.tensor([[0.0, 0, 1, 1, 0, 0, 0]], dtype=torch.float64)
    v = torch.tensor([[1.0, 0.5, 3.0, 0.0, 0.0, 2.0]], dtype=torch.float64)
    end = engine.rollout(State(q, v), 500).final
    pose = engine.poses(end)[0, 0].numpy()
    center = pose[:3, 3] + pose[:3, :3] @ [0.1, 0, 0]
    # The center starts at (0.1, 0, 1) with the velocity of the origin plus ω × c.
    expected = np.array([0.1, 0, 1]) + 0.5 * np.array([1.0, 0.7, 3.0 - 0.25 * 9.81])
    np.testing.assert_allclose(center, expected, atol=1e-9)
    assert math.atan2(pose[1, 0], pose[0, 0]) == pytest.approx(1.0, abs=1e-9)


def test_small_swings_of_a_rod_take_the_time_they_should():
    """Period 2π √(2 l / 3 g) of a thin rod hung at its end; the swing is small enough for 1e-6."""
    engine = articulated.chain([0.8], dt=0.001, integrator="runge_kutta_4")
    period = 2 * math.pi * math.sqrt(2 * 0.8 / (3 * 9.81))
    swing = (
        engine.rollout(State(torch.full((1, 1), 1e-3).double(), torch.zeros(1, 1).double()), 3000).q[0, :, 0].numpy()
    )
    falls = np.flatnonzero((swing[:-1] > 0) & (swing[1:] <= 0))
    crossings = [k + swing[k] / (swing[k] - swing[k + 1]) for k in falls]
    assert (crossings[-1] - crossings[0]) * 0.001 / (len(crossings) - 1) == pytest.approx(period, rel=1e-6)


def test_energy_of_a_wild_pendulum_over_ten_seconds():
    """The drift of Runge–Kutta at 1 ms stays under 5e-5 of the peak-to-peak kinetic energy."""
    engine = articulated.chain([0.5] * 3, dt=0.001, integrator="runge_kutta_4")
    start = State(torch.tensor([[1.6, 0.5, 0.5]]).double(), torch.zeros(1, 3).double())
    path = engine.rollout(start, 10_000).flatten()
    kinetic, potential = engine.energy(path)
    total = kinetic + potential
    assert float((total - total[0]).abs().max()) < 5e-5 * float(kinetic.max() - kinetic.min())


def test_runge_kutta_is_of_fourth_order():
    start = State(torch.tensor([[1.0, 0.7]]).double(), torch.tensor([[0.3, -1.0]]).double())

    def end(substeps):
        engine = articulated.chain([0.5, 0.4], dt=0.05, integrator="runge_kutta_4", substeps=substeps)
        return engine.rollout(start, 10).final.q

    exact = end(64)
    errors = [float((end(n) - exact).norm()) for n in (2, 4, 8)]
    orders = np.log2([errors[0] / errors[1], errors[1] / errors[2]])
    assert (orders > 3.6).all()
    assert (orders < 4.4).all()


@pytest.mark.parametrize("speed", [30.0, 100.0, 130.0, 200.0])
def test_steps_too_coarse_for_a_spin_are_named(speed):
    """Where the energy of a free body is off by more than 5 % after 1 s, the status says so; 32 substeps cure it."""
    body = Body("stone", None, [Joint("free")], inertia=(0.1, 0.2, 0.3))
    start = None
    for substeps in (1, 32):
        engine = tree([body], gravity=(0.0, 0.0, 0.0), integrator="runge_kutta_4", substeps=substeps)
        v = torch.tensor([[0.0, 0.0, 0.0, 0.3, 0.9, 0.3]]).double() * speed
        start = State(engine.initial_state(1, torch.float64).q, v)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            path = engine.rollout(start, 100)
        drift = abs(float(sum(engine.energy(path.final)) / sum(engine.energy(start))) - 1)
        assert path.status is not None
        named = int(path.status.first_underresolved_step) >= 0
        assert bool(path.status.converged)
        assert named or drift < 0.05
        assert named == (speed > 120 and substeps == 1)
        assert bool(torch.isfinite(path.q).all())


def test_a_floating_tree_keeps_its_momentum():
    """Nothing pushes from outside: the center of mass moves straight on, whatever the joints do."""
    bodies = random_bodies(5, ["revolute", "ball", "prismatic", "revolute"], True)
    engine = tree(bodies, gravity=(0.0, 0.0, 0.0), dt=0.0005, integrator="runge_kutta_4")
    state = random_state(engine, 5)
    path = engine.rollout(state, 400).flatten()
    poses, mass = engine.poses(path), engine.properties.mass
    centers = poses[..., :3, 3] + (poses[..., :3, :3] @ engine.properties.center_of_mass.unsqueeze(-1)).squeeze(-1)
    whole = (mass[:, None] * centers).sum(1) / mass.sum()
    straight = whole[0] + torch.linspace(0, 1, 401, dtype=torch.float64)[:, None] * (whole[-1] - whole[0])
    assert float((whole - straight).abs().max()) < 1e-8


def test_power_is_the_change_of_energy():
    """dE/dt = τ·v − damping: from the derivative of energy along the motion, with every kind of joint."""
    engine = everything()
    state = random_state(engine, 1, batch=3)
    torque = torch.randn(3, engine.nv, dtype=torch.float64)
    acceleration = engine.acceleration(state, torque)
    h = 1e-6

    def total(sign):
        moved = State(engine.integrate(state.q, sign * h * state.v), state.v + sign * h * acceleration)
        return sum(engine.energy(moved))

    rate = (total(1) - total(-1)) / (2 * h)
    p = engine.properties
    drag = p.joint_damping * state.v + p.friction_loss * torch.tanh(state.v / 0.01)
    torch.testing.assert_close(rate, ((torque - drag) * state.v).sum(-1), rtol=1e-6, atol=1e-6)


def test_dry_friction_stops_a_slider():
    """A slider with friction F and mass m stops after v²m/2F, and stays."""
    slider = Body("puck", None, [Joint("prismatic", (1, 0, 0), friction_loss=2.0)], mass=1.0)
    engine = tree([slider], dt=0.002, gravity=(0.0, 0.0, 0.0))
    path = engine.rollout(State(torch.zeros(1, 1).double(), torch.ones(1, 1).double()), 1000)
    # First order in dt, and the smooth region of 1 cm/s lengthens the way by about its speed times its time.
    assert float(path.q[0, -1]) == pytest.approx(0.25, abs=0.005)
    assert float(path.v[0, -1].abs()) < 1e-3


@pytest.mark.parametrize("damping", [1e3, 1e6])
def test_strong_damping_is_stable_at_any_step(damping):
    slider = Body("puck", None, [Joint("prismatic", (1, 0, 0), damping=damping)], mass=1.0)
    engine = tree([slider], dt=0.1)
    path = engine.rollout(State(torch.zeros(1, 1).double(), torch.ones(1, 1).double()), 50)
    assert bool((path.v.diff(dim=1) <= 0).all())
    assert float(path.v[0, -1].abs()) < 1e-9
