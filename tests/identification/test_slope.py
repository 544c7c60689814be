"""What slides along the flat, and then strikes something and comes back."""

# pyright: reportGeneralTypeIssues=false

import numpy as np
import pytest

from physvision.core import InputError
from physvision.identification import identify
from physvision.perception import Track


def table(times, slowing, impact_time):
    """Places of what slides, strikes a wall at `struck` s and comes back slower; y constant; px."""
    before, after = np.minimum(times, impact_time), np.maximum(times - impact_time, 0)
    away = 120 * before - slowing / 2 * before**2 - 60 * after
    return np.stack([40 + away, np.full(len(times), 90.0)], 1)


@pytest.mark.parametrize(("slowing", "impact_time"), [(0.0, 2.0), (12.0, 2.0), (12.0, 2.22)])
def test_what_glides_until_it_is_struck_back(slowing, impact_time):
    times = np.arange(60) / 25
    random = np.random.default_rng(0)
    positions = table(times, slowing, impact_time) + random.normal(0, 0.1, (60, 2))
    track = Track(times, positions, np.full(60, 0.1), np.ones(60, bool), radius=8.0)
    result = identify([track], "slide", {"scale": 300.0}, size=(352, 288))
    low, high = result.parameters["speed"].interval_95
    assert low < 120 / 300 < high
    assert high - low < 0.1 * 120 / 300
    assert result.holdout.relative_error < 0.02


def test_without_a_scale_nothing_is_told_of_what_glides_but_where_it_goes():
    times = np.arange(40) / 25
    random = np.random.default_rng(0)
    positions = table(times, 60.0, 9.0) + random.normal(0, 0.1, (40, 2))
    track = Track(times, positions, np.full(40, 0.1), np.ones(40, bool), radius=8.0)
    result = identify([track], "slide", size=(352, 288))
    assert not any(parameter.identifiable for parameter in result.parameters.values())
    assert all("scale" in parameter.reason for parameter in result.parameters.values())


def test_what_a_hand_covers_at_first_slides_along_a_line():
    """While a hand covers a part of it, its positions are off by what their sigma says."""
    times = np.arange(30) / 25
    random = np.random.default_rng(0)
    sigma = np.where(times < 0.3, 10.0, 0.1)
    positions = table(times, -40.0, 9.0) + random.normal(0, 1, (30, 2)) * sigma[:, None]
    track = Track(times, positions, sigma, np.ones(30, bool), radius=8.0)
    result = identify([track], "slide", {"scale": 300.0}, size=(352, 288))
    low, high = result.parameters["acceleration"].interval_95
    assert low < 40 / 300 < high
    assert high - low < 0.2 * 40 / 300


def test_what_rolls_down_a_slope_and_on_along_the_flat():
    """The flat part is the longer one, and friction slows it down there."""
    times, slope, acceleration = np.arange(50) / 30, 0.2, 570.0
    down, foot = np.array([np.cos(slope), np.sin(slope)]), 0.9
    on_slope, on_flat = np.minimum(times, foot), np.maximum(times - foot, 0)
    flat = acceleration * foot * on_flat - 30 * on_flat**2
    path = (acceleration / 2 * on_slope**2)[:, None] * down + flat[:, None] * [1, 0] + [60, 200]
    positions = path + np.random.default_rng(0).normal(0, 0.3, (50, 2))
    track = Track(times, positions, np.full(50, 0.3), np.ones(50, bool), radius=7.0)
    result = identify([track], "roll", {"scale": 400.0}, size=(856, 480))
    low, high = result.intervals["acceleration"]
    assert low < acceleration / 400 < high
    assert result.span[1] == pytest.approx(foot, abs=0.1)


@pytest.mark.parametrize("sideways", [0.0, 100.0])
def test_what_sinks_at_a_steady_speed_does_not_slide(sideways):
    """A paper filter: the picture is seen from the side, so that no friction slows down what moves down steeply."""
    times = np.arange(54) / 30
    fall = 338 * times - 1.5 * times**2
    path = np.stack([180 + 4 * np.sin(4 * times) + sideways * times, 40 + fall], 1)
    path += np.random.default_rng(0).normal(0, 0.5, (54, 2))
    track = Track(times, path, np.full(54, 0.5), np.ones(54, bool), radius=9.0)
    with pytest.raises(InputError, match="slide: it moves down too steeply"):
        identify([track], size=(460, 700))


def test_what_air_brakes_to_a_steady_speed_falls_or_sinks():
    """A paper filter that is let go: its terminal speed of 1.2 m/s is told by gravity, without a scale."""
    times, (speed, pixels) = np.arange(40) / 30, (1.2, 300.0)
    constant = speed / 9.81
    depth = pixels * speed * constant * np.log(np.cosh(times / constant))
    path = np.stack([180 + 0 * times, 40 + depth], 1) + np.random.default_rng(0).normal(0, 0.2, (40, 2))
    track = Track(times, path, np.full(40, 0.2), np.ones(40, bool), radius=9.0)
    unknown = identify([track], size=(360, 500))
    assert {unknown.motion, *unknown.indistinguishable} == {"sink", "fall"}
    result = identify([track], "fall", {"gravity": 9.81}, size=(360, 500))
    low, high = result.parameters["terminal_speed"].interval_95
    assert low < speed < high < 1.2 * low


def test_what_friction_stops_may_move_down_a_picture_from_above():
    times = np.arange(60) / 30
    fall = np.where(times < 1.5, 300 * times - 100 * times**2, 225)
    path = np.stack([np.full(60, 180.0), 40 + fall], 1) + np.random.default_rng(0).normal(0, 0.2, (60, 2))
    track = Track(times, path, np.full(60, 0.2), np.ones(60, bool), radius=9.0)
    result = identify([track], "slide", {"scale": 400.0}, size=(360, 400))
    low, high = result.parameters["acceleration"].interval_95
    assert low < 200 / 400 < high or low < -200 / 400 < high
