"""Pendulums, joints of every kind, motors, limits and springs against closed forms."""

# pyright: reportAttributeAccessIssue=false

import math

import numpy as np
import pytest
import torch
from physics.rigid2d.scenes import ball, start
from scipy.special import ellipk

from physvision.core import State
from physvision.physics import lcp, rigid2d


def pendulum(dt=1 / 30, angle=math.pi / 2, **joint):
    """The pendulum of the published engine: a ball of radius 20 on a rod of 100, gravity 100."""
    place = (100 * math.sin(angle), 100 * math.cos(angle))
    return rigid2d.World(
        [ball(place, name="bob")], [rigid2d.Revolute("bob", None, (0, 0), **joint)], gravity=(0, 100), dt=dt
    )


def rod_error(trajectory):
    return (trajectory.q[..., :2].norm(dim=-1) - 100).abs().max()


def test_a_pendulum_keeps_its_energy_and_its_rod():
    world = pendulum()
    trajectory = world.rollout(start(world), 300)
    kinetic, potential = world.energy(trajectory.flatten())
    # From 90° all energy is measured from the lowest point: m g l = 10,000.
    lost = (kinetic + potential - potential[0]).abs().max() / 10_000
    assert lost < 0.005
    assert rod_error(trajectory) < 1e-9 * 100


def test_the_joints_of_a_compliant_solver_yield():
    def stretching(**settings):
        joint = rigid2d.Revolute("bob", None, (0, 0))
        world = rigid2d.World([ball((100, 0), name="bob")], [joint], gravity=(0, 100), dt=1 / 30, **settings)
        final = world.rollout(start(world), 20).final
        return (final.q[0, :2] @ final.v[0, :2]).abs() / 100

    assert stretching() < 1e-9 * 100
    assert stretching(solver_settings=lcp.SolverSettings(joint_compliance=1e-3)) > 1e-7 * 100


def test_a_pendulum_swings_with_its_exact_period():
    # A rigid disc on a rod: l + r²/2l in place of l, and the elliptic integral of the amplitude. At dt the error of
    # the second-order scheme is (ω dt)²/24 in the period: with ω = 1 and dt = 1/300, 5e-7.
    world = pendulum(1 / 300)
    trajectory = world.rollout(start(world), 3000)
    along = trajectory.q[0, :, 0].numpy()
    time = np.arange(len(along)) / 300
    down = np.flatnonzero((along[:-1] > 0) & (along[1:] <= 0))
    crossings = time[down] + along[down] / (along[down] - along[down + 1]) / 300
    exact = 4 * ellipk(0.5) * math.sqrt((100 + 20**2 / 200) / 100)
    np.testing.assert_allclose(np.diff(crossings), exact, rtol=1e-5)


def test_two_pins_on_one_body_hold_it_and_redundant_rows_share_their_load():
    plank = rigid2d.Rectangle((100, 10), (0, 0), name="plank")
    pins = [rigid2d.Revolute("plank", None, (x, 0)) for x in (-40, 40)]
    world = rigid2d.World([plank], pins, gravity=(0, 100))
    mass = world.properties.mass.clone().requires_grad_()
    trajectory = world.rollout(start(world), 60, properties={"mass": mass})
    assert trajectory.status.converged.all()
    np.testing.assert_allclose(trajectory.q.detach(), 0, atol=1e-9)
    # It hangs from what does not move: its mass changes nothing.
    assert torch.autograd.grad(trajectory.q.square().sum(), mass)[0].abs() < 1e-9


def test_a_weld_makes_one_body_of_two():
    def world(joints, bodies):
        return rigid2d.World(bodies, joints, gravity=(0, 0))

    halves = [rigid2d.Rectangle((40, 20), (x, 0), mass=2, name=name) for x, name in ((-20, "left"), (20, "right"))]
    two = world([rigid2d.Weld("left", "right")], halves)
    single = world([], [rigid2d.Rectangle((80, 20), (0, 0), mass=4)])
    force = torch.zeros(1, 60, 6, dtype=torch.float64)
    force[..., 4] = 50  # on the right half, 20 from the center
    alike = torch.zeros(1, 60, 3, dtype=torch.float64)
    alike[..., 1], alike[..., 2] = 50, 0
    q = two.rollout(start(two), 60, force).q[0]
    # The force stays at the right half's center: torque 20·cos(angle)·50 about the middle.
    state = start(single)
    for k in range(60):
        alike[0, k, 2] = 20 * math.cos(state.q[0, 2]) * 50
        state = single.step(state, alike[:, k])
    center = (q[-1, :3] + q[-1, 3:]) / 2
    np.testing.assert_allclose(q[-1, 2], q[-1, 5], atol=1e-9)
    # The control is held over a step, so that the torque lags by half a step: 1e-2 relative over two seconds.
    np.testing.assert_allclose(center, state.q[0], rtol=2e-2)


