"""Tracking of objects in color masks, also of several objects that share a color.

Each object has a predicted position: its last position plus its last displacement. A pixel is assigned to the object
with the nearest prediction, and the centers move to the centroids of their pixels until convergence (k-means). Two
balls of one color therefore do not swap when they touch, unless one moves by half their distance in a frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError
from physvision.perception.colors import k_means
from physvision.perception.settings import DEFAULT_SETTINGS

_SETTINGS = DEFAULT_SETTINGS.segmentation


@dataclass(frozen=True)
class MaskTracks:
    """Masks and positions of objects over time.

    Attributes:
        masks: Fraction of each pixel that each object covers.
        positions: Centroids x and y, px from the upper left corner; predictions where an object is hidden.
        confidence: Visible area relative to the median, from 0 (hidden) to 1.
    """

    masks: Float[Tensor, "times objects height width"]
    positions: Float[Tensor, "times objects 2"]
    confidence: Float[Tensor, "times objects"]


def track_masks(masks: Float[Tensor, "times colors height width"], counts: tuple[int, ...] | None = None) -> MaskTracks:
    """Split color masks into objects and track them, in the order of the colors.

    Args:
        masks: Mask of each color over time; see `ColorFilters.masks`.
        counts: Number of objects of each color; one each by default.
    """
    counts = counts or (1,) * masks.shape[1]
    if len(counts) != masks.shape[1]:
        raise InputError(f"counts: expected one for each of {masks.shape[1]} colors, got {counts}")
    tracks = [_track_color(masks[:, color].cpu().numpy(), count) for color, count in enumerate(counts)]
    object_masks, positions, areas = (np.concatenate(arrays, axis=1) for arrays in zip(*tracks, strict=True))
    visible = areas > 0
    typical = [np.median(area[mask]) if mask.any() else 1.0 for area, mask in zip(areas.T, visible.T, strict=True)]
    confidence = np.clip(areas / np.maximum(typical, 1e-9), 0, 1)
    like = masks.new_zeros(())
    return MaskTracks(*(torch.from_numpy(array).to(like) for array in (object_masks, positions, confidence)))


def centroids(masks: Float[Tensor, "*batch height width"]) -> Float[Tensor, "*batch 2"]:
    """Return the centroid of each mask, px from the upper left corner; the image's center where a mask is empty."""
    height, width = masks.shape[-2:]
    x = torch.arange(width, dtype=masks.dtype, device=masks.device) + 0.5
    y = torch.arange(height, dtype=masks.dtype, device=masks.device) + 0.5
    area = masks.sum((-1, -2))
    sums = torch.stack([(masks.sum(-2) * x).sum(-1), (masks.sum(-1) * y).sum(-1)], -1)
    center = masks.new_tensor([width / 2, height / 2])
    return torch.where(area[..., None] > 1e-3, sums / area[..., None].clamp_min(1e-3), center)


def _track_color(masks: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Track the objects of one color; return masks, positions and areas, (times, objects, …)."""
    times, height, width = masks.shape
    object_masks = np.zeros((times, count, height, width), masks.dtype)
    positions = np.empty((times, count, 2))
    areas = np.zeros((times, count))
    position = np.tile([width / 2, height / 2], (count, 1))
    step = np.zeros((count, 2))
    is_initialized = False
    for time in range(times):
        rows, columns = np.nonzero(masks[time])
        points, weights = np.stack([columns, rows], 1) + 0.5, masks[time, rows, columns]
        if not is_initialized and len(points) >= count:
            position, is_initialized = _initial_positions(points, count), True
        labels, centers, area = _assign(points, weights, position + step)
        object_masks[time, labels, rows, columns] = weights
        hidden = area <= _SETTINGS.min_area * (areas[:time].max(axis=0, initial=0.0))
        area[hidden] = 0.0
        object_masks[time, hidden] = 0.0
        centers[hidden] = np.clip((position + step)[hidden], 0, [width, height])
        step = centers - position if is_initialized and time > 0 else step
        positions[time], areas[time], position = centers, area, centers
    return object_masks, positions, areas


def _initial_positions(points: np.ndarray, count: int) -> np.ndarray:
    _, centers = k_means(points, count)
    return centers[np.lexsort(centers.T[::-1])]


def _assign(points: np.ndarray, weights: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Assign points to the nearest center; return labels, weighted means and total weights."""
    centers = centers.copy()
    count = len(centers)
    labels, area = np.zeros(len(points), int), np.zeros(count)
    for _ in range(_SETTINGS.max_iterations if count > 1 else 1):
        labels = np.linalg.norm(points[:, None] - centers[None], axis=-1).argmin(1)
        area = np.bincount(labels, weights, count).astype(float)
        sums = np.stack([np.bincount(labels, weights * points[:, axis], count) for axis in (0, 1)], 1)
        means = sums / np.maximum(area, 1e-9)[:, None]
        means = np.where(area[:, None] > 0, means, centers)
        has_converged = np.allclose(means, centers, atol=1e-4)
        centers = means
        if has_converged:
            break
    return labels, centers, area
