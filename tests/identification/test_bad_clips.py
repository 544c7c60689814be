"""Clips that are not what one hopes for: a right result, less sure where less is seen, or a refusal that says why."""

import json

import cv2
import numpy as np
import pytest
import torch

from physvision.cli import main
from physvision.core import Clip, InputError, VideoError
from physvision.datasets.clips import Filming, draw
from physvision.identification import identify

pytestmark = pytest.mark.extended  # each identifies whole clips

FPS, COUNT = 25, 64
FILMING = Filming(size=(320, 240), fps=FPS, quality=20, noise=2.0, exposure=0.3)
SEED = 3  # a bob on a string that swings once a second


@pytest.fixture(scope="module")
def swing():
    """A drawn pendulum and its frames."""
    clip = draw("pendulum", SEED, FILMING)
    frames = np.stack([frame for frame, _ in zip(clip.frames(), range(COUNT), strict=False)])
    return clip, frames


@pytest.fixture(scope="module")
def full_width(swing):
    """What the clip tells as it is: the width of its interval of the length, m."""
    low, high = identify_frames(swing[1]).intervals["length"]
    return high - low


def identify_frames(frames, fps=FPS, **options):
    clip = Clip(torch.from_numpy(np.ascontiguousarray(frames)), torch.arange(len(frames), dtype=torch.float64) / fps)
    return identify(clip, "pendulum", {"gravity": 9.81}, **options)


def contains_truth(result, truth):
    """The interval, once more as wide, contains the truth: one in twenty misses it; and the length is within 1 %."""
    low, high = result.intervals["length"]
    width = high - low
    return low - width / 2 < truth < high + width / 2 and abs(result.parameters["length"].value / truth - 1) < 0.01


def flicker(frames):
    """Frames of which none is the same as another."""
    random = np.random.default_rng(0)
    return np.clip(frames + random.integers(-2, 3, (len(frames), 1, 1, 3)), 0, 255).astype(np.uint8)


def test_a_still_video_is_refused(swing):
    with pytest.raises(InputError, match="nothing moves"):
        identify_frames(flicker(np.repeat(swing[1][:1], 30, 0)))


def test_a_camera_that_moves_is_refused(swing):
    random = np.random.default_rng(0)
    wall = np.repeat(np.repeat(random.integers(0, 150, (30, 60, 3)), 8, 0), 8, 1)
    frames = [np.roll(frame, -3 * k, 1) // 3 + wall[:, 3 * k : 3 * k + 320] for k, frame in enumerate(swing[1][:40])]
    with pytest.raises(VideoError, match="the camera moves"):
        identify_frames(np.stack(frames).astype(np.uint8))


def test_one_swing_tells_less(swing, full_width):
    clip, frames = swing
    result = identify_frames(frames[: round(clip.truth["period"] * FPS)])
    assert contains_truth(result, clip.truth["length"])
    low, high = result.intervals["length"]
    assert high - low > full_width


def test_half_a_swing_tells_less(swing, full_width):
    clip, frames = swing
    result = identify_frames(frames[:13])
    assert contains_truth(result, clip.truth["length"])
    low, high = result.intervals["length"]
    assert high - low > full_width


def test_a_folder_of_pictures(swing, tmp_path):
    clip, frames = swing
    pictures, out = tmp_path / "pictures", tmp_path / "out"
    pictures.mkdir()
    for number, frame in enumerate(frames[: round(clip.truth["period"] * FPS)]):
        cv2.imwrite(str(pictures / f"{number:03d}.png"), frame[..., ::-1])
    options = ["--motion", "pendulum", "--known", "gravity=9.81", "--fps", str(FPS), "--no-film", "--out", str(out)]
    assert main(["identify", str(pictures), *options]) == 0
    length = json.loads((out / "parameters.json").read_text())["parameters"]["length"]["value"]
    assert abs(length / clip.truth["length"] - 1) < 0.01


def test_a_third_of_a_swing_is_refused(swing):
    with pytest.raises(InputError, match="pendulum: "):
        identify_frames(swing[1][:9])


def test_what_leaves_the_picture_and_comes_back_tells_less(swing, full_width):
    clip, frames = swing
    positions = clip.positions()[:COUNT, 0, 0]
    result = identify_frames(frames, crop=(0, 0, int(positions.mean() - 0.1 * np.ptp(positions)), 240))
    assert contains_truth(result, clip.truth["length"])
    low, high = result.intervals["length"]
    assert high - low > full_width


def test_eight_frames_a_second_are_enough_for_a_slow_swing():
    clip = draw("pendulum", 1, FILMING, fps=8)
    assert contains_truth(identify_frames(np.stack(list(clip.frames())), 8), clip.truth["length"])


def test_what_is_held_half_of_the_time_counts_from_where_it_is_let_go(swing):
    clip, frames = swing
    result = identify_frames(flicker(np.concatenate([np.repeat(frames[:1], COUNT, 0), frames])))
    assert contains_truth(result, clip.truth["length"])
    assert any("Nothing moves in the first 2." in note for note in result.warnings)


@pytest.mark.slow
def test_what_stands_still_in_the_end_is_said(swing):
    clip, frames = swing
    result = identify_frames(flicker(np.concatenate([frames, np.repeat(frames[-1:], COUNT, 0)])))
    assert contains_truth(result, clip.truth["length"])
    assert any("--to" in note for note in result.warnings)
    assert not any("Something else moves" in note for note in result.warnings)


@pytest.mark.slow
def test_two_things_that_move_where_one_is_expected(swing):
    clip, frames = swing
    frames_of_two = frames.copy()
    for k, frame in enumerate(frames_of_two):
        place = 160 + 90 * np.sin(2 * np.pi * k / FPS / 1.1)
        cv2.circle(frame, (round(place), 25), 9, (20, 160, 40), -1, cv2.LINE_AA)
    result = identify_frames(frames_of_two)
    assert contains_truth(result, clip.truth["length"])
    (note,) = [note for note in result.warnings if "Something else moves too" in note]
    assert note.startswith(f"Analyzed: {result.evidence.tracks[0].name}: ")
    pointed = Clip(torch.from_numpy(frames_of_two), torch.arange(COUNT, dtype=torch.float64) / FPS)
    second = identify(pointed, "spring", object="#14a028")
    assert second.parameters["period"].value == pytest.approx(1.1, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"size": (240, 320), "quarter_turns": 1}, {"repeat": 2}])
def test_portrait_clips_with_a_rotation_flag_and_screen_recordings(tmp_path, changes):
    clip = draw("pendulum", SEED, FILMING, **changes)
    result = identify(clip.write(tmp_path / "clip.mp4"), "pendulum", {"gravity": 9.81})
    assert contains_truth(result, clip.truth["length"])
