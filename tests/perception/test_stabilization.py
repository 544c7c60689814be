"""Clips of a hand-held camera are registered by their background's homography or shift; one that pans is refused."""

import cv2
import numpy as np
import pytest
import torch

from physvision.core import Clip, VideoError
from physvision.perception import find_tracks
from physvision.perception.frame_source import FrameSource
from physvision.perception.settings import PerceptionSettings
from physvision.perception.stabilization import camera_shifts

COUNT, FPS, SIZE = 60, 25, (320, 240)


def scene():
    """A wall with pictures and furniture: rectangles of many shades."""
    random = np.random.default_rng(0)
    image = np.full((SIZE[1], SIZE[0], 3), 150, np.uint8)
    for _ in range(60):
        corner = random.integers(0, SIZE)
        far = corner + random.integers(10, 60, 2)
        cv2.rectangle(image, corner.tolist(), far.tolist(), random.integers(100, 210, 3).tolist(), -1)
    return cv2.GaussianBlur(image, (0, 0), 1)


def ball(time):
    angle = 0.6 * np.sin(5 * time)
    return np.array([160 + 150 * np.sin(angle), 20 + 150 * np.cos(angle)])


def plain_wall():
    """A wall with a skirting board and a rod: edges, but hardly a corner."""
    image = np.full((SIZE[1], SIZE[0], 3), 190, np.uint8)
    image[205:] = 120
    image[60:205, 40:44] = 60
    return cv2.GaussianBlur(image, (0, 0), 1)


def filmed(shifts, turn, background=None, seed=1):
    """Clip of a ball, filmed with these shifts, px, and turns, rad, and the ball's positions in the middle frame."""
    random, frames, matrices = np.random.default_rng(seed), [], []
    background = scene() if background is None else background
    for number, (shift, angle) in enumerate(zip(shifts, turn, strict=True)):
        large = cv2.resize(background, None, fx=4, fy=4, interpolation=cv2.INTER_LINEAR)
        cv2.circle(large, (4 * ball(number / FPS)).astype(int).tolist(), 40, (180, 40, 40), -1, cv2.LINE_AA)
        frame = cv2.resize(large, SIZE, interpolation=cv2.INTER_AREA)
        matrix = cv2.getRotationMatrix2D((160, 120), np.degrees(angle), 1)
        matrix[:, 2] += shift
        matrices.append(matrix)
        frame = cv2.warpAffine(frame, matrix, SIZE, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        frames.append(np.clip(frame + random.normal(0, 2, frame.shape), 0, 255).astype(np.uint8))
    clip = Clip(torch.from_numpy(np.stack(frames)), torch.arange(COUNT, dtype=torch.float64) / FPS)
    middle = matrices[COUNT // 2]
    return clip, np.array([middle[:, :2] @ ball(number / FPS) + middle[:, 2] for number in range(COUNT)])


def test_a_hand_that_shakes_and_turns():
    times = np.arange(COUNT) / FPS
    shifts = 8 * np.stack([np.sin(4.4 * times), np.cos(6.9 * times)], 1)
    clip, positions = filmed(shifts, 0.02 * np.sin(3 * times))
    (track,) = find_tracks(clip)
    assert track.observed.mean() > 0.95
    errors = (track.positions - positions)[track.observed]
    errors -= np.median(errors, axis=0)
    assert np.sqrt((errors**2).sum(1).mean()) < 0.3
    assert any("background is registered" in note for note in track.notes)


def test_a_hand_that_shakes_before_a_textured_wall():
    """What shakes changes every pixel of a texture, as noise does; smoothed, it had too few corners."""
    random, times = np.random.default_rng(2), np.arange(COUNT) / FPS
    texture = cv2.GaussianBlur(random.normal(0, 1, (SIZE[1], SIZE[0])), (0, 0), 1.2)
    wall = 150 + 6 * (texture / texture.std())[..., None] * np.ones(3)
    shifts = 4 * np.stack([np.sin(4.4 * times), np.cos(6.9 * times)], 1) + random.normal(0, 1.2, (COUNT, 2))
    clip, positions = filmed(shifts, np.zeros(COUNT), wall.clip(0, 255).astype(np.uint8))
    (track,) = find_tracks(clip)
    errors = (track.positions - positions)[track.observed]
    errors -= np.median(errors, axis=0)
    assert np.sqrt((errors**2).sum(1).mean()) < 0.3
    assert not any("smoothed" in note for note in track.notes)


def test_a_hand_that_shakes_before_a_plain_wall():
    """Too few corners to show that the camera moves; it was taken for static, and the ball had all of the shake."""
    times = np.arange(COUNT) / FPS
    shifts = 5 * np.stack([np.sin(4.4 * times), np.cos(6.9 * times)], 1)
    clip, positions = filmed(shifts, np.zeros(COUNT), plain_wall())
    (track,) = find_tracks(clip)
    errors = (track.positions - positions)[track.observed]
    errors -= np.median(errors, axis=0)
    assert np.sqrt((errors**2).sum(1).mean()) < 0.3
    assert any("background is registered" in note for note in track.notes)


@pytest.mark.parametrize("seed", [5, 6])
def test_a_hand_that_moves_by_more_than_a_pixel_a_frame_is_not_lost(seed):
    """With these seeds of the noise, a dozen frames had shifts that were up to 2.3 px off."""
    times = np.arange(COUNT) / FPS
    shifts = 5 * np.stack([np.sin(4.4 * times), np.cos(6.9 * times)], 1)
    clip, _ = filmed(shifts, np.zeros(COUNT), plain_wall(), seed)
    estimates = camera_shifts(FrameSource(clip, None, None, None, max(SIZE)), PerceptionSettings())
    errors = np.abs(estimates - (shifts - shifts[0])).max(1)
    assert (errors < 0.5).sum() >= COUNT - 2


def test_a_plain_wall_does_not_move():
    clip, positions = filmed(np.zeros((COUNT, 2)), np.zeros(COUNT), plain_wall())
    (track,) = find_tracks(clip)
    assert np.abs(track.positions - positions)[track.observed].max() < 1
    assert not any("camera" in note for note in track.notes)


def test_a_camera_that_pans_is_refused():
    pan = np.linspace([0, 0], [120, 0], COUNT)
    with pytest.raises(VideoError, match="the camera moves"):
        find_tracks(filmed(pan, np.zeros(COUNT))[0])
