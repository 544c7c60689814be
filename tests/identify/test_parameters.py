"""Draws of parameters that have bounds."""

import numpy as np

from physvision.identify.parameters import _possible

BOUNDED, FREE = (0.0, 1.0), (-np.inf, np.inf)


def scattered(correlation):
    """Two numbers that do much the same, and a third one that goes with their sum."""
    one, other = np.random.default_rng(0).multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], 20_000).T
    return np.stack([one, other, one + other], 1)


def test_what_is_at_its_bound_together_with_another_makes_a_third_no_less_sure():
    """Of two that are almost opposite hardly any draw has both above zero, however far they are from it."""
    off = scattered(-0.9999)
    draws = _possible([BOUNDED, BOUNDED, FREE], np.array([0.0, 0.0, 5.0]), off)
    assert (draws[:, :2] >= 0).all()
    assert np.ptp(np.quantile(draws[:, 2], [0.025, 0.975])) <= np.ptp(np.quantile(off[:, 2], [0.025, 0.975]))
    assert abs(np.median(draws[:, 2]) - 5) < 3 * off[:, 2].std()


def test_draws_that_are_possible_are_left_as_they_are():
    off = scattered(0.5)
    draws = _possible([BOUNDED, BOUNDED, FREE], np.array([1.0, 1.0, 5.0]), off)
    np.testing.assert_array_equal(draws, (np.array([1.0, 1.0, 5.0]) + off)[(off[:, :2] >= -1).all(1)])
