"""Intervals hold where errors last, or come back wherever a thing comes by, and are not wide where they do not."""

import math

import pytest
import torch

from physvision.core import State
from physvision.estimation import MotionResidual, Setup, Unknown, Unknowns, gauss_newton
from physvision.estimation.autocorrelation import mixture_posterior
from physvision.estimation.uncertainty import uncertainty
from physvision.physics.particle import Particle

TIMES = torch.arange(160, dtype=torch.float64) / 40
NOISE, TRUTH = 0.1, (20.0, 0.3)


def swinging(errors):
    """What swings along a line, seen with errors: restoring and damping are unknown."""
    unknowns = Unknowns(
        [Unknown("restoring_coefficient", 20.0, low=0.0), Unknown("damping", 0.3), Unknown("stretch", 10.0)]
    )

    def setup(values):
        away = values["stretch"][:, None]
        return Setup(
            State(away, 0 * away),
            {"restoring_coefficient": values["restoring_coefficient"], "velocity_decay": values["damping"]},
        )

    def observe(sampled):
        return torch.cat([sampled.state.q[:, :1], 0 * sampled.state.q[:, :1]], 1)

    problem = MotionResidual(
        Particle("line", dt=1 / 40, substeps=4), unknowns, setup, TIMES, torch.zeros(160, 2), observe, 1 / NOISE
    )
    place = problem.predictions(unknowns.start()).detach()[0]
    return MotionResidual(**{**vars(problem), "observed": place + errors(place)})


def white(generator):
    return NOISE * torch.randn(160, 2, generator=generator, dtype=torch.float64)


def autocorrelated(generator):
    """White noise, and an error as large that lasts for a fourth of a second."""
    correlation, series = math.exp(-1 / 10), [torch.randn(2, generator=generator, dtype=torch.float64)]
    for _ in range(159):
        news = torch.randn(2, generator=generator, dtype=torch.float64)
        series.append(correlation * series[-1] + math.sqrt(1 - correlation**2) * news)
    return white(generator) + NOISE * torch.stack(series)


def coverage(errors, tries=40):
    """How often both intervals hold, and the mean deviation of the damping."""
    hits, wide = torch.zeros(2), 0.0
    for number in range(tries):
        generator = torch.Generator().manual_seed(number)
        problem = swinging(lambda place, g=generator: errors(g))
        z = gauss_newton(problem).z[0]
        off = mixture_posterior(problem, z).sample(4000)
        result = problem.unknowns.flat_values(z + off)[:, :2]
        for row, level in enumerate((0.68, 0.95)):
            low, high = (result.quantile((1 + side * level) / 2, dim=0) for side in (-1, 1))
            hits[row] += ((low < torch.tensor(TRUTH)) & (torch.tensor(TRUTH) < high)).double().mean()
        wide += float(off[:, 1].std()) / tries
    return (hits / tries).tolist(), wide


@pytest.mark.slow
@pytest.mark.parametrize("errors", [white, autocorrelated])
def test_intervals_hold_as_often_as_they_say(errors):
    hits, _ = coverage(errors)
    # Of 40 tries of two parameters, three standard deviations of 80 numbers are 16 % and 7 %.
    assert abs(hits[0] - 0.68) < 0.16
    assert abs(hits[1] - 0.95) < 0.075


def test_they_are_hardly_wider_than_fishers_where_nothing_lasts():
    generator = torch.Generator().manual_seed(0)
    problem = swinging(lambda place: white(generator))
    z = gauss_newton(problem).z[0]
    ratio = mixture_posterior(problem, z).covariance.diagonal().sqrt() / uncertainty(problem, z).std
    assert bool(((ratio > 0.8) & (ratio < 1.5)).all()), ratio


def test_an_error_of_places_counts_though_neighbors_are_far_apart():
    """An error that depends on the place alone, on a motion whose neighbors lie in different places."""
    generator = torch.Generator().manual_seed(1)

    def of_places(place):
        away = place[:, :1]
        return white(generator) / 4 + NOISE * torch.sin(away / 0.8)

    problem = swinging(of_places)
    z = gauss_newton(problem).z[0]
    off = (problem.unknowns.flat_values(z)[:2] - torch.tensor(TRUTH)).abs()
    sure = (mixture_posterior(problem, z).covariance.diagonal().sqrt() * problem.unknowns.derivatives(z))[:2]
    assert bool((off < 3 * sure).all()), (off, sure)


def test_an_unknown_at_its_bound_leaves_the_others_as_they_are():
    # Where a sigmoid is flat, z varies by any amount: on that scale rounding made other intervals a hundredfold wider.
    problem = swinging(lambda place: white(torch.Generator().manual_seed(0)))
    result = gauss_newton(problem)
    residuals, jacobian = result.linearization
    usual, flat = (
        mixture_posterior(
            problem, result.z[0], linearization=(residuals, jacobian * jacobian.new_tensor([1.0, level, 1.0]))
        ).sample(500)
        for level in (1.0, 1e-9)
    )
    torch.testing.assert_close(flat * flat.new_tensor([1.0, 1e-9, 1.0]), usual, rtol=1e-5, atol=1e-9)


def test_an_unknown_without_any_effect_leaves_the_others_finite():
    """A restitution that a search has driven to zero, say: its derivative vanishes, and it has no prior."""
    problem = swinging(lambda place: white(torch.Generator().manual_seed(0)))
    result = gauss_newton(problem)
    residuals, jacobian = result.linearization
    idle = residuals, jacobian * jacobian.new_tensor([1.0, 0.0, 1.0])
    usual, without = (
        mixture_posterior(problem, result.z[0], linearization=part).sample(4000)
        for part in ((residuals, jacobian), idle)
    )
    assert without[:, [0, 2]].isfinite().all()
    assert (without.std(0) < 1.05 * usual.std(0))[[0, 2]].all()
