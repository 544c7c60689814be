"""Bounces in the sound track: onsets, which knock is whose, and what they tell."""

# pyright: reportGeneralTypeIssues=false

import av
import numpy as np

from physvision import video
from physvision.datasets.clips import Filming, draw
from physvision.identification import identify
from physvision.identification.impacts import audio_restitution
from physvision.identification.settings import AudioSettings
from physvision.perception import detect_onsets

RATE = 44_100


def knock_samples(moments, seconds, seed=0, hum=0.02):
    """Samples of knocks that fade within ten milliseconds, in noise and hum."""
    random = np.random.default_rng(seed)
    times = np.arange(round(seconds * RATE)) / RATE
    samples = 0.002 * random.normal(size=len(times)) + hum * np.sin(2 * np.pi * 50 * times)
    for moment in moments:
        after = times - moment
        ring = np.exp(-after.clip(min=0) / 0.01) * random.normal(size=len(times))
        samples += 0.3 * np.where(after >= 0, ring, 0.0)
    return samples.astype(np.float32)


def bounces(clip):
    """When a drawn ball hits the floor: a fall from rest, then flights that are each shorter by the restitution."""
    height, e = clip.motion.poses(np.zeros(1))[0, 0, 1] - clip.truth["radius"], clip.truth["restitution"]
    last = np.sqrt(2 * height / 9.81)
    flights = 2 * last * e ** np.arange(1, 8)
    moments = last + np.concatenate([[0], np.cumsum(flights)])
    return moments[moments < clip.times[-1]]


def test_knocks_are_found_to_a_millisecond_in_noise_and_hum():
    moments = np.array([0.31, 0.82, 1.17, 1.43])
    result = detect_onsets(video.AudioTrack(knock_samples(moments, 2.0)[:, None], RATE, 0.25))
    np.testing.assert_allclose(result, moments + 0.25, atol=1e-3)
    assert not len(detect_onsets(video.AudioTrack(knock_samples([], 2.0)[:, None], RATE, 0.0)))


def test_knocks_that_come_late_and_between_noises_tell_the_restitution():
    random = np.random.default_rng(1)
    moments = 0.4 + np.concatenate([[0], np.cumsum(0.5 * 0.8 ** np.arange(5))])
    bounce_times = moments + random.uniform(-0.02, 0.0, len(moments))  # the last frame before each
    knock_times = np.sort([*(moments + 0.04), 0.1, 0.77])
    result = audio_restitution(bounce_times, knock_times, 0.03, AudioSettings())
    assert result is not None
    assert result.num_bounces == len(moments)
    assert abs(result.restitution - 0.8) < 1e-9
    assert audio_restitution(bounce_times[:2], knock_times, 0.03, AudioSettings()) is None
    assert audio_restitution(bounce_times, np.zeros(0), 0.03, AudioSettings()) is None


def test_a_drawn_clip_with_a_drawn_sound_track(tmp_path):
    clip = draw("bounce", 2, Filming(size=(320, 240), fps=30, noise=1.0))
    moments = bounces(clip)
    assert len(moments) >= 3
    samples = knock_samples(moments + 0.02, clip.times[-1] + 0.2)
    with av.open(str(tmp_path / "loud.mov"), "w") as container:
        picture = container.add_stream("libx264", rate=30, options={"crf": "18"})
        picture.width, picture.height, picture.pix_fmt = 320, 240, "yuv420p"
        track = container.add_stream("pcm_s16le", rate=RATE)
        track.layout = "mono"
        for frame in clip.frames():
            container.mux(picture.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        block = av.AudioFrame.from_ndarray((samples[None] * 32767).astype(np.int16), format="s16", layout="mono")
        block.sample_rate, block.pts = RATE, 0
        container.mux(track.encode(block))
        container.mux(picture.encode(None))
        container.mux(track.encode(None))
    result = identify(tmp_path / "loud.mov", "bounce", clip.known)
    assert any("bounces are heard" in note for note in result.warnings)
    low, high = result.parameters["restitution"].interval_95
    assert low - (high - low) / 2 < clip.truth["restitution"] < high + (high - low) / 2
    assert high - low < 0.02
