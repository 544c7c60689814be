"""Intervals hold as often as they say, with independent and with correlated noise; what data do not tell is named."""

import math

import pytest
import torch

from physvision.core import State
from physvision.estimation import MotionResidual, PointResidual, Setup, Unknown, Unknowns, gauss_newton
from physvision.estimation.uncertainty import (
    bootstrap,
    correlation,
    profile,
    singular_directions,
    student,
    uncertainty,
    undetermined,
)
from physvision.physics import articulated

X = torch.linspace(0, 1, 200, dtype=torch.float64)


def line(noise):
    unknowns = Unknowns([Unknown("slope", 1.0), Unknown("offset", 0.5)])
    seen = (3 * X + 2)[:, None] + noise[:, None]
    return PointResidual(unknowns, lambda v, k: (v["slope"] * X[k] + v["offset"])[:, None], seen, 10.0)


def noises(count, alike, size=0.1):
    """Series in which each number is `alike` times the one before, and news."""
    generator = torch.Generator().manual_seed(3)
    news = torch.randn(count, len(X), generator=generator, dtype=torch.float64)
    series = [news[:, 0]]
    for k in range(1, len(X)):
        series.append(alike * series[-1] + math.sqrt(1 - alike**2) * news[:, k])
    return size * torch.stack(series, 1)


@pytest.mark.parametrize("alike", [0.0, 0.7])
def test_intervals_of_a_line_hold_as_often_as_they_say(alike):
    held = torch.zeros(2, 2)
    tries = 150
    for noise in noises(tries, alike):
        problem = line(noise)
        known = uncertainty(problem, gauss_newton(problem).z[0])
        for row, share in enumerate((0.68, 0.95)):
            interval = known.interval(share)
            truth = torch.tensor([3.0, 2.0])
            held[row] += ((interval[:, 0] < truth) & (truth < interval[:, 1])).float()
    # Of 150 tries, three standard deviations are 11 % and 5 %; correlation of 200 samples is itself only estimated.
    assert bool(((held[0] / tries - 0.68).abs() < 0.12).all()), held / tries
    assert bool(((held[1] / tries - 0.95).abs() < 0.065).all()), held / tries


def test_the_deviation_is_that_of_the_closed_form():
    problem = line(noises(1, 0.0)[0])
    known = uncertainty(problem, gauss_newton(problem).z[0])
    A = torch.stack([X, torch.ones_like(X)], 1)
    expected = 0.1 * torch.linalg.inv(A.mT @ A).diagonal().sqrt()
    wider = math.sqrt((1 + known.correlation) / (1 - known.correlation))
    # The size of the residuals is known to 1/√400.
    torch.testing.assert_close(known.deviation, expected * wider, rtol=0.15, atol=0)


def test_correlation_is_found():
    ones = torch.ones(len(X), dtype=torch.float64)
    for alike in (0.0, 0.5, 0.9):
        found = [correlation(noise[:, None], ones, ones > 0, 2) for noise in noises(40, alike)]
        assert abs(sum(found) / 40 - alike) < 0.05


def test_resampled_residuals_agree_with_the_slopes():
    problem = line(noises(1, 0.0)[0])
    z = gauss_newton(problem).z[0]
    spread = bootstrap(problem, z, block=1, draws=200).std(0)
    torch.testing.assert_close(spread, uncertainty(problem, z).deviation, rtol=0.25, atol=0)


def test_a_profile_agrees_with_the_slopes_where_all_is_linear():
    problem = line(noises(1, 0.0)[0])
    known = uncertainty(problem, gauss_newton(problem).z[0])
    for unknown in range(2):
        low, high = profile(problem, known, unknown)
        torch.testing.assert_close(torch.tensor([low, high]).double(), known.interval(0.95)[unknown], rtol=1e-5, atol=0)


def test_a_profile_sees_what_slopes_do_not():
    """y = a² x: near a = 0 the slope vanishes, the interval does not."""
    unknowns = Unknowns([Unknown("a", 0.3)])
    noise = noises(1, 0.0, 0.05)[0]
    problem = PointResidual(unknowns, lambda v, k: (v["a"] ** 2 * X[k])[:, None], noise[:, None], 20.0)
    z = torch.tensor([0.01], dtype=torch.float64)
    low, high = profile(problem, uncertainty(problem, z), 0, reach=0.2)
    assert -0.5 < low < 0 < high < 0.5


def test_length_and_gravity_of_a_pendulum_cannot_be_told_apart():
    engine = articulated.chain([1.0], dt=0.05, integrator="runge_kutta_4")
    unknowns = Unknowns([Unknown("length", 1.0, low=0.0, span=(0.1, 10.0)), Unknown("gravity", 9.0, low=0.0),
                         Unknown("angle", 0.5)])  # fmt: skip

    def setup(values):
        gravity = torch.stack([torch.zeros_like(values["gravity"])] * 2 + [-values["gravity"]], 1)
        leaves = {**articulated.chain_properties(values["length"][:, None]), "gravity": gravity}
        return Setup(State(values["angle"][:, None], torch.zeros_like(values["angle"])[:, None]), leaves)

    times = 0.05 * torch.arange(100, dtype=torch.float64)
    empty = torch.zeros(100, 1, dtype=torch.float64)
    problem = MotionResidual(engine, unknowns, setup, times, empty, weight=100.0)
    problem = problem.resampled(unknowns.start(), torch.randn(1, 100, 1, dtype=torch.float64))
    (direction,) = singular_directions(problem, unknowns.start()[0])
    assert set(direction) == {"length", "gravity"}
    assert abs(direction["length"] - direction["gravity"]) < 1e-6
    known = uncertainty(problem, unknowns.start()[0])
    assert undetermined(known) == ["length", "gravity"]


def test_students_quantiles():
    for freedom, expected in ((3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1e6, 1.960)):
        assert abs(student(0.975, freedom) / expected - 1) < 0.025