@pytest.mark.parametrize(("kind", "still"), [(rigid2d.HoldX, 0), (rigid2d.HoldY, 1), (rigid2d.HoldAngle, 2)])
def test_holds_keep_one_coordinate_and_leave_the_others(kind, still):
    box = rigid2d.Rectangle((20, 20), (5, 7), velocity=(10, 20), spin=1.0, name="box")
    world = rigid2d.World([box], [kind("box")], gravity=(3, 4), dt=1 / 30)
    end = world.rollout(start(world), 30).final
    free = np.array([5 + 10 + 1.5, 7 + 20 + 2, 1.0])
    free[still] = (5, 7, 0)[still]
    np.testing.assert_allclose(end.q[0], free, rtol=1e-9, atol=1e-9)


def test_a_motor_turns_its_body_and_what_carries_it_the_other_way():
    wheel = rigid2d.Circle(10, (0, 0), mass=2, name="wheel")
    frame = rigid2d.Rectangle((60, 60), (0, 0), mass=3, name="frame")
    world = rigid2d.World([wheel, frame], [rigid2d.Revolute("wheel", "frame", motor=True)], gravity=(0, 0))
    assert world.nu == 7
    controls = torch.zeros(1, 30, 7, dtype=torch.float64)
    controls[..., 6] = 50
    end = world.rollout(start(world), 30, controls).final
    inertias = 2 * 10**2 / 2, 3 * (60**2 + 60**2) / 12
    np.testing.assert_allclose(end.v[0], [0, 0, 50 / inertias[0], 0, 0, -50 / inertias[1]], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(end.q[0, 2], 0.5 * 50 / inertias[0], rtol=1e-9)


def test_a_limit_stops_a_pendulum():
    world = pendulum(angle=math.radians(60), limits=(-0.3, 0.2))
    trajectory = world.rollout(start(world), 200)
    assert trajectory.status.converged.all()
    angle = trajectory.q[0, :, 2]
    assert angle.max() <= 0.2 + 1e-9
    # It falls onto its limit, has no restitution, and stays.
    np.testing.assert_allclose(angle[-1].abs(), 0.2, atol=1e-6)
    assert trajectory.v[0, -1].abs().max() < 1e-9


def test_joint_spring_and_damper_swing_as_they_should():
    # Without gravity: θ'' = −(k θ + d θ')/I about the pin, from 0.4 rad away.
    inertia = 100**2 + 20**2 / 2
    stiffness, damping = 4.0 * inertia, 0.5 * inertia
    world = rigid2d.World(
        [ball((100, 0), name="bob")],
        [rigid2d.Revolute("bob", None, (0, 0), stiffness=stiffness, damping=damping)],
        gravity=(0, 0),
        dt=1 / 300,
    )
    q = torch.tensor([[100 * math.cos(0.4), 100 * math.sin(0.4), 0.4]], dtype=torch.float64)
    angle = world.rollout(State(q, torch.zeros_like(q)), 600).q[0, :, 2].numpy()
    time = np.arange(601) / 300
    rate = math.sqrt(4 - 0.25**2)
    exact = 0.4 * np.exp(-0.25 * time) * (np.cos(rate * time) + 0.25 / rate * np.sin(rate * time))
    # Second order: (ω dt)²/24 of phase a radian, 4e-6 rad over 4 rad.
    np.testing.assert_allclose(angle, exact, atol=1e-5)


def test_a_mass_on_a_spring_oscillates():
    body = rigid2d.Circle(5, (0, 130), mass=2, name="mass")
    spring = rigid2d.Spring("mass", None, to=(0, 0), stiffness=18.0, length=100.0)
    world = rigid2d.World([body], [spring], gravity=(0, 0), dt=1 / 300)
    trajectory = world.rollout(start(world), 600)
    exact = 100 + 30 * np.cos(3 * np.arange(601) / 300)
    np.testing.assert_allclose(trajectory.q[0, :, 1], exact, atol=30 * 6 * (3 / 300) ** 2 / 24 * 1.1)


def test_damping_fades_velocity():
    world = rigid2d.World([ball((0, 0), (100, 0), velocity_decay=0.7)], gravity=(0, 0), dt=1 / 300)
    end = world.rollout(start(world), 300).final
    np.testing.assert_allclose(end.v[0, 0], 100 * math.exp(-0.7), rtol=(0.7 / 300) ** 2)
    np.testing.assert_allclose(end.q[0, 0], 100 * (1 - math.exp(-0.7)) / 0.7, rtol=(0.7 / 300) ** 2)


def test_a_free_chain_keeps_momentum_and_spin():
    links = [rigid2d.Rectangle((20, 60), (0, 50 * i), mass=1 + i, name=f"link {i}") for i in range(4)]
    joints = [rigid2d.Revolute(f"link {i}", f"link {i - 1}", (0, 50 * i - 25)) for i in range(1, 4)]
    world = rigid2d.World(links, joints, gravity=(0, 0), exempt=[(0, 2), (0, 3), (1, 3)])
    state = start(world)
    v = torch.zeros_like(state.v)
    v[0, 2::3] = torch.tensor([1.0, -2.0, 3.0, 0.5])
    # Velocities that respect the joints: each link's center follows from those before it.
    for i in range(1, 4):
        v[0, 3 * i] = v[0, 3 * i - 3] - 25 * (v[0, 3 * i - 1] + v[0, 3 * i + 2])
    trajectory = world.rollout(State(state.q, v), 300)
    mass = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)
    q, rate = trajectory.q[0].unflatten(1, (4, 3)), trajectory.v[0].unflatten(1, (4, 3))
    momentum = (mass[:, None] * rate[..., :2]).sum(1)
    spin = (mass * (q[..., 0] * rate[..., 1] - q[..., 1] * rate[..., 0])).sum(1)
    spin = spin + (mass * world.properties.gyration.square() * rate[..., 2]).sum(1)
    np.testing.assert_allclose(momentum - momentum[0], 0, atol=1e-8)
    np.testing.assert_allclose(spin / spin[0], 1, rtol=1e-8)
    kinetic, _ = world.energy(trajectory.flatten())
    # RATTLE's energy swings by O((ω dt)²), ω up to 3, and does not drift.
    assert (kinetic / kinetic[0] - 1).abs().max() < (3 / 30) ** 2


