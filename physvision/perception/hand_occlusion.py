"""Tracking of an object back into the hand that releases it, by its colors.

While a hand holds the object, both differ from the background together. The object's colors are learned where it is
clear of the hand, and it is tracked from there backwards. A pixel of color c between the object's color a and another
color b, the hand's or the background's, is covered by |c − b| / (|c − a| + |c − b|) of the object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from jaxtyping import Float

from physvision.perception.refinement import Detection
from physvision.perception.settings import DEFAULT_SETTINGS, HandSettings

_Detections = Sequence[Detection | None]
_Frames = Mapping[int, np.ndarray]


class ObjectModel(NamedTuple):
    """Appearance of an object: its area, px, and one or two colors, levels."""

    area: float
    colors: Float[np.ndarray, "colors 3"]


@dataclass(frozen=True)
class HandTracker:
    """Tracks objects back into the hand, in aligned frames of one scene.

    Attributes:
        background: Background image, levels.
        threshold: Change above which a pixel is foreground, levels.
        settings: Tuning numbers of tracking back.
    """

    background: Float[np.ndarray, "height width 3"]
    threshold: Float[np.ndarray, "height width"]
    settings: HandSettings = DEFAULT_SETTINGS.hand

    def first_clear_frame(self, detections: _Detections) -> int | None:
        """Find the first frame from which on nothing else touches the object; None if there is none."""
        count = self.settings.clear_frames
        areas = np.array([np.nan if item is None or item.weak else item.area for item in detections])
        if np.isfinite(areas).sum() < 2 * count:
            return None
        steady = np.abs(np.log(areas / np.nanmedian(areas))) < self.settings.max_clear_change
        return next((frame for frame in range(len(areas) - count) if steady[frame : frame + count].all()), None)

    def required_frames(self, detections: _Detections) -> range:
        """Frames that tracking back needs: those in the hand, those that show the object's colors, a few before."""
        strong_detections, first_clear = _strong_detections(detections), self.first_clear_frame(detections)
        if not strong_detections:
            return range(0)
        first = max(0, min(strong_detections) - self.settings.static_frames[1])
        if not first_clear:
            return range(first, min(strong_detections))
        first = min(first, max(0, first_clear - self.settings.max_frames))
        return range(first, first_clear + self.settings.clear_frames)

    def track_back(self, frames: _Frames, detections: list[Detection | None]) -> list[Detection | None]:
        """Add detections of the object before it is clear of the hand.

        Args:
            frames: Aligned frames by number, as `required_frames` lists them.
            detections: Detections of the object in all frames.
        """
        settings, first_clear = self.settings, self.first_clear_frame(detections)
        if not first_clear:
            return detections
        clear_range = range(first_clear, first_clear + settings.clear_frames)
        reference = {frame: item for frame in clear_range if (item := detections[frame]) is not None}
        area = float(np.median([item.area for item in reference.values()]))
        radius = settings.color_radius * _radius(area)
        patches = [_disc_pixels(frames[frame], item.position, radius) for frame, item in reference.items()]
        model = ObjectModel(area, _dominant_colors(patches))
        pairs = []
        for frame, item in reference.items():
            redetection = self._detect(frames[frame], item.position, model, 2 * settings.max_area_change)
            if redetection is not None:
                pairs.append((redetection, item))
        if len(pairs) < 2:
            return detections
        # Bias and scatter of this method, measured where the usual detections are reliable.
        errors = [redetection.position - item.position for redetection, item in pairs]
        bias, scatter = np.mean(errors, axis=0), float(np.sqrt(np.mean(np.square(errors))))
        model = model._replace(area=float(np.median([redetection.area for redetection, _ in pairs])))
        sigma = float(np.hypot(scatter, reference[first_clear].sigma))
        extended = list(detections)
        positions = {frame: item.position for frame, item in reference.items()}
        for frame in range(first_clear - 1, max(first_clear - settings.max_frames, 0) - 1, -1):
            if min(positions) - frame > settings.max_missed:
                break
            item = self._detect(frames[frame], _extrapolate_back(positions, frame), model, settings.max_area_change)
            if item is not None:
                positions[frame] = item.position - bias
                item_area = item.area * area / model.area
                extended[frame] = Detection(positions[frame], item_area, item.angle, item.axis_ratio, sigma)
        return extended

    def is_static_before(self, frames: _Frames, detections: _Detections) -> bool:
        """Return True if nothing moves near the first detection just before it.

        Args:
            frames: Aligned frames by number, as `required_frames` lists them.
            detections: Detections of the object in all frames.
        """
        strong_detections = _strong_detections(detections)
        if len(strong_detections) < 2:
            return False
        first, second = list(strong_detections)[:2]
        nearest, farthest = self.settings.static_frames
        earlier_frames = [first - offset for offset in range(nearest, farthest + 1)]
        if any(number not in frames for number in earlier_frames):
            return False
        position, area = (
            strong_detections[first].position,
            float(np.median([item.area for item in strong_detections.values()])),
        )
        step = float(np.linalg.norm(strong_detections[second].position - position)) / (second - first)
        radius = self.settings.static_radius * _radius(area) + step * farthest
        disc = _disc(self.background.shape, position, radius)
        background, threshold = self.background[disc], self.threshold[disc]
        changed = [np.linalg.norm(frames[number][disc] - background, axis=-1) > threshold for number in earlier_frames]
        return bool(max(pixels.sum() for pixels in changed) < self.settings.max_static_change * area)

    def _detect(
        self, frame: np.ndarray, guess: Float[np.ndarray, "2"], model: ObjectModel, max_area_change: float
    ) -> Detection | None:
        """Localize the object near its expected position by its colors; None where it is not completely visible.

        Args:
            frame: Aligned frame, levels.
            guess: Expected position, px.
            model: Area and colors of the object.
            max_area_change: Largest change of log area.
        """
        settings, radius = self.settings, _radius(model.area)
        half_side = settings.search_radius * radius + 3
        height, width = frame.shape[:2]
        if (guess < radius + 2).any() or (guess > np.array([width, height]) - radius - 2).any():
            return None
        left, top = np.floor(guess - half_side).astype(int).clip(0)
        right, bottom = np.ceil(guess + half_side).astype(int).clip(0, [width, height])
        patch = slice(top, bottom), slice(left, right)
        pixels = frame[patch].astype(float)
        non_object_distance = np.linalg.norm(pixels - self.background[patch].astype(float), axis=-1)
        distance = _color_distance(pixels, model.colors)
        changed = non_object_distance > self.threshold[patch]
        non_object_pixels = pixels[changed & (distance > settings.min_color_distance)]
        if len(non_object_pixels) > 0.3 * model.area:
            hand_colors = _dominant_colors([non_object_pixels])
            if _color_distance(hand_colors, model.colors).min() < settings.min_color_distance:
                return None
            hand_distance = np.linalg.norm(pixels[:, :, None] - hand_colors, axis=-1).min(-1)
            non_object_distance = np.minimum(non_object_distance, hand_distance)
        coverage = (non_object_distance / (distance + non_object_distance + 1e-6)).astype(np.float32)
        coverage = cv2.GaussianBlur(coverage, (0, 0), 0.6)
        component = _nearest_component(changed & (coverage > 0.5), guess - [left, top], model, 2 * max_area_change)
        if component is None:
            return None
        vicinity = cv2.dilate(component.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
        weights = np.where(vicinity & changed, np.clip(coverage, 0, 1), 0.0)
        weights[weights < 0.15] = 0.0
        area = float(weights.sum())
        if abs(np.log(area / model.area)) > max_area_change:
            return None
        columns, rows = np.meshgrid(np.arange(left, right) + 0.5, np.arange(top, bottom) + 0.5)
        position = np.array([float((weights * columns).sum()), float((weights * rows).sum())]) / area
        return Detection(position, area, 0.0, 1.0, 0.0)


def _strong_detections(detections: _Detections) -> dict[int, Detection]:
    return {frame: item for frame, item in enumerate(detections) if item is not None and not item.weak}


def _extrapolate_back(positions: Mapping[int, np.ndarray], frame: int) -> Float[np.ndarray, "2"]:
    """Extrapolate a path back: by the parabola through its three earliest positions, or the line through two."""
    frames = sorted(positions)[:3]
    powers = np.vander(np.array(frames) - frame, len(frames), increasing=True)
    return np.linalg.solve(powers.astype(float), np.array([positions[number] for number in frames]))[0]


def _radius(area: float) -> float:
    return float(np.sqrt(area / np.pi))


def _disc(shape: tuple[int, ...], center: Float[np.ndarray, "2"], radius: float) -> np.ndarray:
    rows, columns = np.mgrid[: shape[0], : shape[1]] + 0.5
    return np.hypot(columns - center[0], rows - center[1]) < radius


def _disc_pixels(frame: np.ndarray, center: Float[np.ndarray, "2"], radius: float) -> Float[np.ndarray, "pixels 3"]:
    return frame[_disc(frame.shape, center, max(radius, 1.0))].astype(float)


def _dominant_colors(patches: Sequence[np.ndarray], count: int = 2) -> Float[np.ndarray, "colors 3"]:
    pixels = np.concatenate(patches).astype(np.float32)
    if len(pixels) <= count:
        return pixels.astype(float)
    cv2.setRNGSeed(0)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 10, 1.0)
    _, _, centers = cv2.kmeans(pixels, count, np.empty(0, np.int32), criteria, 2, cv2.KMEANS_PP_CENTERS)
    return centers.astype(float)


def _color_distance(pixels: np.ndarray, colors: Float[np.ndarray, "colors 3"]) -> np.ndarray:
    """Distance of pixels from the line segment between the first and the last color, levels."""
    first, last = colors[0], colors[-1]
    segment = last - first
    fraction = np.clip((pixels - first) @ segment / max(float(segment @ segment), 1e-9), 0, 1)[..., None]
    return np.linalg.norm(pixels - first - fraction * segment, axis=-1)


def _nearest_component(
    mask: np.ndarray, center: Float[np.ndarray, "2"], model: ObjectModel, max_area_change: float
) -> np.ndarray | None:
    """Mask the connected component closest to `center` whose area is about the object's; None if there is none."""
    count, labels, stats, centroids = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    nearest, min_distance = None, _radius(model.area)
    for label in range(1, count):
        distance = float(np.hypot(*(centroids[label] + 0.5 - center)))
        area_change = abs(np.log(stats[label, cv2.CC_STAT_AREA] / model.area))
        if area_change < max_area_change and distance < min_distance:
            nearest, min_distance = label, distance
    return None if nearest is None else labels == nearest
