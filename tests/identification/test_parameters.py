"""Draws of parameters that have bounds."""

from statistics import NormalDist
from unittest.mock import Mock

import numpy as np
import torch
from scipy.optimize import minimize

from physvision.estimation.autocorrelation import MixturePosterior
from physvision.identification.parameters import (
    Parameter,
    _budget,
    _estimate,
    _feasible_samples,
    _interval,
    _pool,
    _projected_samples,
    _Propagation,
)
from physvision.identification.settings import ParameterSettings

SETTINGS = ParameterSettings()
BOUNDED, FREE = (0.0, 1.0), (-np.inf, np.inf)


def scattered(correlation):
    """Two numbers that do much the same, and a third one that goes with their sum."""
    first, second = np.random.default_rng(0).multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], 20_000).T
    return np.stack([first, second, first + second], 1)


def test_what_is_at_its_bound_together_with_another_makes_a_third_no_less_sure():
    """Of two that are almost opposite hardly any draw has both above zero, however far they are from it."""
    off = scattered(-0.9999)
    draws = _feasible_samples([BOUNDED, BOUNDED, FREE], np.array([0.0, 0.0, 5.0]), off, SETTINGS)
    assert (draws[:, :2] >= 0).all()
    assert np.ptp(np.quantile(draws[:, 2], [0.025, 0.975])) <= np.ptp(np.quantile(off[:, 2], [0.025, 0.975]))
    assert abs(np.median(draws[:, 2]) - 5) < 3 * off[:, 2].std()


def test_draws_that_are_possible_are_left_as_they_are():
    off = scattered(0.5)
    draws = _feasible_samples([BOUNDED, BOUNDED, FREE], np.array([1.0, 1.0, 5.0]), off, SETTINGS)
    np.testing.assert_array_equal(draws, (np.array([1.0, 1.0, 5.0]) + off)[(off[:, :2] >= -1).all(1)])


def test_what_may_be_nothing_has_an_interval_that_begins_there():
    """Of a normal number of which the upper half is possible, the likeliest 68 % reach from 0 to its 84 % quantile."""
    draws = np.abs(np.random.default_rng(0).normal(size=20_000))
    for level in (0.68, 0.95):
        low, high = _interval(BOUNDED, draws, level, SETTINGS.interval_starts)
        quantile = NormalDist().inv_cdf((1 + level) / 2)
        scatter = np.sqrt(level * (1 - level) / len(draws)) / (2 * NormalDist().pdf(quantile))
        assert low == 0.0
        assert abs(high - quantile) < 4 * scatter


def test_intervals_hold_what_is_drawn_from_what_was_known_before():
    """Drag is known to be at least zero, seen with errors: so often as promised it lies inside, near zero as well."""
    random = np.random.default_rng(0)
    truths = np.abs(random.normal(size=400))
    hits = {0.68: [], 0.95: []}
    for truth, measured in zip(truths, truths + random.normal(size=400), strict=True):
        # Of a normal number with deviation one, seen with an error of one, a half of what was seen is left.
        draws = measured / 2 + np.sqrt(0.5) * random.normal(size=4000)
        for level, inside in hits.items():
            low, high = _interval(BOUNDED, draws[draws >= 0], level, SETTINGS.interval_starts)
            inside.append((low <= truth <= high, truth))
    for level, inside in hits.items():
        scatter = np.sqrt(level * (1 - level) / len(inside))
        assert abs(np.mean([fine for fine, _ in inside]) - level) < 4 * scatter
        assert np.mean([fine for fine, truth in inside if truth < 0.1]) > level


def test_what_a_search_makes_negative_is_not_known_to_be_nothing():
    """Five deviations below zero, a normal number above zero decays like an exponential one, over 0.19 deviations."""
    off = np.random.default_rng(0).normal(size=(20_000, 2)) * [1.0, 0.3]
    draws = _feasible_samples([BOUNDED, FREE], np.array([-5.0, 0.0]), off, SETTINGS)
    assert abs(draws[:, 0].mean() / 0.1865 - 1) < 0.05
    assert _interval(BOUNDED, draws[:, 0], 0.95, SETTINGS.interval_starts)[1] > 0.5
    assert abs(draws[:, 1].std() / 0.3 - 1) < 0.05


