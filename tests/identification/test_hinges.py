"""A rod's places are put at one distance from where its lines meet; what has no hinge is left as it is."""

import numpy as np
import pytest

from physvision.datasets.clips import draw
from physvision.identification import identify
from physvision.identification.track_preparation import project_to_hinge_circle
from physvision.perception import Track

TIMES = np.arange(120) / 30


def track(positions, angles):
    random = np.random.default_rng(1)
    positions = positions + random.normal(0, 0.05, positions.shape)
    observed = np.ones(len(TIMES), bool)
    return Track(TIMES, positions, np.full(len(TIMES), 0.05), observed, angles + random.normal(0, 0.003, len(angles)))


def arms(angles):
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def test_a_rod_that_is_seen_in_part_keeps_its_direction():
    hinge, angles = np.array([160.0, 40.0]), np.pi / 2 + 1.2 * np.cos(6 * TIMES)
    # Less of it is seen near the hinge where it is slow.
    reach = 100 + 3 * np.abs(np.cos(6 * TIMES))
    result = project_to_hinge_circle(track(hinge + reach[:, None] * arms(angles), angles))
    apart = result.positions - hinge
    assert np.ptp(np.linalg.norm(apart, axis=1)) < 0.5
    np.testing.assert_allclose(np.arctan2(apart[:, 1], apart[:, 0]), angles, atol=0.003)


@pytest.mark.parametrize("what", ["a box that slides", "a leaf that falls", "a rod about its middle", "a tilted rod"])
def test_what_has_no_hinge_is_left_as_it_is(what):
    straight = np.stack([20 + 60 * TIMES, 100 + 0 * TIMES], 1)
    angles = {"a box that slides": 0 * TIMES, "a leaf that falls": np.sin(9 * TIMES)}.get(what, 2 * np.sin(4 * TIMES))
    positions = straight
    if what == "a rod about its middle":
        positions = np.array([160.0, 120.0]) + 0 * straight
    if what == "a tilted rod":  # its angle is told from another direction than its own
        positions = np.array([160.0, 40.0]) + 100 * arms(angles + 0.3)
    given = track(positions, angles)
    assert project_to_hinge_circle(given) is given


@pytest.mark.slow
def test_a_drawn_rod_tells_its_length(tmp_path):
    clip = draw("pendulum", 100)
    result = identify(clip.write(tmp_path / "rod.mp4"), "pendulum", {"gravity": 9.81})
    assert result.parameters["length"].value == pytest.approx(clip.truth["length"], rel=1e-3)
