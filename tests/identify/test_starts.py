"""First guesses, on motions that are known exactly."""

import numpy as np

from physvision.identify import starts


def test_derivatives_of_a_quartic_are_exact_even_where_samples_are_missing():
    times = np.delete(np.arange(40) / 50, [7, 8, 21])
    curve = np.polynomial.Polynomial([0.3, -1.0, 2.0, 5.0, -4.0])
    for found, order in zip(starts.derivatives(times, curve(times)), range(3), strict=True):
        np.testing.assert_allclose(found, curve.deriv(order)(times), atol=1e-8)


def test_half_of_what_is_seen_is_gone_through():
    times = np.arange(100) / 100
    places = np.stack([times**2, 0 * times], 1)
    assert abs(starts.informative(times, places) - np.sqrt(0.5) * times[-1]) < 0.02
