"""Frame rates that were converted by dropping or repeating frames show in the motion; others are left as they are."""

import numpy as np
import pytest

from physvision.datasets.clips import draw
from physvision.perception import Track
from physvision.perception.cadence import find_cadence
from physvision.perception.settings import CadenceSettings
from physvision.perception.track import apply_cadence

SETTINGS = CadenceSettings()


def swing(times):
    return np.stack([160 + 120 * np.sin(4.0 * times), 150 + 12 * np.cos(8.0 * times)], 1)


def bounces(times):
    """Balls that bounce every 0.6 s, at the same height."""
    phase = times % 0.6 - 0.3
    return np.stack([20 + 60 * times, 300 - 2000 * (0.09 - phase**2)], 1)


def converted(motion, camera_fps, file_fps, count=120, noise=0.2, seed=0):
    """Frame numbers of the camera, and positions of the file's frames."""
    random = np.random.default_rng(seed)
    numbers = np.floor(np.arange(count) * camera_fps / file_fps + random.random())
    positions = motion(numbers / camera_fps) + random.normal(0, noise, (count, 2))
    repeats = np.append(False, np.diff(numbers) == 0)
    positions[repeats] = positions[np.flatnonzero(repeats) - 1]
    return numbers / camera_fps, positions, repeats


@pytest.mark.parametrize("motion", [swing, bounces])
@pytest.mark.parametrize(
    ("camera_fps", "file_fps"), [(30, 25), (30000 / 1001, 25), (24, 30), (25, 30), (50, 30), (30, 24)]
)
def test_a_conversion_is_undone(motion, camera_fps, file_fps):
    times, positions, repeats = converted(motion, camera_fps, file_fps)
    cadence = find_cadence(np.arange(len(times)) / file_fps, positions, SETTINGS)
    assert cadence is not None
    assert cadence.camera_fps == pytest.approx(camera_fps, rel=2e-3)
    # Of two equal frames either is the repeat.
    offset = cadence.times[~cadence.repeats] - times[~cadence.repeats]
    # A slip of the phase may be placed a frame or two too early or late.
    assert np.quantile(np.abs(offset - np.median(offset)), 0.9) < 0.2 / camera_fps
    assert cadence.repeats.sum() == pytest.approx(repeats.sum(), abs=2)


@pytest.mark.parametrize("motion", [swing, bounces])
@pytest.mark.parametrize("noise", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_even_frames_stay_as_they_are(motion, noise, seed):
    times = np.arange(120) / 25
    positions = motion(times) + np.random.default_rng(seed).normal(0, noise, (120, 2))
    assert find_cadence(times, positions, SETTINGS) is None


@pytest.mark.parametrize(
    "kind", ["bounce", "spring", "pendulum", "projectile", "circular", "collision", "double_pendulum"]
)
@pytest.mark.parametrize("seed", range(3))
def test_drawn_motions_stay_as_they_are(kind, seed):
    clip = draw(kind, seed, duplicated=0.0, dropped=0.0)
    positions = clip.positions() + np.random.default_rng(seed).normal(0, 0.1, clip.positions().shape)
    for body in range(positions.shape[1]):
        assert find_cadence(clip.timestamps, positions[:, body], SETTINGS) is None


def test_repeated_frames_are_not_observed_and_a_note_names_the_rates():
    _, positions, repeats = converted(swing, 24, 30)
    track = Track(np.arange(120) / 30, positions, np.full(120, 0.2), np.ones(120, bool), radius=6.0)
    (result,) = apply_cadence([track])
    assert result.observed.sum() == pytest.approx((~repeats).sum(), abs=2)
    assert any("converted from" in note and "to 30 frames" in note for note in result.notes)
