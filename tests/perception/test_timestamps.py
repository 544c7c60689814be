"""Frames that are missing behind even time stamps are noticed, and no impact or oscillation is taken for one."""

import numpy as np
import pytest

from physvision.datasets.clips import draw
from physvision.perception import Track
from physvision.perception.track import repair_timestamps


def followed(times, positions):
    count = len(times)
    return Track(times, positions, np.full(count, 0.1), np.ones(count, bool), radius=6.0)


def swing(times):
    return np.stack([160 + 120 * np.sin(4.0 * times), 150 + 12 * np.cos(8.0 * times)], 1)


def test_missing_frames_are_put_in():
    random = np.random.default_rng(0)
    captured = np.delete(np.arange(240), [50, 92, 93, 190]) / 60
    positions = swing(captured) + random.normal(0, 0.1, (len(captured), 2))
    (track,) = repair_timestamps([followed(np.arange(len(captured)) / 60, positions)])
    np.testing.assert_allclose(track.times, captured, atol=1e-9)
    assert any("dropped" in note for note in track.notes)


@pytest.mark.parametrize("kind", ["bounce", "spring", "pendulum", "projectile", "collision", "fall"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_complete_stays_as_it_is(kind, seed):
    clip = draw(kind, seed, duplicated=0.0, dropped=0.0)
    random = np.random.default_rng(seed)
    positions = clip.positions() + random.normal(0, 0.1, clip.positions().shape)
    tracks = [followed(clip.timestamps.copy(), positions[:, body]) for body in range(positions.shape[1])]
    for before, after in zip(tracks, repair_timestamps(tracks), strict=True):
        np.testing.assert_array_equal(before.times, after.times)


def test_one_that_is_shown_twice_and_caught_up_with_later():
    random = np.random.default_rng(0)
    shown = np.arange(240)
    shown[95:185] -= 1  # frame 94 is shown twice, and one is left out after ninety
    positions = swing(shown / 60) + random.normal(0, 0.1, (240, 2))
    observed = np.append(True, np.diff(shown) > 0)
    track = Track(np.arange(240) / 60, positions, np.where(observed, 0.1, np.inf), observed, radius=6.0)
    (result,) = repair_timestamps([track])
    np.testing.assert_allclose(result.times[observed], shown[observed] / 60, atol=1e-9)


def test_a_camera_that_waits_and_catches_up_takes_a_frame_in_between():
    captured = np.arange(240.0)
    captured[93:] += 0.8
    captured[140:] -= 0.8
    random = np.random.default_rng(0)
    observed = np.arange(240) != 139  # shown twice
    positions = swing(captured / 60) + random.normal(0, 0.05, (240, 2))
    track = Track(np.arange(240) / 60, positions, np.where(observed, 0.05, np.inf), observed, radius=6.0)
    (result,) = repair_timestamps([track])
    speed = 4.0 * 120 / 60  # px a frame, at most
    off = (result.times - captured / 60)[observed] * 60
    assert np.abs(off - off[0]).max() < 4 * 0.05 * np.sqrt(2) / (0.5 * speed)


def test_places_that_are_less_sure_than_is_told_hide_no_frames():
    """A throw at 120 frames a second, filmed completely, whose places are off by a fifth of what it goes in a frame."""
    times = np.arange(150) / 120
    path = np.stack([450 - 216 * times, 170 - 340 * times + 345 * times**2], 1)
    for seed in range(30):
        positions = path + np.random.default_rng(seed).normal(0, 0.4, path.shape)
        (track,) = repair_timestamps([Track(times, positions, np.full(150, 0.2), np.ones(150, bool), radius=6.0)])
        np.testing.assert_array_equal(track.times, times)


def test_a_step_back_is_no_frame():
    """What is followed wrongly for one frame in a straight motion leaves the stamps as they are."""
    random = np.random.default_rng(0)
    positions = np.stack([10 + 5.0 * np.arange(60), np.full(60, 50.0)], 1) + random.normal(0, 0.05, (60, 2))
    positions[30:] -= [12.0, 0.0]
    (track,) = repair_timestamps([followed(np.arange(60) / 60, positions)])
    np.testing.assert_array_equal(track.times, np.arange(60) / 60)


def test_what_a_hand_covers_shows_no_missing_frame():
    """Where a hand lets go of a block, its position is off by half a step, and known to no better."""
    random = np.random.default_rng(0)
    times = np.arange(90) / 30
    moving = np.minimum(times, 0.8)
    positions = np.stack([140 + 530 * moving - 330 * moving**2, np.full(90, 282.0)], 1) + random.normal(
        0, 0.05, (90, 2)
    )
    sigma = np.where(times < 0.8, 0.4, 0.05)
    positions[9:, 0] -= 9.0
    sigma[[9, 10]] = 1.9, 4.0
    track = Track(times, positions, sigma, np.ones(90, bool), radius=13.0)
    (result,) = repair_timestamps([track])
    np.testing.assert_array_equal(result.times, times)
