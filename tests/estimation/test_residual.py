"""Derivatives of whole motions are those that torch finds through the rollout, whatever is sought and observed."""

# pyright: reportCallIssue=false

import pytest
import torch

from physvision.core import InputError, State
from physvision.estimation import MotionResidual, PointResidual, Setup, Unknown, Unknowns
from physvision.physics import articulated, rigid2d

FREE = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body pos="0 0 1"><freejoint/>
<geom type="box" size=".1 .2 .3" mass="2"/></body></worldbody></mujoco>"""


def full_jacobian(problem, z):
    """By reverse mode through the rollout, one number at a time; no step derivatives in it."""
    return torch.autograd.functional.jacobian(lambda z: problem.residual(z)[0], z)[..., 0, :]


def check(problem, z, tolerance=1e-9):
    residuals, jacobian = problem.linearize(z)
    torch.testing.assert_close(residuals, problem.residual(z).detach())
    torch.testing.assert_close(jacobian[0], full_jacobian(problem, z[:1]), rtol=tolerance, atol=tolerance)


def double_pendulum(delay=None):
    engine = articulated.chain([0.5, 0.4], dt=0.02, integrator="runge_kutta_4")
    unknowns = Unknowns([
        Unknown("length", [0.5, 0.4], low=0.0),
        Unknown("angle", [1.0, -0.5]),
        Unknown("spin", [0.3, 0.1], scale=2.0),
        Unknown("damping", 0.02, low=0.0, high=1.0),
        Unknown("pixels", 100.0, low=0.0),
        Unknown("late", 0.01),
    ])  # fmt: skip

    def setup(values):
        leaves = articulated.chain_properties(values["length"])
        leaves["joint_damping"] = values["damping"][:, None].expand(-1, 2)
        return Setup(State(values["angle"], values["spin"]), leaves)

    def observe(sampled):
        tip = engine.poses(sampled.state, sampled.properties)[:, -1, :3, 3]
        return sampled.values["pixels"][:, None] * tip[:, [0, 2]]

    times = torch.tensor([0.0, 0.02, 0.05, 0.081, 0.16], dtype=torch.float64)
    observed = torch.zeros(5, 2, dtype=torch.float64)
    return MotionResidual(engine, unknowns, setup, times, observed, observe, weight=2.0, delay=delay)


def test_properties_start_and_camera_of_a_chain_seen_between_its_steps():
    problem = double_pendulum(delay=lambda values, sample: (values["late"] * sample / 5)[:, None])
    z = torch.cat([problem.unknowns.start(), problem.unknowns.start() + 0.3])
    check(problem, z)
    residuals, jacobian = problem.linearize(z)
    alone = problem.linearize(z[1:])
    torch.testing.assert_close(residuals[1:], alone[0])
    torch.testing.assert_close(jacobian[1:], alone[1])


def test_parts_that_are_each_seen_at_their_own_moment():
    """x at once and z later: each as if all were seen then."""
    fraction = torch.tensor([0.0, 1.0], dtype=torch.float64)
    problem = double_pendulum(delay=lambda values, sample: values["late"][:, None] * fraction)
    z = problem.unknowns.start()
    check(problem, z)
    for part in range(2):
        all_then = double_pendulum(
            delay=lambda values, sample, part=part: values["late"][:, None] * fraction[part : part + 1]
        )
        torch.testing.assert_close(problem.residual(z)[..., part], all_then.residual(z)[..., part])


def test_a_bounce_with_its_time_of_impact():
    floor = rigid2d.Rectangle((10, 1), (0, 0.5), static=True, restitution=0.0)
    ball = rigid2d.Circle(0.05, (0, -0.5), velocity=(0.4, 0.0), restitution=0.8, friction=0.0)
    world = rigid2d.World([floor, ball], gravity=(0, 9.81), dt=1 / 30)
    unknowns = Unknowns([
        Unknown("restitution", 0.8, low=0.0, high=1.0), Unknown("height", -0.5), Unknown("gravity", 9.81, low=0.0)
    ])  # fmt: skip

    def setup(values):
        zero = torch.zeros_like(values["height"])
        q = torch.stack([zero, values["height"], zero], 1)
        e = values["restitution"]
        leaves = {"restitution": torch.stack([e, e], 1), "gravity": torch.stack([zero, values["gravity"]], 1)}
        return Setup(State(q, torch.zeros_like(q)), leaves)

    times = torch.arange(20, dtype=torch.float64) / 30
    check(MotionResidual(world, unknowns, setup, times, torch.zeros(20, 3, dtype=torch.float64)), unknowns.start())


def test_controls_and_quaternions():
    engine = articulated.load(FREE, dt=0.01)
    unknowns = Unknowns([Unknown("push", torch.zeros(4, 6)), Unknown("turn", [0.9, 0.1, 0.3, 0.2])])
    start = engine.initial_state(1, torch.float64)

    def setup(values):
        q = torch.cat([start.q[:, :3].expand(len(values["turn"]), -1), values["turn"]], 1)
        q = torch.cat([q[:, :3], q[:, 3:] / q[:, 3:].norm(dim=1, keepdim=True)], 1)
        v = torch.tensor([[0.1, 0, 0, 1.0, 2.0, 3.0]]).to(q).expand(len(q), -1)
        return Setup(State(q, v), controls=values["push"])

    times = 0.01 * torch.arange(5, dtype=torch.float64)
    problem = MotionResidual(engine, unknowns, setup, times, torch.zeros(5, 7, dtype=torch.float64))
    check(problem, unknowns.start() + 0.1, 1e-8)


def test_gaps_count_nothing_and_horizons_cut():
    problem = double_pendulum()
    problem.observed[2] = torch.nan
    residuals, jacobian = problem.linearize(problem.unknowns.start())
    assert bool((residuals[:, 2] == 0).all())
    assert bool((jacobian[:, 2] == 0).all())
    short = problem.truncate(0.06)
    assert short.steps == 3
    torch.testing.assert_close(short.residual(problem.unknowns.start()), residuals[:, :3])


def test_points_without_a_motion():
    unknowns = Unknowns([Unknown("slope", 2.0), Unknown("offset", 1.0, low=0.0)])
    x = torch.linspace(0, 1, 6, dtype=torch.float64)

    def line(values, sample):
        return (values["slope"] * x[sample] + values["offset"])[:, None]

    problem = PointResidual(unknowns, line, torch.zeros(6, 1, dtype=torch.float64))
    check(problem, unknowns.start() + 0.2)


def test_times_that_do_not_grow_are_refused():
    problem = double_pendulum()
    with pytest.raises(InputError, match="times: expected ascending seconds"):
        MotionResidual(problem.engine, problem.unknowns, problem.setup, problem.times.flip(0), problem.observed)
