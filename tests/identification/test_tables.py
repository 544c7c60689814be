"""Tables of lengths: thresholds in pixels mean a part of the motion's extent."""

from dataclasses import replace

import numpy as np
import pytest

from physvision.identification import identify
from physvision.identification.settings import TrackSettings
from physvision.identification.track_preparation import trim_initial_rest
from physvision.perception import Track


def table(positions, times, noise, unit="m"):
    count = len(times)
    return Track(times, positions, np.full(count, noise), np.ones(count, bool), name="object", unit=unit)


@pytest.mark.parametrize("unit_length", [1.0, 1e-3], ids=["m", "mm"])
def test_a_spring_of_a_hand_s_breadth_in_meters(unit_length):
    times, random = np.arange(90) / 30, np.random.default_rng(0)
    y = 0.15 * np.exp(-0.1 * times) * np.cos(7 * times)
    positions = np.stack([0 * times, y], 1) * unit_length + random.normal(0, 5e-4 * unit_length, (90, 2))
    result = identify([table(positions, times, 5e-4 * unit_length)], "spring")
    assert result.parameters["period"].value == pytest.approx(2 * np.pi / 7, rel=2e-3)
    assert result.fit.noise < 1e-3 * unit_length


def test_a_slide_of_24_centimeters_and_a_fall_of_1_8_meters():
    times, random = np.arange(30) / 30, np.random.default_rng(1)
    slope = np.radians(20)
    along = 0.24 * times**2
    positions = np.stack([along * np.cos(slope), along * np.sin(slope)], 1) + random.normal(0, 3e-4, (30, 2))
    result = identify([table(positions, times, 3e-4)], "slide")
    assert result.parameters["acceleration"].value == pytest.approx(0.48, rel=0.02)
    times = np.arange(19) / 30
    positions = np.stack([0 * times, 4.905 * times**2], 1) + random.normal(0, 1e-3, (19, 2))
    result = identify([table(positions, times, 1e-3)], "fall")
    assert result.parameters["gravity"].value == pytest.approx(9.81, rel=0.03)


def test_rests_of_objects_that_are_observed_at_different_times():
    """The second object appears late, and for fewer frames than the first one rests."""
    times = np.arange(70) / 25.0
    first = np.stack([np.maximum(times - 1.6, 0) * 90, 0 * times], 1)
    second = np.stack([100 - np.maximum(times - 2.0, 0) * 90, 0 * times], 1)
    tracks = [table(first, times, 0.1, "px"), table(second, times, 0.1, "px")]
    late = np.arange(70) >= 50
    tracks[1] = replace(tracks[1], observed=late, sigma=np.where(late, 0.1, np.inf))
    trimmed, notes = trim_initial_rest(tracks, TrackSettings())
    assert trimmed[0].times[trimmed[0].observed][0] == pytest.approx(1.6, abs=0.1)
    assert trimmed[1].observed.sum() == 20
    assert "Nothing moves in the first 1.6 s" in notes[0]


def test_a_short_hold_is_left_out_and_a_slow_start_is_not():
    """A hold of a tenth of the clip ends suddenly; a body that falls from rest is as slow for as long."""
    times = np.arange(240) / 60
    swing = np.stack([150 * np.cos(5 * np.maximum(times - 0.4, 0)), 0 * times], 1)
    (trimmed,), notes = trim_initial_rest([table(swing, times, 0.2, "px")], TrackSettings())
    assert trimmed.times[trimmed.observed][0] == pytest.approx(0.45, abs=0.05)
    assert "Nothing moves in the first" in notes[0]
    for path in (150 * np.cos(5 * times), 40 * times**2):
        slow = table(np.stack([path, 0 * times], 1), times, 0.2, "px")
        assert trim_initial_rest([slow], TrackSettings()) == ([slow], [])
