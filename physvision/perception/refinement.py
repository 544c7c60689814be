"""Subpixel localization of a target whose approximate position and color are known.

A pixel at the edge of an object of color c in front of the background b differs from b by a fraction of |c − b|, which
is the fraction of the pixel that the object covers. So pixels are weighted by their coverage, interior pixels count
fully whatever their color, and neither blur nor noise biases the centroid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from jaxtyping import Float

from physvision.perception.settings import DEFAULT_SETTINGS, PerceptionSettings, RefinementSettings
from physvision.perception.tracklets import Tracklet, thick_parts

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # Rec. 601


@dataclass(frozen=True)
class Target:
    """Object to be localized, as its tracklet shows it.

    Attributes:
        frames: Frame numbers of the tracklet.
        positions: Positions in these frames, px.
        color: Red, green, blue, levels.
        size: Diameter of the circle of equal area, px.
        settings: Extrapolation of the tracklet.
    """

    frames: Float[np.ndarray, " detections"]
    positions: Float[np.ndarray, "detections 2"]
    color: Float[np.ndarray, "3"]
    size: float
    settings: RefinementSettings = DEFAULT_SETTINGS.refinement

    @classmethod
    def from_tracklet(cls, tracklet: Tracklet, settings: RefinementSettings = DEFAULT_SETTINGS.refinement) -> Target:
        """Make the target that a tracklet shows."""
        return cls(np.array(tracklet.frames, float), tracklet.positions, tracklet.color, tracklet.size, settings)

    def predict_position(self, frame: int) -> Float[np.ndarray, "2"]:
        """Predict the position in a frame, px: interpolated linearly, extrapolated by a parabola over a few frames."""
        count = self.settings.path_samples
        outside = frame < self.frames[0] or frame > self.frames[-1]
        if not outside or not self.is_gap(frame) or len(self.frames) < count:
            return np.array([np.interp(frame, self.frames, self.positions[:, axis]) for axis in (0, 1)])
        end = slice(count) if frame < self.frames[0] else slice(-count, None)
        powers = np.vander(self.frames[end] - frame, 3, increasing=True)
        return np.linalg.lstsq(powers, self.positions[end], rcond=None)[0][0]

    def spans(self, frame: int) -> bool:
        """Return True if a frame lies between the first and the last one of the tracklet."""
        return bool(self.frames[0] <= frame <= self.frames[-1])

    def is_gap(self, frame: int) -> bool:
        """Return True if a frame has no blob of the tracklet, but a frame close to it does."""
        return bool(0 < np.abs(self.frames - frame).min() <= self.settings.max_extrapolation)

    def search_radius(self, frame: int) -> float:
        """Radius around the predicted position in which the object is searched, px."""
        after = int(np.searchsorted(self.frames, frame))
        if after == 0 or after == len(self.frames) or frame in (self.frames[after], self.frames[after - 1]):
            return 0.75 * self.size + 3
        gap = float(np.linalg.norm(self.positions[after] - self.positions[after - 1]))
        return 0.75 * self.size + 3 + 0.5 * gap


@dataclass(frozen=True)
class Detection:
    """Localization of a target in one frame.

    Attributes:
        position: Coordinates x and y of the centroid, px.
        area: Covered area, px.
        angle: Direction of the long axis, rad.
        axis_ratio: Ratio of the long to the short axis.
        sigma: Standard deviation of the position due to image noise, px.
        weak: If true, only a trace is visible at the predicted position.
    """

    position: Float[np.ndarray, "2"]
    area: float
    angle: float
    axis_ratio: float
    sigma: float
    weak: bool = False


class _Patch(NamedTuple):
    """Part of a frame around a target, with the centers of its pixels."""

    image: np.ndarray
    background: np.ndarray
    noise: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    inner_sides: tuple[bool, bool, bool, bool]  # left, top, right, bottom: not on the image's border


@dataclass(frozen=True)
class Localizer:
    """Localizes targets in aligned frames of one scene.

    Attributes:
        background: Background image, levels.
        threshold: Change above which a pixel is foreground, levels.
        settings: Tuning numbers of perception.
    """

    background: Float[np.ndarray, "height width 3"]
    threshold: Float[np.ndarray, "height width"]
    settings: PerceptionSettings = DEFAULT_SETTINGS

    def detect(self, frame: np.ndarray, number: int, target: Target, rivals: Sequence[Target]) -> Detection | None:
        """Localize a target in a frame; None where it is not visible, or not completely.

        Args:
            frame: Aligned frame, levels.
            number: Frame number.
            target: Target to localize.
            rivals: Targets that pixels may belong to instead.
        """
        position, radius = target.predict_position(number), target.search_radius(number)
        patch = self._cut_patch(frame, position, target.size * 1.2 + radius + self.settings.refinement.margin + 2)
        if patch is None:
            return None
        change = _color_distance(patch.image, patch.background)
        contrast = np.maximum(_color_distance(target.color, patch.background), 6 * patch.noise)
        shadow = _shadow_mask(patch.image, patch.background, target.color)
        coverage = cv2.GaussianBlur(np.where(shadow, 0.0, change / contrast), (0, 0), 0.6)
        mask = (coverage > np.maximum(0.45, 3 * patch.noise / contrast)).astype(np.uint8)
        for rival in rivals:
            mask &= _is_closer(patch, position, target.size, rival.predict_position(number), rival.size)
        part = self._select_part(mask, patch, position, radius, target.size)
        if part is None:
            if not target.is_gap(number):
                return None
            distance = np.hypot(patch.columns - position[0], patch.rows - position[1])
            return self._detect_trace(np.where(distance < target.size, change / patch.noise, 0.0), patch, target.size)
        # Attached structures, such as a string, do not count as the object's edge.
        attached = mask & (1 - part)
        coverage = np.where(attached > 0, 0.0, self._edge_coverage(patch, part, coverage, shadow))
        sides = (part[:, 0], part[0], part[:, -1], part[-1])
        touches_border = any(not inner and side.any() for inner, side in zip(patch.inner_sides, sides, strict=True))
        return None if touches_border else self._measure(part, coverage, patch, patch.noise / contrast)

    def _cut_patch(self, frame: np.ndarray, center: Float[np.ndarray, "2"], half_side: float) -> _Patch | None:
        height, width = frame.shape[:2]
        left, top = np.floor(center - half_side).astype(int).clip(0)
        right, bottom = np.ceil(center + half_side).astype(int).clip(0)
        right, bottom = min(right, width), min(bottom, height)
        patch = slice(top, bottom), slice(left, right)
        if frame[patch].size == 0:
            return None
        columns, rows = np.meshgrid(np.arange(left, right) + 0.5, np.arange(top, bottom) + 0.5)
        noise = self.threshold[patch] / self.settings.background.noise_factor
        inner_sides = (left > 0, top > 0, right < width, bottom < height)
        return _Patch(frame[patch], self.background[patch], noise, columns, rows, inner_sides)

    def _detect_trace(self, trace: np.ndarray, patch: _Patch, size: float) -> Detection | None:
        """Localize a target that is barely visible, next to what hides it; None if there is no trace.

        Args:
            trace: Change of each pixel in standard deviations of the noise, zero far from the predicted position.
            patch: Part of the frame around the target.
            size: Diameter of the target, px.
        """
        trace = cv2.GaussianBlur(trace, (0, 0), 0.8)
        weights = np.where(trace > 0.5 * trace.max(), trace, 0.0)
        if trace.max() < self.settings.refinement.min_trace * np.sqrt(3):  # the norm over three channels
            return None
        total = float(weights.sum())
        position = np.array([float((weights * patch.columns).sum()), float((weights * patch.rows).sum())]) / total
        return Detection(position, 0.0, 0.0, 1.0, 0.35 * size, weak=True)

    def _select_part(
        self, mask: np.ndarray, patch: _Patch, position: np.ndarray, radius: float, size: float
    ) -> np.ndarray | None:
        """Select the part of the mask within `radius` of the predicted position that has about the target's size."""
        # An object of several colors has rings and slits where one of them resembles the background.
        side = 2 * int(self.settings.refinement.max_slit * size / 2) + 1
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
        count, labels = cv2.connectedComponents(cv2.morphologyEx(mask, cv2.MORPH_CLOSE, disc), connectivity=8)
        selected, min_cost = None, np.inf
        for label in range(1, count):
            component = _fill_holes((labels == label).astype(np.uint8))
            for part in thick_parts(component, self.settings.association.core_depth):
                part_size = 2 * np.sqrt(float(part.sum()) / np.pi)
                offset = patch.columns[part > 0].mean() - position[0], patch.rows[part > 0].mean() - position[1]
                distance, size_change = np.hypot(*offset), abs(np.log(part_size / size))
                cost = distance / radius + 2 * size_change
                if distance < radius and size_change < 0.7 and cost < min_cost:
                    selected, min_cost = part, cost
        return selected

    def _measure(self, part: np.ndarray, coverage: np.ndarray, patch: _Patch, noise: np.ndarray) -> Detection:
        """Measure centroid, area and axes of a part by the coverage of its pixels, with its standard deviation."""
        filled = _fill_holes(part)
        inner = cv2.erode(filled, np.ones((3, 3), np.uint8))
        edge = (self._dilate(filled) > 0) & (inner == 0)
        weights = np.where(inner > 0, 1.0, np.where(edge, np.clip(coverage, 0, 1), 0.0))
        weights[weights < 0.08] = 0.0
        weights = self._remove_stubs(weights, filled)
        area = float(weights.sum())
        x, y = float((weights * patch.columns).sum() / area), float((weights * patch.rows).sum() / area)
        dx, dy = patch.columns - x, patch.rows - y
        xx, yy, xy = ((weights * product).sum() / area for product in (dx * dx, dy * dy, dx * dy))
        spread = np.hypot(xx - yy, 2 * xy)
        long, short = (xx + yy + spread) / 2, max((xx + yy - spread) / 2, 1e-3)
        # Only weights that follow the image are noisy; blur and codec correlate neighbors.
        sigma = float(np.sqrt(((edge * noise * dx) ** 2).sum() + ((edge * noise * dy) ** 2).sum()) / area)
        angle = float(np.arctan2(2 * xy, xx - yy) / 2)
        return Detection(np.array([x, y]), area, angle, float(np.sqrt(long / short)), sigma)

    def _dilate(self, mask: np.ndarray) -> np.ndarray:
        return cv2.dilate(mask, np.ones((2 * self.settings.refinement.margin + 1,) * 2, np.uint8))

    def _remove_stubs(self, weights: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """Remove the beginnings of strings, by a morphological opening with a disc of half the object's radius."""
        radius = self.settings.association.core_depth * float(_distance_to_edge(filled).max())
        blurred = cv2.GaussianBlur(weights.astype(np.float32), (0, 0), 0.7)
        covered = (blurred > self.settings.refinement.stub_weight).astype(np.uint8)
        eroded = _distance_to_edge(covered) > radius
        if not eroded.any():
            return weights
        distance = cv2.distanceTransform((~eroded).astype(np.uint8), cv2.DIST_L2, 5)
        return np.where((covered > 0) & (distance > radius + 1), 0.0, weights)

    def _edge_coverage(self, patch: _Patch, part: np.ndarray, coverage: np.ndarray, shadow: np.ndarray) -> np.ndarray:
        """Refine the coverage of edge pixels by the brightness just inside the object.

        Codecs keep brightness for every pixel but color for every fourth, so brightness alone is used where its
        contrast suffices. An object of several colors has that of its nearest part; where its shadow lies next to it,
        the background at the edge is darker, too.
        """
        filled = _fill_holes(part)
        inner = cv2.erode(filled, np.ones((3, 3), np.uint8)).astype(np.float32)
        if inner.sum() < 5:
            return coverage
        luma = np.asarray(patch.image.astype(np.float32) @ _LUMA, np.float32)
        background = np.asarray(patch.background @ _LUMA, np.float32)
        ratio = np.where(shadow, np.clip((luma + 3) / (background + 3), 0, 1), 1.0).astype(np.float32)
        outside = 1 - self._dilate(filled).astype(np.float32)
        shading, weight = _masked_blur(ratio, outside)
        background = background * np.where(weight > 1e-3, shading, 1.0)
        object_luma, weight = _masked_blur(luma, inner)
        contrast = object_luma - background
        reliable = (np.abs(contrast) > self.settings.refinement.min_luma_contrast) & (weight > 1e-3)
        return np.where(reliable, (luma - background) / np.where(reliable, contrast, 1.0), coverage)


def _color_distance(color: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return the distance of colors, levels."""
    # By channels: NumPy reduces a short last axis ten times more slowly.
    red, green, blue = np.moveaxis(color - background, -1, 0)
    return np.sqrt(red * red + green * green + blue * blue)


def _shadow_mask(image: np.ndarray, background: np.ndarray, color: np.ndarray) -> np.ndarray:
    """Mask the pixels whose channels are darkened alike; none if the object itself has such a color."""
    object_ratio = (color + 3) / (background.reshape(-1, 3).mean(0) + 3)
    if np.ptp(object_ratio) < 0.2:
        return np.zeros(image.shape[:2], bool)
    red, green, blue = np.moveaxis((image + 3.0) / (background + 3.0), -1, 0)
    spread = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    mean = (red + green + blue) / 3
    return (spread < 0.1) & (mean > 0.3) & (mean < 0.97)


def _is_closer(patch: _Patch, position: np.ndarray, size: float, rival: np.ndarray, rival_size: float) -> np.ndarray:
    """Mask the pixels that are closer to the target's circle than to that of a rival."""
    distance = np.hypot(patch.columns - position[0], patch.rows - position[1]) - size / 2
    rival_distance = np.hypot(patch.columns - rival[0], patch.rows - rival[1]) - rival_size / 2
    return (distance <= rival_distance).astype(np.uint8)


def _masked_blur(values: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blur the values within a mask, normalized by the blurred mask, which is returned, too."""
    weight = cv2.GaussianBlur(mask, (0, 0), 2.0)
    return cv2.GaussianBlur(mask * values, (0, 0), 2.0) / np.maximum(weight, 1e-6), weight


def _distance_to_edge(mask: np.ndarray) -> np.ndarray:
    """Distance of each pixel of a mask from its edge, px; the border of the patch is an edge."""
    padded = cv2.copyMakeBorder(mask, 1, 1, 1, 1, cv2.BORDER_CONSTANT)
    return cv2.distanceTransform(padded, cv2.DIST_L2, 5)[1:-1, 1:-1]


def _fill_holes(part: np.ndarray) -> np.ndarray:
    outlines, _ = cv2.findContours(part, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return cv2.drawContours(np.zeros_like(part), outlines, -1, 1, -1)


def unwrap_orientation(
    angles: Float[np.ndarray, " times"], axis_ratios: Float[np.ndarray, " times"], min_axis_ratio: float
) -> np.ndarray | None:
    """Remove jumps of π from the angles of a long axis, rad; None for a nearly round object."""
    if np.median(axis_ratios) < min_axis_ratio:
        return None
    return np.unwrap(2 * angles) / 2