def test_projections_are_the_nearest_feasible_points():
    """SciPy's bounded minimization of the Mahalanobis distance is the oracle."""
    covariance = np.array([[1.0, -0.9, 0.3], [-0.9, 1.0, 0.1], [0.3, 0.1, 1.0]])
    off = np.random.default_rng(3).multivariate_normal([0, 0, 0], covariance, 60)
    estimates, bounds = np.array([0.2, -0.5, 4.0]), [BOUNDED, BOUNDED, FREE]
    projected = _projected_samples(bounds, estimates, off)
    precision = np.linalg.inv(np.cov(off.T))
    for sample, result in zip(estimates + off, projected, strict=True):
        optimum = minimize(
            lambda x, sample=sample: (x - sample) @ precision @ (x - sample),
            np.maximum(sample, [0.1, 0.1, -9]), bounds=[(0, None), (0, None), (None, None)], tol=1e-12,
        )  # fmt: skip
        np.testing.assert_allclose(result, optimum.x, atol=1e-4)


def test_either_of_two_losses_that_are_hardly_distinguished_may_be_nothing():
    """Only the sum of two losses is measured, and the whole of it is the one or the other: neither may be excluded."""
    random, hits = np.random.default_rng(4), []
    for trial in range(100):
        truths = np.array([1.0, 0.0] if trial % 2 else [0.0, 1.0])
        difference, total = random.normal(0, [3.0, 0.02])
        off = random.normal(0, [3.0, 0.02], (4000, 2)) @ np.array([[0.5, -0.5], [0.5, 0.5]])
        estimates = truths + np.array([total + difference, total - difference]) / 2
        bounds = [(0.0, 10.0)] * 2
        samples = _feasible_samples(bounds, estimates, off, SETTINGS)
        projected = _projected_samples(bounds, estimates, off)
        for index, truth in enumerate(truths):
            draws = samples[:, index], projected[:, index]
            parameter = _estimate(bounds[index], float(estimates[index]), draws, "", SETTINGS)
            hits.append(parameter.interval_95[0] <= truth <= parameter.interval_95[1])
    assert np.mean(hits) > 0.9


def _propagation(names, level):
    samples = np.full((100, len(names)), level), np.full((200, len(names)), level)
    posterior = Mock(spec=MixturePosterior)
    values = dict.fromkeys(("length", "drag"), "not identifiable") | {name: torch.tensor(level) for name in names}
    return _Propagation(
        values, samples[0][0], samples, posterior, torch.zeros(len(names), 1), torch.zeros(len(names), 0)
    )


def test_draws_under_a_camera_that_leaves_less_identifiable_are_left_out():
    first, second = _propagation(["length", "drag"], 1.0), _propagation(["length", "drag"], 2.0)
    feasible, draws = _pool((first, second), (0.75, 0.25))
    np.testing.assert_array_equal(np.unique(feasible[:, 0], return_counts=True), [[1.0, 2.0], [75, 25]])
    assert draws.shape == (200, 2)
    feasible, draws = _pool((first, _propagation(["length"], 2.0)), (0.75, 0.25))
    assert (feasible == 1.0).all()
    assert feasible.shape == (100, 2)
    assert draws.shape == (200, 2)


def test_a_variance_that_rounding_makes_negative_is_none():
    """As of a parameter at its bound in a clip of minutes, whose white noise averages out."""
    covariance = torch.tensor([[4.0, 0.0], [0.0, 1e-14]], dtype=torch.float64)
    white = torch.tensor([[1.0, 0.0], [0.0, -1e-20]], dtype=torch.float64)
    posterior = MixturePosterior(torch.ones(1, dtype=torch.float64), covariance[None], white, 30.0)
    parameter, none = Parameter(1.0, "m", interval_68=(0.9, 1.1)), torch.zeros(1, dtype=torch.float64)
    budget = _budget(parameter, posterior, torch.tensor([0.0, 1.0], dtype=torch.float64), none)
    assert budget["tracking"] == budget["known_values"] == 0.0
    np.testing.assert_allclose(budget["model"], 0.1)
