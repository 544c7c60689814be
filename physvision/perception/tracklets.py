"""Foreground blobs of a frame, and their association with those of other frames into tracklets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import cv2
import numpy as np
from jaxtyping import Float

from physvision.perception.settings import DEFAULT_SETTINGS, AssociationSettings


@dataclass(frozen=True)
class Blob:
    """Connected foreground region of a frame.

    Attributes:
        position: Coordinates x and y of the weighted centroid, px.
        area: Number of pixels.
        color: Red, green, blue, levels.
        contrast: Median change from the background, levels.
        touches_border: If true, it touches the border of the image.
        is_shadow: If true, it is the background, uniformly darkened.
        color_difference: Color minus that of the background, levels.
    """

    position: Float[np.ndarray, "2"]
    area: float
    color: Float[np.ndarray, "3"]
    contrast: float
    touches_border: bool
    is_shadow: bool
    color_difference: Float[np.ndarray, "3"]

    @property
    def size(self) -> float:
        """Diameter of the circle of equal area, px."""
        return 2 * float(np.sqrt(self.area / np.pi))


def detect_blobs(
    frame: np.ndarray,
    difference: np.ndarray,
    threshold: np.ndarray,
    background: np.ndarray,
    settings: AssociationSettings,
) -> list[Blob]:
    """Detect the blobs of an aligned frame.

    Args:
        frame: Aligned frame, levels.
        difference: Change of each pixel from the background, levels.
        threshold: Change above which a pixel is foreground, levels.
        background: Background image, levels.
        settings: Depth at which blobs are split.
    """
    mask = (difference > threshold).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    min_area = max(6.0, 2e-5 * mask.size)
    blobs = []
    for label in np.flatnonzero(stats[:, cv2.CC_STAT_AREA] >= min_area):
        if label == 0:
            continue
        left, top, width, height, _ = stats[label]
        patch = slice(top, top + height), slice(left, left + width)
        component = (labels[patch] == label).astype(np.uint8)
        # A shadow next to its object differs less from the background.
        min_difference = 0.4 * float(np.percentile(difference[patch][component > 0], 90))
        for part in thick_parts(component & (difference[patch] > min_difference), settings.core_depth):
            if part.sum() >= min_area:
                color, change, background_patch = frame[patch], difference[patch], background[patch]
                blobs.append(_make_blob(color, change, background_patch, part, (left, top), mask.shape))
    return blobs


def thick_parts(component: np.ndarray, core_depth: float) -> list[np.ndarray]:
    """Split a component at its necks, and return the mask of each thick part.

    Args:
        component: Mask of the component.
        core_depth: Fraction of the largest distance to the edge above which a pixel belongs to a core.
    """
    padded = cv2.copyMakeBorder(component, 1, 1, 1, 1, cv2.BORDER_CONSTANT)
    depth = cv2.distanceTransform(padded, cv2.DIST_L2, 3)[1:-1, 1:-1]
    max_depth = float(depth.max())
    if max_depth == 0:
        return []
    if max_depth < 2.5:
        return [component]
    count, cores = cv2.connectedComponents((depth > core_depth * max_depth).astype(np.uint8), connectivity=8)
    side = 2 * int(np.ceil(core_depth * max_depth)) + 1
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
    parts = [cv2.dilate((cores == core).astype(np.uint8), disc) & component for core in range(1, count)]
    return [part for part in parts if part.sum() > 0.05 * component.sum()]


def _make_blob(frame, difference, background, part, corner, shape) -> Blob:
    weights = np.minimum(difference, np.percentile(difference[part > 0], 70)) * part
    total = float(weights.sum())
    rows, columns = np.nonzero(part)
    values = weights[rows, columns]
    x, y = (columns + 0.5) @ values / total, (rows + 0.5) @ values / total
    is_strong = (part > 0) & (difference >= np.median(difference[part > 0]))
    color = np.median(frame[is_strong].astype(float), axis=0)
    background_color = np.median(background[is_strong].astype(float), axis=0)
    ratio = (color + 3) / (background_color + 3)
    left, top = columns.min() + corner[0], rows.min() + corner[1]
    right, bottom = columns.max() + corner[0], rows.max() + corner[1]
    return Blob(
        position=np.array([x + corner[0], y + corner[1]]),
        area=float(part.sum()),
        color=color,
        contrast=float(np.median(difference[is_strong])),
        touches_border=bool(left <= 0 or top <= 0 or right >= shape[1] - 1 or bottom >= shape[0] - 1),
        is_shadow=bool(0.35 < ratio.mean() < 0.97 and np.ptp(ratio) < 0.08),
        color_difference=color - background_color,
    )


_INFEASIBLE_COST = 1e6  # cost of an association that is ruled out


@dataclass
class Tracklet:
    """Blobs of one object in successive frames.

    Attributes:
        frames: Frame numbers, increasing.
        times: Times of the frames, s.
        blobs: Blob of each frame.
    """

    frames: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frames)

    def add(self, frame: int, time: float, blob: Blob) -> None:
        """Append the blob of the next frame."""
        self.frames.append(frame)
        self.times.append(time)
        self.blobs.append(blob)
        # These values are compared with every blob of the next frame, so they are cached until a blob is added.
        for cached in ("area", "color", "contrast", "velocity"):
            self.__dict__.pop(cached, None)

    @property
    def positions(self) -> Float[np.ndarray, "times 2"]:
        """Positions of the blobs, px."""
        return np.array([blob.position for blob in self.blobs])

    @cached_property
    def area(self) -> float:
        """Median area of the blobs in pixels."""
        return float(np.median([blob.area for blob in self._sampled_blobs]))

    @cached_property
    def color(self) -> Float[np.ndarray, "3"]:
        """Median color of the blobs (red, green, blue), levels."""
        return np.median([blob.color for blob in self._sampled_blobs], axis=0)

    @cached_property
    def contrast(self) -> float:
        """Median contrast of the blobs, levels."""
        return float(np.median([blob.contrast for blob in self._sampled_blobs]))

    @property
    def size(self) -> float:
        """Diameter of the circle with the median area, px."""
        return 2 * float(np.sqrt(self.area / np.pi))

    @property
    def extent(self) -> float:
        """Diagonal of the box from the 5th to the 95th percentile of the positions, px."""
        low, high = np.percentile(self.positions, [5, 95], axis=0)
        return float(np.hypot(*(high - low)))

    @cached_property
    def velocity(self) -> Float[np.ndarray, "2"] | None:
        """Median velocity of the last four blobs, px/s; None for a single blob."""
        return _median_velocity(self.times[-4:], self.blobs[-4:]) if len(self) > 1 else None

    @property
    def initial_velocity(self) -> Float[np.ndarray, "2"] | None:
        """Median velocity of the first four blobs, px/s; None for a single blob."""
        return _median_velocity(self.times[:4], self.blobs[:4]) if len(self) > 1 else None

    @property
    def _sampled_blobs(self) -> list[Blob]:
        """Evenly spaced sample of blobs, about twenty."""
        return self.blobs[:: max(1, len(self) // 20)]


def _median_velocity(times: list[float], blobs: list[Blob]) -> np.ndarray:
    positions = np.array([blob.position for blob in blobs])
    return np.median(np.diff(positions, axis=0) / np.diff(times)[:, None], axis=0)


class TrackletBuilder:
    """Builder of tracklets, frame by frame, by greedy assignment in the order of increasing cost."""

    def __init__(self, max_step: float, settings: AssociationSettings = DEFAULT_SETTINGS.association) -> None:
        """Start with an empty set of tracklets.

        Args:
            max_step: Largest distance between the first two blobs of a tracklet, px.
            settings: Largest gaps and differences that association accepts.
        """
        self._max_step, self._settings = max_step, settings
        self._active: list[Tracklet] = []
        self._finished: list[Tracklet] = []

    def add(self, frame: int, time: float, blobs: list[Blob]) -> None:
        """Associate the blobs of the next frame."""
        gap = self._settings.max_gap
        active = [tracklet for tracklet in self._active if time - tracklet.times[-1] <= gap]
        self._finished += [tracklet for tracklet in self._active if time - tracklet.times[-1] > gap]
        associated: set[int] = set()
        if active and blobs:
            costs = np.array([[self._cost(tracklet, time, blob) for blob in blobs] for tracklet in active])
            while costs.min() < _INFEASIBLE_COST:
                row, column = np.unravel_index(costs.argmin(), costs.shape)
                active[row].add(frame, time, blobs[column])
                associated.add(int(column))
                costs[row], costs[:, column] = _INFEASIBLE_COST, _INFEASIBLE_COST
        for number, blob in enumerate(blobs):
            if number not in associated:
                active.append(Tracklet([frame], [time], [blob]))
        self._active = active

    def unmerged(self) -> list[Tracklet]:
        """Return the tracklets of sufficient length."""
        return [item for item in self._finished + self._active if len(item) >= self._settings.min_length]

    def tracklets(self) -> list[Tracklet]:
        """Return the tracklets of sufficient length, merged where one continues another."""
        return merge_tracklets(self.unmerged(), self._settings)

    def _cost(self, tracklet: Tracklet, time: float, blob: Blob) -> float:
        elapsed = time - tracklet.times[-1]
        velocity = tracklet.velocity
        previous = tracklet.blobs[-1]
        appearance_difference = min(dissimilarity(previous, blob), dissimilarity(tracklet, blob))
        if appearance_difference > self._settings.max_dissimilarity:
            return _INFEASIBLE_COST
        distance = float(np.linalg.norm(blob.position - previous.position))
        if velocity is None:
            return distance / self._max_step + appearance_difference if distance < self._max_step else _INFEASIBLE_COST
        error = float(np.linalg.norm(blob.position - previous.position - velocity * elapsed))
        # The object may bounce, but it does not become much faster.
        gate = previous.size + 1.5 * float(np.linalg.norm(velocity)) * elapsed + 4
        error = min(error, distance + 0.3 * gate)
        return error / gate + 0.8 * appearance_difference if error < gate else _INFEASIBLE_COST


def dissimilarity(first: Blob | Tracklet, second: Blob | Tracklet) -> float:
    """Appearance difference of two blobs or tracklets: a weighted sum of those in color, log area and log contrast.

    A blob cannot continue a tracklet above `AssociationSettings.max_dissimilarity`.
    """
    color_difference = float(np.linalg.norm(first.color - second.color)) / 120
    area_difference = abs(np.log(first.area / second.area))
    return color_difference + 0.6 * area_difference + 0.5 * abs(np.log(first.contrast / second.contrast))


def merge_tracklets(tracklets: list[Tracklet], settings: AssociationSettings) -> list[Tracklet]:
    """Merge tracklets where one continues another, in the order of increasing cost.

    Short gaps are bridged before long ones: a swinging object returns to the same position, so a match across a long
    gap may be wrong.
    """
    return _merge_within(_merge_within(tracklets, settings.max_gap), settings.max_merge_gap)


def _merge_within(tracklets: list[Tracklet], max_gap: float) -> list[Tracklet]:
    """Merge tracklets that are separated by gaps shorter than `max_gap` seconds."""
    tracklets = list(tracklets)
    costs = np.array([[_merge_cost(early, late, max_gap) for late in tracklets] for early in tracklets])
    costs = costs.reshape(len(tracklets), len(tracklets))
    while costs.size and costs.min() < 1.0:
        first, second = (int(index) for index in np.unravel_index(costs.argmin(), costs.shape))
        early, late = tracklets[first], tracklets[second]
        merged = Tracklet(early.frames + late.frames, early.times + late.times, early.blobs + late.blobs)
        tracklets[first], tracklets[second] = merged, Tracklet()
        costs[second], costs[:, second] = np.inf, np.inf
        for number, tracklet in enumerate(tracklets):
            costs[first, number] = _merge_cost(merged, tracklet, max_gap)
            costs[number, first] = _merge_cost(tracklet, merged, max_gap)
    return sorted((tracklet for tracklet in tracklets if len(tracklet)), key=lambda tracklet: tracklet.frames[0])


def _merge_cost(early: Tracklet, late: Tracklet, max_gap: float) -> float:
    """Cost of continuing `early` by `late`: below one if they may be the same object, infinite if they cannot."""
    if not len(early) or not len(late) or not 0 < late.times[0] - early.times[-1] < max_gap:
        return np.inf
    velocity, next_velocity = early.velocity, late.initial_velocity
    if velocity is None or next_velocity is None:
        return np.inf
    gap = late.times[0] - early.times[-1]
    end, start = early.blobs[-1].position, late.blobs[0].position
    speed = max(np.linalg.norm(velocity), np.linalg.norm(next_velocity))
    gate = early.size + 0.7 * speed * gap
    middle_offset = end + velocity * gap / 2 - start + next_velocity * gap / 2
    distance = min(np.linalg.norm(middle_offset), np.linalg.norm(start - end))
    appearance_difference = min(dissimilarity(early, late), dissimilarity(early.blobs[-1], late.blobs[0]))
    return float(distance / gate) + 0.7 * appearance_difference