def whirled(spin, **options):
    """Two rods pinned to each other and to the world, the first turning at `spin` and taking the second along."""
    rods = [
        rigid2d.Rectangle((1, 0.1), (0.5, 0), velocity=(0, 0.5 * spin), spin=spin, name="inner"),
        rigid2d.Rectangle((1, 0.1), (1.5, 0), velocity=(0, 1.5 * spin), spin=spin, name="outer"),
    ]
    pins = [rigid2d.Revolute("inner", None, (0, 0)), rigid2d.Revolute("outer", "inner", (1, 0))]
    return rigid2d.World(rods, pins, gravity=(0, -9.81), dt=1 / 60, **options)


def test_substeps_are_smaller_steps():
    with_substeps, fine = whirled(10.0, substeps=3), whirled(10.0)
    fine = rigid2d.World(fine.model.bodies, [joint for joint, _ in fine.model.joints], (0, -9.81), dt=1 / 180)
    control = torch.randn(1, 4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    actual = []
    for world, controls in ((with_substeps, control), (fine, control.repeat_interleave(3, 1))):
        state, controls = start(world), controls.clone().requires_grad_()
        trajectory = world.rollout(state, controls.shape[1], controls, truncate=controls.shape[1] // 2)
        trajectory.q[:, -1].sum().backward()
        actual.append((trajectory, controls.grad))
    torch.testing.assert_close(actual[0][0].q, actual[1][0].q[:, ::3], rtol=0, atol=0)
    torch.testing.assert_close(actual[0][1], actual[1][1].unflatten(1, (4, 3)).sum(2))
    assert actual[0][0].dt == 1 / 60


def test_joints_that_turn_too_fast_for_their_steps_are_named_and_substeps_cure_them():
    # A step turns them by 2000/60 = 33 rad: 167 flows of a fifth of a radian, which is more than are followed.
    world = whirled(2000.0)
    with pytest.warns(RuntimeWarning, match="add substeps"):
        trajectory = world.rollout(start(world), 3)
    assert trajectory.status.converged.all()
    assert trajectory.status.first_underresolved_step.tolist() == [1]
    world = whirled(2000.0, substeps=8)
    trajectory = world.rollout(start(world), 3)
    assert trajectory.status.first_underresolved_step.tolist() == [-1]
    kinetic = world.energy(trajectory)[0][0]
    assert (kinetic - kinetic[0]).abs().max() < 1e-3 * kinetic[0]
