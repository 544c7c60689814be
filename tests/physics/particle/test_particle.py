"""The law's closed forms, its gradients, and what an engine promises."""

# pyright: reportIndexIssue=false

import math

import pytest
import torch

from physvision.core import State
from physvision.physics import articulated
from physvision.physics.particle import Particle


def state(*rows):
    q, v = torch.tensor(rows, dtype=torch.float64).chunk(2, 1)
    return State(q.contiguous(), v.contiguous())


def test_a_throw_is_a_parabola():
    engine = Particle("plane", dt=0.02, acceleration=(0.0, -9.81))
    motion = engine.rollout(state([0.0, 1.0, 3.0, 4.0]), 50)
    t = motion.times
    expected = torch.stack([3 * t, 1 + 4 * t - 9.81 / 2 * t**2], 1)
    torch.testing.assert_close(motion.q[0], expected, rtol=1e-12, atol=1e-12)


def test_a_spring_swings_in_its_period_and_fades():
    engine = Particle("line", dt=0.01, restoring_coefficient=40.0, velocity_decay=0.8, rest_position=0.3)
    motion = engine.rollout(state([0.5, 0.0]), 300)
    w = math.sqrt(40 - 0.16)
    t = motion.times
    expected = 0.3 + 0.2 * torch.exp(-0.4 * t) * (torch.cos(w * t) + 0.4 / w * torch.sin(w * t))
    # Fourth order: (w dt)⁵ / 120 a step.
    torch.testing.assert_close(motion.q[0, :, 0], expected, rtol=0, atol=300 * (w * 0.01) ** 5 / 120)


def test_quadratic_drag_falls_towards_its_terminal_speed():
    engine = Particle("line", dt=0.01, acceleration=9.81, drag=0.5)
    motion = engine.rollout(state([0.0, 0.0]), 100)
    terminal = math.sqrt(9.81 / 0.5)
    expected = terminal * torch.tanh(9.81 / terminal * motion.times)
    torch.testing.assert_close(motion.v[0, :, 0], expected, rtol=0, atol=1e-7)


def test_a_circle_is_the_articulated_pendulum():
    """A uniform rod of length l swings as a point at 2/3 l, at any angle."""
    rod = articulated.chain([0.9], dt=0.02, integrator="runge_kutta_4")
    point = Particle("circle", dt=0.02, restoring_coefficient=9.81 / 0.6, length=0.6)
    start = state([2.5, 0.3])
    first_shape, second_shape = rod.rollout(start, 200), point.rollout(start, 200)
    torch.testing.assert_close(first_shape.q, second_shape.q, rtol=0, atol=1e-9)


@pytest.mark.parametrize("path", ["line", "plane", "circle"])
def test_gradients(path):
    engine = Particle(path, dt=0.05, substeps=2)
    torch.manual_seed(0)
    n = engine.nv
    inputs = [
        torch.randn(3, size, dtype=torch.float64).requires_grad_() if size else torch.rand(3).double().requires_grad_()
        for size in (n, n, n, n, 0, 0, 0)
    ]
    controls = torch.randn(3, 4, n, dtype=torch.float64).requires_grad_()

    def run(q, v, acceleration, rest, restoring, decay, drag, controls):
        leaves = {
            "acceleration": acceleration,
            "rest_position": rest,
            "restoring_coefficient": restoring,
            "velocity_decay": decay,
            "drag": drag,
        }
        motion = engine.rollout(State(q, v), 4, controls, leaves)
        return motion.q, motion.v

    assert torch.autograd.gradcheck(run, (*inputs, controls))


def test_energy_is_kept_without_drag_and_poses_follow():
    engine = Particle("circle", dt=0.005, restoring_coefficient=9.81 / 0.7, length=0.7, mass=2.0)
    motion = engine.rollout(state([1.2, 0.0]), 400)
    total = sum(engine.energy(motion))
    torch.testing.assert_close(total, total[:, :1].expand_as(total), rtol=1e-8, atol=0)
    kinetic, _potential = engine.energy(state([0.0, 2.0]))
    torch.testing.assert_close(kinetic, torch.tensor([0.5 * 2 * 0.49 * 4], dtype=torch.float64))
    place = engine.poses(state([math.pi / 2, 0.0]))[0, 0, :3, 3]
    torch.testing.assert_close(place, torch.tensor([0.7, 0.0, 0.0], dtype=torch.float64), rtol=0, atol=1e-12)


def test_truncation_cuts_gradients_not_motion():
    engine = Particle("line", dt=0.05, restoring_coefficient=3.0)
    whole = engine.rollout(state([1.0, 0.0]), 10)
    start = state([1.0, 0.0])
    start.q.requires_grad_()
    cut = engine.rollout(start, 10, truncate=5)
    torch.testing.assert_close(cut.q, whole.q)
    assert torch.autograd.grad(cut.q[0, 5].sum(), start.q, retain_graph=True)[0].abs().sum() > 0
    assert not torch.autograd.grad(cut.q[0, 6].sum(), start.q)[0].any()
