"""Frames that are missing behind even time stamps are noticed, and no impact or oscillation is taken for one."""

import numpy as np
import pytest

from physvision.datasets.clips import draw
from physvision.perception import Track
from physvision.perception.timestamps import repair_timestamps


def followed(times, places):
    count = len(times)
    return Track(times, places, np.full(count, 0.1), np.ones(count, bool), radius=6.0)


def swing(times):
    return np.stack([160 + 120 * np.sin(4.0 * times), 150 + 12 * np.cos(8.0 * times)], 1)


def test_missing_frames_are_put_in():
    random = np.random.default_rng(0)
    taken = np.delete(np.arange(240), [50, 92, 93, 190]) / 60
    places = swing(taken) + random.normal(0, 0.1, (len(taken), 2))
    (track,) = repair_timestamps([followed(np.arange(len(taken)) / 60, places)])
    np.testing.assert_allclose(track.times, taken, atol=1e-9)
    assert any("dropped" in note for note in track.notes)


@pytest.mark.parametrize("kind", ["bounce", "spring", "pendulum", "projectile", "collision", "fall"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_complete_stays_as_it_is(kind, seed):
    clip = draw(kind, seed, doubled=0.0, dropped=0.0)
    random = np.random.default_rng(seed)
    places = clip.places() + random.normal(0, 0.1, clip.places().shape)
    tracks = [followed(clip.stamps.copy(), places[:, body]) for body in range(places.shape[1])]
    for before, after in zip(tracks, repair_timestamps(tracks), strict=True):
        np.testing.assert_array_equal(before.times, after.times)


def test_one_that_is_shown_twice_and_caught_up_with_later():
    random = np.random.default_rng(0)
    shown = np.arange(240)
    shown[95:185] -= 1  # frame 94 is shown twice, and one is left out after ninety
    places = swing(shown / 60) + random.normal(0, 0.1, (240, 2))
    seen = np.append(True, np.diff(shown) > 0)
    track = Track(np.arange(240) / 60, places, np.where(seen, 0.1, np.inf), seen, radius=6.0)
    (found,) = repair_timestamps([track])
    np.testing.assert_allclose(found.times[seen], shown[seen] / 60, atol=1e-9)


def test_a_camera_that_waits_and_catches_up_takes_a_frame_in_between():
    taken = np.arange(240.0)
    taken[93:] += 0.8
    taken[140:] -= 0.8
    random = np.random.default_rng(0)
    seen = np.arange(240) != 139  # shown twice
    places = swing(taken / 60) + random.normal(0, 0.05, (240, 2))
    track = Track(np.arange(240) / 60, places, np.where(seen, 0.05, np.inf), seen, radius=6.0)
    (found,) = repair_timestamps([track])
    speed = 4.0 * 120 / 60  # px a frame, at most
    off = (found.times - taken / 60)[seen] * 60
    assert np.abs(off - off[0]).max() < 4 * 0.05 * np.sqrt(2) / (0.5 * speed)


def test_places_that_are_less_sure_than_is_told_hide_no_frames():
    """A throw at 120 frames a second, filmed completely, whose places are off by a fifth of what it goes in a frame."""
    times = np.arange(150) / 120
    path = np.stack([450 - 216 * times, 170 - 340 * times + 345 * times**2], 1)
    for seed in range(30):
        places = path + np.random.default_rng(seed).normal(0, 0.4, path.shape)
        (track,) = repair_timestamps([Track(times, places, np.full(150, 0.2), np.ones(150, bool), radius=6.0)])
        np.testing.assert_array_equal(track.times, times)


def test_a_step_back_is_no_frame():
    """What is followed wrongly for one frame in a straight motion leaves the stamps as they are."""
    random = np.random.default_rng(0)
    places = np.stack([10 + 5.0 * np.arange(60), np.full(60, 50.0)], 1) + random.normal(0, 0.05, (60, 2))
    places[30:] -= [12.0, 0.0]
    (track,) = repair_timestamps([followed(np.arange(60) / 60, places)])
    np.testing.assert_array_equal(track.times, np.arange(60) / 60)
