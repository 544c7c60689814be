"""Tracks of flickering edges, as noise and compression make them, are no moving objects."""

import numpy as np
import pytest

from physvision.identification.settings import TrackSettings
from physvision.identification.track_preparation import moving_tracks
from physvision.perception import Track


def _track(positions, sigma, name):
    count = len(positions)
    return Track(np.arange(count) / 25, positions, np.full(count, sigma), np.ones(count, bool), radius=6.0, name=name)


@pytest.fixture
def ball():
    return _track(np.stack([40 + 9.0 * np.arange(25), np.full(25, 90.0)], 1), 0.5, "ball")


def test_an_edge_that_rests_but_for_one_outlier_does_not_move(ball):
    positions = np.full((25, 2), 14.0) + np.random.default_rng(0).normal(0, 0.3, (25, 2))
    positions[0] = 36, 237
    edge = _track(positions, 0.3, "edge")
    assert moving_tracks([edge, ball], 1, TrackSettings()) == [ball]


def test_what_jumps_by_more_than_its_size_is_no_object(ball):
    jumps = _track(np.random.default_rng(0).uniform(0, 300, (25, 2)), 60.0, "jumps")
    assert moving_tracks([jumps, ball], 1, TrackSettings()) == [ball]
    assert moving_tracks([jumps], 1, TrackSettings()) == [jumps]


def test_two_that_move_stay(ball):
    positions = np.full((25, 2), 200.0)
    positions[20:, 0] += 9.0 * np.arange(1, 6)
    second = _track(positions, 0.4, "struck")
    assert {track.name for track in moving_tracks([ball, second], 1, TrackSettings())} == {"ball", "struck"}
