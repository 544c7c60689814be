"""Color segmentation of frames, and tracking of objects in the color masks.

A pixel at an edge mixes an object's color c with the background's b: p = b + a (c − b). The coverage a follows by
projection, a = (p − b)·(c − b) / |c − b|², and the color is the one with the smallest residual. Masks are
therefore as smooth as the anti-aliased frames, and their centroids have subpixel accuracy.

Tracking works for several objects that share a color, too. Each object has a predicted position: its last position plus
its last displacement. A pixel is assigned to the object with the nearest prediction, and the centers move to the
centroids of their pixels until convergence (k-means). Two balls of one color therefore do not swap when they touch,
unless a prediction is off by half their distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.perception.settings import DEFAULT_SETTINGS

_SETTINGS = DEFAULT_SETTINGS.segmentation


@dataclass(frozen=True)
class ColorFilters:
    """Colors of objects and of their background.

    Attributes:
        colors: Red, green and blue components of each color, from 0 to 1.
        background: Background from 0 to 1: one color as (3, 1, 1), or an image.
        counts: Number of objects of each color.
        contrast: Color distance below which a pixel counts as background, as a fraction of full scale.
    """

    colors: Float[Tensor, "colors 3"]
    background: Float[Tensor, "3 height width"]
    counts: tuple[int, ...]
    contrast: float = _SETTINGS.min_contrast

    def __post_init__(self) -> None:
        if self.colors.dim() != 2 or self.colors.shape[1] != 3 or len(self.counts) != len(self.colors):
            shape = tuple(self.colors.shape)
            raise InputError(f"colors: expected (colors, 3) and a count for each, got {shape} and {self.counts}")
        for index, count in enumerate(self.counts):
            check_count(f"counts[{index}]", count)
        median = self.background.reshape(3, -1).median(dim=1).values
        for index, color in enumerate(self.colors):
            if (color - median).norm() <= self.contrast:
                raise InputError(
                    f"colors[{index}]: {color.tolist()} is too close to the background {median.tolist()}; expected a "
                    f"distance above {self.contrast:g}"
                )

    @classmethod
    def from_colors(
        cls,
        colors: list[tuple[float, float, float]],
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
        counts: tuple[int, ...] | None = None,
    ) -> ColorFilters:
        """Make filters for known colors on a uniform background."""
        return cls(torch.tensor(colors), torch.tensor(background).reshape(3, 1, 1), counts or (1,) * len(colors))

    def masks(self, frames: Float[Tensor, "*batch 3 height width"]) -> Float[Tensor, "*batch colors height width"]:
        """Return the fraction of each pixel that each color covers; a pixel belongs to at most one color."""
        colors, background = self.colors.to(frames), self.background.to(frames)
        difference = frames - background
        squared = difference.square().sum(-3)
        coverages, costs = [], []
        for color in colors:
            color_offset = color[:, None, None] - background
            squared_length = color_offset.square().sum(-3)
            projection = (difference * color_offset).sum(-3)
            coverage = (projection / squared_length).clamp(0, 1)
            # |p − b − a (c − b)|² is expanded, to avoid a three-channel image for each color.
            residual = (squared - coverage * (2 * projection - coverage * squared_length)).clamp_min(0).sqrt()
            coverages.append(coverage)
            # Of colors with equal residuals, such as gray and white on black, the one with the larger coverage wins.
            costs.append(residual + self.contrast * (1 - coverage))
        min_cost, label = costs[0], torch.zeros_like(costs[0], dtype=torch.int8)
        for index, cost in enumerate(costs[1:], 1):
            label = torch.where(cost < min_cost, index, label)
            min_cost = torch.minimum(cost, min_cost)
        label = torch.where(squared > self.contrast**2, label, -1)
        return torch.stack([coverage * (label == index) for index, coverage in enumerate(coverages)], -3)


def find_colors(frames: Float[Tensor, "times 3 height width"], objects: int) -> ColorFilters:
    """Find the colors of a clip's objects, by clustering the pixels that differ from the static background.

    Args:
        frames: Frames from 0 to 1 of a static camera.
        objects: Number of objects. If some share a color, fewer colors are returned.
    """
    from kornia.color import rgb_to_lab  # imported here, since its import takes seconds

    check_count("objects", objects)
    samples = frames[:: max(1, len(frames) // _SETTINGS.max_frames)].float()
    background = _estimate_background(samples)
    distance = (samples - background).norm(dim=1)
    contrast = max(_SETTINGS.min_contrast, 5 * float(distance.median()))
    # Edge pixels mix colors, so they differ less from the background than their neighbors inside the object.
    interior = distance > 0.9 * functional.max_pool2d(distance, 3, stride=1, padding=1)
    pixels = samples.movedim(1, -1)[(distance > contrast) & interior]
    if len(pixels) < objects:
        raise InputError(
            f"frames: nothing moves that differs from the background by more than {contrast:.2f} of full scale; "
            "give the colors"
        )
    pixels = pixels[:: max(1, len(pixels) // _SETTINGS.max_pixels)]
    lab = rgb_to_lab(pixels.T[:, :, None])[..., 0].T
    labels, centers = _cluster_colors(lab.numpy(), objects)
    colors = torch.stack([pixels[labels == index].median(dim=0).values for index in range(len(centers))])
    sizes = np.bincount(labels, minlength=len(centers)).astype(float)
    return ColorFilters(colors, background, _apportion(sizes, objects), contrast)


def _estimate_background(frames: Tensor) -> Tensor:
    """Estimate the background as the median over time, or as one color if most of the median has it.

    With one color, slow objects do not become a part of the background.
    """
    median = frames.median(dim=0).values
    color = median.flatten(1).median(dim=1).values[:, None, None]
    is_uniform = (median - color).norm(dim=0) < _SETTINGS.min_contrast
    return color if float(is_uniform.float().mean()) > _SETTINGS.min_plain_fraction else median


def _cluster_colors(lab: np.ndarray, objects: int) -> tuple[np.ndarray, np.ndarray]:
    """Cluster colors into one cluster per object, or fewer if centers would be too close; the brightest one first."""
    labels, centers = k_means(lab, min(objects, len(lab)))
    while _min_distance(centers) < _SETTINGS.min_lab_distance:
        labels, centers = k_means(lab, len(centers) - 1)
    # The clusters are sorted, so that their order does not depend on the initial centers.
    order = np.lexsort(centers.T[::-1])[::-1]
    return np.argsort(order)[labels], centers[order]


def _min_distance(centers: np.ndarray) -> float:
    """Return the smallest distance between two centers; infinite for a single one."""
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=-1)
    return float(distances[~np.eye(len(centers), dtype=bool)].min(initial=np.inf))


def _apportion(sizes: np.ndarray, objects: int) -> tuple[int, ...]:
    """Distribute the objects over the clusters in proportion to the cluster sizes, at least one to each."""
    counts = np.ones(len(sizes), int)
    for _ in range(objects - len(sizes)):
        counts[np.argmax(sizes / counts)] += 1
    return tuple(counts.tolist())


def k_means(
    points: np.ndarray, count: int, attempts: int = 8, iterations: int = 50, tolerance: float = 1e-2
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster points by OpenCV's k-means with a fixed seed.

    Args:
        points: Points, (points, dimensions).
        count: Number of clusters.
        attempts: Number of initializations, of which the best is returned.
        iterations: Largest number of iterations.
        tolerance: Movement of the centers below which the iteration ends.

    Returns:
        Cluster of each point, (points,), and centers, (count, dimensions).
    """
    cv2.setRNGSeed(0)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, iterations, tolerance)
    points, initial_labels = points.astype(np.float32), np.empty(0, np.int32)
    _, labels, centers = cv2.kmeans(points, count, initial_labels, criteria, attempts, cv2.KMEANS_PP_CENTERS)
    return labels.ravel(), centers.astype(np.float64)


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
    median_areas = [np.median(area[mask]) if mask.any() else 1.0 for area, mask in zip(areas.T, visible.T, strict=True)]
    confidence = np.clip(areas / np.maximum(median_areas, 1e-9), 0, 1)
    reference = masks.new_zeros(())
    return MaskTracks(*(torch.from_numpy(array).to(reference) for array in (object_masks, positions, confidence)))


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
