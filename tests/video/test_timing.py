"""When frames were taken, which are missing or there twice, and what was heard meanwhile."""

import av
import numpy as np
import pytest
import torch

from physvision import video
from physvision.core import Clip
from physvision.video.reading import RegularitySettings


def ball(times, noise=0.0, seed=0):
    """A bright square that goes to the right over a gray picture, its edges smooth."""
    rows, columns = np.mgrid[:48, :160]
    frames = 100 + noise * np.random.default_rng(seed).normal(size=(len(times), 48, 160))
    for frame, time in zip(frames, times, strict=True):
        frame += 100 * (abs(rows - 24) < 5) * (5 - abs(columns - 8 - 66 * time)).clip(0, 1)
    return np.rint(frames.clip(0, 255)).astype(np.uint8)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".webm"])
def test_stamps_are_the_times_of_the_frames(tmp_path, suffix):
    path = video.write(tmp_path / f"a{suffix}", ball(np.arange(40) / 25), 25)
    clip = video.read(path)
    result = video.read_timestamps(path)
    np.testing.assert_allclose(result - result[0], clip.times, atol=1e-9)


def test_dropped_frames_are_counted(tmp_path):
    retained = np.array([number for number in range(60) if number not in (7, 20, 21, 40)])
    times = torch.from_numpy(retained / 30)
    path = video.write(tmp_path / "a.mkv", Clip(torch.from_numpy(ball(retained / 30))[..., None], times))
    timing = video.frame_timing(video.read(path))
    # Matroska's clock ticks in milliseconds.
    assert timing.frame_interval == pytest.approx(1 / 30, abs=1e-4)
    missing = np.diff(retained, prepend=-1) - 1
    np.testing.assert_array_equal(timing.dropped, missing)
    assert not timing.duplicated.any()


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
@pytest.mark.parametrize("copies", [2, 3, 4])
def test_doubled_frames_are_found(tmp_path, suffix, copies):
    """A recording of a screen at a multiple of the rate of what it shows; coded with losses."""
    frames = ball(np.arange(30) / 30, noise=2).repeat(copies, 0)
    timing = video.frame_timing(video.read(video.write(tmp_path / f"a{suffix}", frames, 30 * copies)))
    np.testing.assert_array_equal(timing.duplicated, np.arange(30 * copies) % copies > 0)


def test_a_still_noisy_picture_has_no_doubled_frames(tmp_path):
    frames = ball(np.zeros(40), noise=2)
    assert not video.frame_timing(
        video.read(video.write(tmp_path / "a.mkv", frames, 30, lossless=True))
    ).duplicated.any()


@pytest.mark.parametrize(("suffix", "codec"), [(".mp4", "aac"), (".mkv", "flac"), (".mov", "pcm_s16le")])
@pytest.mark.parametrize("late", [0.0, 0.25])
def test_sound_is_heard_when_it_was_made(tmp_path, suffix, codec, late):
    """Clicks at known times; `late` is how much later than the first frame the track begins."""
    rate, path, clicks = 44_100, tmp_path / f"a{suffix}", (0.5, 0.9, 1.3)
    samples = np.zeros(round((2.0 - late) * rate), np.float32)
    for click in clicks:
        samples[round((click - late) * rate)] = 0.9
    with av.open(str(path), "w") as container:
        picture = container.add_stream("libx264", rate=25)
        picture.width, picture.height, picture.pix_fmt = 160, 48, "yuv420p"
        track = container.add_stream(codec, rate=rate)
        track.layout = "mono"
        for frame in ball(np.arange(50) / 25):
            container.mux(picture.encode(av.VideoFrame.from_ndarray(frame, format="gray")))
        for start in range(0, len(samples), 1024):
            levels = samples[None, start : start + 1024]
            if codec != "aac":
                levels = (levels * 32767).astype(np.int16)
            block = av.AudioFrame.from_ndarray(levels, format="fltp" if codec == "aac" else "s16", layout="mono")
            block.sample_rate, block.pts = rate, start + round(late * rate)
            container.mux(track.encode(block))
        container.mux(picture.encode(None))
        container.mux(track.encode(None))
    sound = video.read_audio(path)
    assert sound is not None
    assert sound.sample_rate == rate
    assert sound.samples.shape[1] == 1
    for click in clicks:
        window = np.abs(sound.times - click) < 0.1
        result = sound.times[window][np.abs(sound.samples[window, 0]).argmax()]
        # Lossy coding rings by a block of 128 samples; Matroska's clock ticks in milliseconds.
        assert result == pytest.approx(click, abs=128 / rate)


def test_a_video_without_sound_has_none(tmp_path):
    assert video.read_audio(video.write(tmp_path / "a.mp4", ball(np.arange(5) / 25), 25)) is None


def test_a_larger_change_is_a_duplicate_where_the_settings_say_so(tmp_path):
    frames = ball(np.arange(20) / 30, noise=2).repeat(2, 0)
    clip = video.read(video.write(tmp_path / "a.mkv", frames, 60, lossless=True))
    assert video.frame_timing(clip).duplicated.sum() == 20
    assert not video.frame_timing(clip, RegularitySettings(max_change=0.0)).duplicated.any()
    # Without neighbors every frame is the largest change itself.
    assert not video.frame_timing(clip, RegularitySettings(neighbors=0)).duplicated.any()
