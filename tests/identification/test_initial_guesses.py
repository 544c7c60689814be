"""First guesses, on motions that are known exactly."""

import numpy as np
import pytest

from physvision.identification import impacts, initial_guesses, parabolas
from physvision.identification.kind_settings import BounceSettings


def test_derivatives_of_a_quartic_are_exact_even_where_samples_are_missing():
    times = np.delete(np.arange(40) / 50, [7, 8, 21])
    curve = np.polynomial.Polynomial([0.3, -1.0, 2.0, 5.0, -4.0])
    for result, order in zip(initial_guesses.local_derivatives(times, curve(times)), range(3), strict=True):
        np.testing.assert_allclose(result, curve.deriv(order)(times), atol=1e-8)


def test_half_of_what_is_seen_is_gone_through():
    times = np.arange(100) / 100
    positions = np.stack([times**2, 0 * times], 1)
    assert abs(initial_guesses.informative_duration(times, positions) - np.sqrt(0.5) * times[-1]) < 0.02


def _autocorrelated_noise(random, count):
    """Errors of which most last for some twenty samples, as of a camera that shakes unnoticed."""
    slow, keeps = np.zeros((count, 2)), np.exp(-1 / 20)
    for at in range(1, count):
        slow[at] = keeps * slow[at - 1] + np.sqrt(1 - keeps**2) * random.normal(0, 0.7, 2)
    return slow + random.normal(0, 0.4, (count, 2))


@pytest.mark.parametrize("held_samples", [0, 25])
def test_errors_that_last_do_not_belong_to_a_hand(held_samples):
    """A throw at 120 frames a second; a hand speeds it up within a sixth of a second before it lets go."""
    times = np.arange(130) / 120
    path = np.stack([450 - 216 * times, 170 - 240 * times + 345 * times**2], 1)
    path[:, 1] += 1350 * np.maximum(times[held_samples] - times, 0) ** 2
    for seed in range(10):
        positions = path + _autocorrelated_noise(np.random.default_rng(seed), len(times))
        assert held_samples - 15 <= parabolas.departure_index(times, positions, 0.5) <= held_samples


def test_a_frame_that_is_shown_twice_hides_no_impact():
    """The ball seems twice as fast afterwards as it ever is."""
    times = np.arange(80) / 60
    hit = 0.6 + 0.4 / 60  # the step in which it hits leads hardly anywhere
    down = np.where(
        times < hit, 4905 * times**2, 4905 * hit**2 - 5886 * 0.7 * (times - hit) + 4905 * (times - hit) ** 2
    )
    down[33] = down[32]
    assert impacts.find_bounces(times, 0.2 * down, 0.1, BounceSettings()) == [36]
