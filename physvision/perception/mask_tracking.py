"""Objects from colour masks, kept apart by identity over time.

Each object has a prediction, its last place moved on by its last displacement. Where several share a colour, a pixel
goes to the object whose prediction is nearest, and the centres are moved to their pixels' means until that no longer
changes. So a touch of two balls of one colour does not swap them: it would take a step as large as half the way between
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError
from physvision.perception.colors import k_means

_ROUNDS = 10
_LEAST_AREA = 0.05  # of an object's usual area: less is nothing


@dataclass(frozen=True)
class Objects:
    """What was seen of each object at each time.

    Attributes:
        masks: share of each pixel that it covers.
        positions: x and y of its centroid, pixels from the picture's corner; a prediction where it is hidden.
        confidence: visible share of its usual area, 0 where it is hidden, at most 1.
    """

    masks: Float[Tensor, "times objects height width"]
    positions: Float[Tensor, "times objects 2"]
    confidence: Float[Tensor, "times objects"]


def track_masks(masks: Float[Tensor, "times colors height width"], counts: tuple[int, ...] | None = None) -> Objects:
    """Split colour masks into objects and follow each, in the order of colours.

    Args:
        masks: of each colour, as `ColorFilters.masks` gives them.
        counts: how many objects have each colour; one each by default.
    """
    counts = counts or (1,) * masks.shape[1]
    if len(counts) != masks.shape[1]:
        raise InputError(f"counts: expected one for each of {masks.shape[1]} colours, got {counts}")
    followed = [_follow_color(masks[:, color].cpu().numpy(), count) for color, count in enumerate(counts)]
    owned, positions, areas = (np.concatenate(pieces, axis=1) for pieces in zip(*followed, strict=True))
    seen = areas > 0
    usual = np.array([np.median(area[ok]) if ok.any() else 1.0 for area, ok in zip(areas.T, seen.T, strict=True)])
    confidence = np.clip(areas / np.maximum(usual, 1e-9), 0, 1)
    like = masks.new_zeros(())
    return Objects(*(torch.from_numpy(value).to(like) for value in (owned, positions, confidence)))


def centroids(masks: Float[Tensor, "*batch height width"]) -> Float[Tensor, "*batch 2"]:
    """Mean place of each mask's pixels, x and y from the picture's corner; its middle where the mask is empty."""
    height, width = masks.shape[-2:]
    x = torch.arange(width, dtype=masks.dtype, device=masks.device) + 0.5
    y = torch.arange(height, dtype=masks.dtype, device=masks.device) + 0.5
    area = masks.sum((-1, -2))
    sums = torch.stack([(masks.sum(-2) * x).sum(-1), (masks.sum(-1) * y).sum(-1)], -1)
    middle = masks.new_tensor([width / 2, height / 2])
    return torch.where(area[..., None] > 1e-3, sums / area[..., None].clamp_min(1e-3), middle)


def _follow_color(masks: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masks, places and areas of the objects of one colour: (times, objects, …)."""
    times, height, width = masks.shape
    owned = np.zeros((times, count, height, width), masks.dtype)
    places = np.empty((times, count, 2))
    areas = np.zeros((times, count))
    place = np.tile([width / 2, height / 2], (count, 1))
    motion = np.zeros((count, 2))
    begun = False
    for time in range(times):
        rows, columns = np.nonzero(masks[time])
        points, weights = np.stack([columns, rows], 1) + 0.5, masks[time, rows, columns]
        if not begun and len(points) >= count:
            place, begun = _first_places(points, count), True
        labels, centers, area = _assign(points, weights, place + motion)
        owned[time, labels, rows, columns] = weights
        hidden = area <= _LEAST_AREA * (areas[:time].max(axis=0, initial=0.0))
        area[hidden] = 0.0
        owned[time, hidden] = 0.0
        centers[hidden] = np.clip((place + motion)[hidden], 0, [width, height])
        motion = centers - place if begun and time > 0 else motion
        places[time], areas[time], place = centers, area, centers
    return owned, places, areas


def _first_places(points: np.ndarray, count: int) -> np.ndarray:
    _, centers = k_means(points, count)
    return centers[np.lexsort(centers.T[::-1])]


def _assign(points: np.ndarray, weights: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whose each point is, the means of each one's points, and their weights' sums."""
    centers = centers.copy()
    count = len(centers)
    labels = np.zeros(len(points), int)
    area = np.zeros(count)
    for _ in range(_ROUNDS if count > 1 else 1):
        labels = np.linalg.norm(points[:, None] - centers[None], axis=-1).argmin(1)
        area = np.bincount(labels, weights, count).astype(float)
        sums = np.stack([np.bincount(labels, weights * points[:, axis], count) for axis in (0, 1)], 1)
        means = sums / np.maximum(area, 1e-9)[:, None]
        moved = np.where(area[:, None] > 0, means, centers)
        settled = np.allclose(moved, centers, atol=1e-4)
        centers = moved
        if settled:
            break
    return labels, centers, area
