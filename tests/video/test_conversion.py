"""A video is brought to a rate, a part and a size: at the right moments, with the right pixels."""

from functools import partial

import numpy as np
import pytest
import torch

from physvision import video
from physvision.core import InputError, Scene, SceneObject, VideoError
from physvision.video import Conversion
from physvision.video.scene_frames import SceneFitSettings, fit_conversion, open_scene_stream


def gradients(times=24, height=24, width=32):
    """Red says the column, green the row, blue the frame."""
    rows, columns = np.mgrid[:height, :width]
    return np.stack([np.stack([7 * columns, 10 * rows, rows * 0 + 10 * time], -1) for time in range(times)]).astype(
        np.uint8
    )


@pytest.fixture
def movie(tmp_path):
    return video.write(tmp_path / "a.mkv", gradients(), 24, lossless=True)


def test_reading_crops_scales_and_resamples(movie):
    clip = video.read(movie, conversion=Conversion(fps=12, crop=(4, 2, 16, 20), size=(8, 10)))
    # Two by two pixels become one, their mean; every second frame is taken.
    true = gradients()[::2, 2:22, 4:20].reshape(12, 10, 2, 8, 2, 3).mean((2, 4))
    assert np.abs(clip.frames.numpy() - true).max() <= 0.5
    np.testing.assert_allclose(clip.times, np.arange(12) / 12, atol=1e-12)


def test_parts_and_chunks_count_converted_frames(movie):
    conversion = Conversion(fps=12, size=8)
    whole = video.read(movie, conversion=conversion)
    assert whole.frames.shape == (12, 8, 8, 3)
    assert torch.equal(video.read(movie, 3, 5, conversion=conversion).frames, whole.frames[3:5])
    chunks = list(video.chunks(movie, 5, conversion=conversion))
    assert [len(chunk) for chunk in chunks] == [5, 5, 2]
    assert torch.equal(torch.cat([chunk.times for chunk in chunks]), whole.times)


def test_slow_motion_has_the_times_of_what_was_filmed(movie):
    clip = video.read(movie, conversion=Conversion(capture_fps=240))
    # Matroska's clock ticks in milliseconds, which are a tenth as long here.
    np.testing.assert_allclose(clip.times, np.arange(24) / 240, atol=1e-4)
    fewer = video.read(movie, conversion=Conversion(capture_fps=240, fps=60))
    assert torch.equal(fewer.frames, clip.frames[::4])
    np.testing.assert_allclose(fewer.times, np.arange(6) / 60, atol=1e-12)


def test_a_conversion_that_does_not_fit_is_named(movie):
    with pytest.raises(InputError, match="exceed the image of 32 x 24"):
        video.read(movie, conversion=Conversion(crop=(20, 0, 20, 20)))
    for wrong in ({"fps": 0.0}, {"capture_fps": float("nan")}, {"size": 0}, {"crop": (0, 0, 0, 4)}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Conversion(**wrong)


def test_frames_that_change_size_are_not_cropped(movie, monkeypatch):
    changing = [(0.0, np.zeros((4, 4, 3), np.uint8)), (0.5, np.zeros((6, 4, 3), np.uint8))]
    monkeypatch.setattr("physvision.video.reading._stream_file", lambda path, color: iter(changing))
    with pytest.raises(VideoError, match=r"change size at 0\.50 s"):
        video.read(movie, conversion=Conversion(size=2))


def test_the_fit_to_a_scene_is_as_strict_as_its_settings(movie):
    scene = Scene("a", "a", (16, 12), "rgb", 23.0, 2, {"x": "px"}, [SceneObject("a", 0)], {})
    info = video.read_info(movie)
    fit = partial(fit_conversion, "a.mkv", info, scene)
    # 24 frames a second for 23, and an image of 32 x 24 whose part of 16 x 13 is stretched to 16 x 12.
    conversion = Conversion(crop=(0, 0, 16, 13))
    assert fit(conversion, SceneFitSettings(rate_tolerance=0.05, aspect_tolerance=0.1))[0].size == (16, 12)
    with pytest.raises(InputError, match="expects 23"):
        fit(conversion, SceneFitSettings(rate_tolerance=0.04, aspect_tolerance=0.1))
    with pytest.raises(InputError, match="another aspect ratio"):
        fit(conversion, SceneFitSettings(rate_tolerance=0.05, aspect_tolerance=0.05))


def test_pictures_for_reports_are_reduced(tmp_path):
    """Two batches of 4K frames took over a gigabyte."""
    frames = np.zeros((4, 1200, 1600, 3), np.uint8)
    frames[:, :, 800:] = 200
    scene = Scene("a", "a", (100, 100), "gray", 24.0, 2, {"x": "px"}, [SceneObject("a", 0)], {})
    path = video.write(tmp_path / "large.mp4", frames, scene.fps)
    crop = (400, 0, 1200, 1200)
    timed = next(iter(open_scene_stream(path, scene, Conversion(crop=crop, size=scene.size))))
    assert timed.original.shape == (1080, 1080, 1)
    assert timed.frame.shape == (100, 100, 1)
    assert timed.original[540, 100, 0] < 5
    assert timed.original[540, 800, 0] > 190
