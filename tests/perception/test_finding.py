"""What moves is found in drawn clips, where it is to a small part of a pixel; what cannot be found is refused."""

import numpy as np
import pytest
import torch

from physvision.core import Clip, InputError, VideoError
from physvision.datasets.clips import Filming, draw
from physvision.perception import find_tracks

SMALL = Filming(size=(320, 240), fps=25, quality=20, noise=2.0, open=0.3)


def _errors(clip, track, body=0):
    """Distances from the truth, pixels, where the law holds and the thing was seen."""
    fit = track.seen & (clip.times >= clip.motion.begin)
    return np.linalg.norm(track.positions[fit] - clip.places()[fit, body], axis=1), fit.mean()


@pytest.mark.parametrize(("kind", "seed"), [("pendulum", 0), ("circular", 0), ("spring", 1), ("roll", 1)])
def test_one_thing_is_followed(tmp_path, kind, seed):
    clip = draw(kind, seed, SMALL)
    (track,) = find_tracks(clip.write(tmp_path / "clip.mp4"))
    errors, seen = _errors(clip, track)
    assert seen > 0.9
    assert np.median(errors) < 0.25
    assert np.quantile(errors, 0.95) < 0.8
    np.testing.assert_allclose(track.times, clip.stamps, atol=1e-4)


def test_two_things_keep_their_identity_through_a_collision(tmp_path):
    clip = draw("collision", 1, SMALL, fps=60)
    tracks = find_tracks(clip.write(tmp_path / "clip.mp4"), objects=2)
    for body in range(2):
        errors = [np.quantile(_errors(clip, track, body)[0], 0.9) for track in tracks]
        assert min(errors) < 0.8


def test_a_still_video_is_refused():
    frames = np.random.default_rng(0).normal(120, 3, (20, 64, 96, 3)).clip(0, 255).astype(np.uint8)
    with pytest.raises(InputError, match="nothing moves"):
        find_tracks(Clip(torch.from_numpy(frames), torch.arange(20) / 25))


def test_a_moving_camera_is_refused():
    random = np.random.default_rng(0)
    wall = np.repeat(np.repeat(random.integers(0, 255, (40, 60, 3)), 6, 0), 6, 1).astype(np.uint8)
    frames = np.stack([wall[10:210, 3 * time : 3 * time + 240] for time in range(30)])
    with pytest.raises(VideoError, match="camera"):
        find_tracks(Clip(torch.from_numpy(frames), torch.arange(30) / 25))


def test_another_number_of_things_than_expected_is_refused(tmp_path):
    path = draw("collision", 1, SMALL, fps=60).write(tmp_path / "clip.mp4")
    with pytest.raises(InputError, match="expected 1 moving thing, saw 2"):
        find_tracks(path, objects=1)
    with pytest.raises(InputError, match="expected 5 moving things, saw 2"):
        find_tracks(path, objects=5)
