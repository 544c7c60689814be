"""Intervals hold as often as they say, with independent and with correlated noise."""

import math

import pytest
import torch

from physvision.estimation import PointResidual, Unknown, Unknowns, gauss_newton
from physvision.estimation.uncertainty import Uncertainty, autocorrelation, uncertainty

X = torch.linspace(0, 1, 200, dtype=torch.float64)


def line(noise):
    unknowns = Unknowns([Unknown("slope", 1.0), Unknown("offset", 0.5)])
    observed = (3 * X + 2)[:, None] + noise[:, None]
    return PointResidual(unknowns, lambda v, k: (v["slope"] * X[k] + v["offset"])[:, None], observed, 10.0)


def noises(count, correlation, size=0.1):
    """Series in which each number is `alike` times the one before, and news."""
    generator = torch.Generator().manual_seed(3)
    news = torch.randn(count, len(X), generator=generator, dtype=torch.float64)
    series = [news[:, 0]]
    for k in range(1, len(X)):
        series.append(correlation * series[-1] + math.sqrt(1 - correlation**2) * news[:, k])
    return size * torch.stack(series, 1)


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_intervals_of_a_line_hold_as_often_as_they_say(correlation):
    hits = torch.zeros(2, 2)
    tries = 150
    for noise in noises(tries, correlation):
        problem = line(noise)
        estimate = uncertainty(problem, gauss_newton(problem).z[0])
        for row, level in enumerate((0.68, 0.95)):
            interval = estimate.interval(level)
            truth = torch.tensor([3.0, 2.0])
            hits[row] += ((interval[:, 0] < truth) & (truth < interval[:, 1])).float()
    # Of 150 tries, three standard deviations are 11 % and 5 %; correlation of 200 samples is itself only estimated.
    assert bool(((hits[0] / tries - 0.68).abs() < 0.12).all()), hits / tries
    assert bool(((hits[1] / tries - 0.95).abs() < 0.065).all()), hits / tries


def test_the_deviation_is_that_of_the_closed_form():
    problem = line(noises(1, 0.0)[0])
    estimate = uncertainty(problem, gauss_newton(problem).z[0])
    A = torch.stack([X, torch.ones_like(X)], 1)
    expected = 0.1 * torch.linalg.inv(A.mT @ A).diagonal().sqrt()
    wider = math.sqrt((1 + estimate.autocorrelation) / (1 - estimate.autocorrelation))
    # The size of the residuals is known to 1/√400.
    torch.testing.assert_close(estimate.std, expected * wider, rtol=0.15, atol=0)


def test_correlation_is_found():
    ones = torch.ones(len(X), dtype=torch.float64)
    for correlation in (0.0, 0.5, 0.9):
        estimates = [autocorrelation(noise[:, None], ones, ones > 0, 2, 0.98) for noise in noises(40, correlation)]
        assert abs(sum(estimates) / 40 - correlation) < 0.05


def test_students_quantiles():
    """Quantiles from a printed table, to its three digits."""
    unknowns, zero = Unknowns([Unknown("offset", 0.0)]), torch.zeros(1, dtype=torch.float64)
    for df, expected in ((3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1e6, 1.960)):
        interval = Uncertainty(unknowns, zero, torch.eye(1, dtype=torch.float64), 1.0, 0.0, df).interval(0.95)
        assert interval[0].tolist() == pytest.approx([-expected, expected], abs=5e-4)
