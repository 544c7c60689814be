import numpy as np
import pytest
import torch
from perception.table import RADIUS, clip

from physvision.core import InputError
from physvision.perception.frame_corruption import FrameCorruption, gaussian_blur
from physvision.perception.object_crops import ObjectPositions, crop_patches, locate_objects
from physvision.perception.segmentation import ColorFilters, centroids

COLORS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
FILTERS = ColorFilters.from_colors(COLORS)


def windows(count=12, **options):
    """Windows of three frames, (count, 3, 3, SIZE, SIZE), and true places (count, 3, balls, 2)."""
    frames, positions = clip(COLORS, frames=3 * count, **options)
    return frames.unflatten(0, (count, 3)), torch.from_numpy(positions).float().unflatten(0, (count, 3))


def test_clean_discs_are_found_exactly():
    """A mask's centroid is a disc's; 8-bit levels and faint edges that are left out cost some hundredths of a pixel."""
    frames, truth = windows()
    result = locate_objects(FILTERS.masks(frames), RADIUS)
    assert (result.centers - truth).norm(dim=-1).max() < 0.05
    assert result.confidence.min() > 0.95


def test_noise_far_away_moves_nothing():
    """Of the ball's 32 pixels each moves the centroid by noise times distance over area: 0.1 · 2 · √70 / 32 = 0.05."""
    frames, truth = windows(noise=0.1)
    masks = FILTERS.masks(frames)
    error = (locate_objects(masks, RADIUS).centers - truth).norm(dim=-1)
    assert error.max() < 5 * 0.05
    assert error.mean() < 0.1 * (centroids(masks) - truth).norm(dim=-1).mean()


def test_a_line_through_what_is_seen():
    """Position and displacement of uniform motion, whichever frame is hidden."""
    truth = torch.tensor([10.0, 20.0]) + torch.arange(3.0)[:, None] * torch.tensor([1.5, -0.5])
    centers = truth[None, :, None]
    for hidden in (None, 0, 1, 2):
        confidence = torch.ones(1, 3, 1)
        if hidden is not None:
            confidence[0, hidden] = 0.0
            centers = centers.clone()
            centers[0, hidden] = 77.0
        position, step = ObjectPositions(centers, confidence).motion()
        torch.testing.assert_close(position[0, 0], truth[2])
        torch.testing.assert_close(step[0, 0], truth[1] - truth[0])
        centers = truth[None, :, None]
    position, step = ObjectPositions(centers, torch.zeros(1, 3, 1)).motion()
    assert position.isnan().all()
    assert (step == 0).all()


def test_a_crop_is_a_piece():
    picture = torch.arange(20.0).reshape(1, 1, 1, 4, 5)
    inner = crop_patches(picture, torch.tensor([[[2, 1]]]), 3)
    torch.testing.assert_close(inner[0, 0, 0], picture[0, 0, 0, 0:3, 1:4])
    corner = crop_patches(picture, torch.tensor([[[0, 0]]]), 4, fill=-1.0)
    assert (corner[0, 0, 0, :2] == -1).all()
    torch.testing.assert_close(corner[0, 0, 0, 2:, 2:], picture[0, 0, 0, :2, :2])


def test_blur_is_gausss():
    """A point's picture has the variance that was asked for, in both directions, and loses nothing."""
    point = torch.zeros(1, 1, 41, 41, dtype=torch.float64)
    point[..., 20, 20] = 1.0
    spread = gaussian_blur(point, 1.5)[0, 0]
    at = torch.arange(41.0, dtype=torch.float64) - 20
    torch.testing.assert_close(spread.sum(), torch.tensor(1.0, dtype=torch.float64))
    for axis in (0, 1):
        # Cut at three deviations the variance is 2.7 % less than Gauss's.
        assert (spread.sum(axis) * at.square()).sum() == pytest.approx(1.5**2, rel=0.04)


def test_each_disturbance_does_what_it_says():
    frames, truth = windows()
    masks = FILTERS.masks(frames)
    coverage = masks.sum(2, keepdim=True)

    def spoilt(**options):
        torch.manual_seed(0)
        return FrameCorruption(**options, fixed_severity=True)(frames, coverage, truth[:, -1])

    gray = torch.full_like(frames, 0.5)
    torch.manual_seed(0)
    noisy = FrameCorruption(noise=0.05, fixed_severity=True)(gray, torch.zeros_like(coverage), truth[:, -1])
    assert float((noisy - gray).std()) == pytest.approx(0.05, rel=0.02)
    textured = spoilt(texture=0.3)
    inside = (coverage > 0.999).expand_as(frames)
    torch.testing.assert_close(textured[inside], frames[inside])
    assert 0.1 < float(textured[(coverage == 0).expand_as(frames)].mean()) < 0.2
    hidden = FILTERS.masks(spoilt(occlusion=1.5)).sum((-1, -2))
    fractions = (hidden / masks.sum((-1, -2))).amin((1, 2))
    assert fractions.median() < 0.8
    assert torch.equal(FrameCorruption()(frames, coverage, truth[:, -1]), frames)
    with pytest.raises(InputError, match="noise"):
        FrameCorruption(noise=-1.0)


def test_samples_without_a_share_stay_clean():
    frames, truth = windows(count=40)
    coverage = FILTERS.masks(frames).sum(2, keepdim=True)
    torch.manual_seed(0)
    spoilt = FrameCorruption(noise=0.1, blur=1.0, texture=0.3, occlusion=1.0, probability=0.2)(
        frames, coverage, truth[:, -1]
    )
    same = (spoilt == frames).flatten(1).all(1)
    # Each of four has a chance of 0.8 to leave a sample alone: 16 of 40 expected, with a deviation of 3.
    assert 4 < int(same.sum()) < 29
    assert np.isfinite(spoilt.numpy()).all()
