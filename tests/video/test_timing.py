"""When frames were taken, and what was heard meanwhile."""

import av
import numpy as np
import pytest

from physvision import video


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
