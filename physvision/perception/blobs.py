"""Connected pieces that differ from the background in one frame, thin things such as strings cut away."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float

CORE = 0.5  # of the largest distance to an edge: less is a string, or the neck between two things that touch


@dataclass(frozen=True)
class Blob:
    """A piece of a frame.

    Attributes:
        place: x and y of its middle, pixels.
        area: pixels.
        color: red, green, blue, levels.
        contrast: its mean change from the background, levels.
        at_border: it touches the picture's border.
        shadow: it is what is behind it, only darker.
        difference: of its colour from what is behind it, levels.
    """

    place: Float[np.ndarray, "2"]
    area: float
    color: Float[np.ndarray, "3"]
    contrast: float
    at_border: bool
    shadow: bool
    difference: Float[np.ndarray, "3"]

    @property
    def size(self) -> float:
        """Diameter of the circle with its area."""
        return 2 * float(np.sqrt(self.area / np.pi))


def detect_blobs(frame: np.ndarray, change: np.ndarray, threshold: np.ndarray, behind: np.ndarray) -> list[Blob]:
    """The blobs of an aligned frame; `change` is from the background, which is `behind`."""
    mask = (change > threshold).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    least = max(6.0, 2e-5 * mask.size)
    found = []
    for label in np.flatnonzero(stats[:, cv2.CC_STAT_AREA] >= least):
        if label == 0:
            continue
        left, top, width, height, _ = stats[label]
        piece = slice(top, top + height), slice(left, left + width)
        own = (labels[piece] == label).astype(np.uint8)
        # A shadow next to its thing differs less from the background.
        clear = 0.4 * float(np.percentile(change[piece][own > 0], 90))
        for part in thick_parts(own & (change[piece] > clear)):
            if part.sum() >= least:
                found.append(_blob(frame[piece], change[piece], behind[piece], part, (left, top), mask.shape))
    return found


def thick_parts(own: np.ndarray) -> list[np.ndarray]:
    """The thick parts of a component, each with what belongs to it, as masks."""
    padded = cv2.copyMakeBorder(own, 1, 1, 1, 1, cv2.BORDER_CONSTANT)
    depth = cv2.distanceTransform(padded, cv2.DIST_L2, 3)[1:-1, 1:-1]
    deepest = float(depth.max())
    if deepest == 0:
        return []
    if deepest < 2.5:
        return [own]
    count, cores = cv2.connectedComponents((depth > CORE * deepest).astype(np.uint8), connectivity=8)
    reach = 2 * int(np.ceil(CORE * deepest)) + 1
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach))
    grown = [cv2.dilate((cores == core).astype(np.uint8), disc) & own for core in range(1, count)]
    return [part for part in grown if part.sum() > 0.05 * own.sum()]


def _blob(frame, change, behind, part, corner, shape) -> Blob:
    weights = np.minimum(change, np.percentile(change[part > 0], 70)) * part
    total = float(weights.sum())
    rows, columns = np.nonzero(part)
    values = weights[rows, columns]
    x, y = (columns + 0.5) @ values / total, (rows + 0.5) @ values / total
    strong = (part > 0) & (change >= np.median(change[part > 0]))
    color = np.median(frame[strong].astype(float), axis=0)
    under = np.median(behind[strong].astype(float), axis=0)
    ratio = (color + 3) / (under + 3)
    left, top = columns.min() + corner[0], rows.min() + corner[1]
    right, bottom = columns.max() + corner[0], rows.max() + corner[1]
    return Blob(
        place=np.array([x + corner[0], y + corner[1]]),
        area=float(part.sum()),
        color=color,
        contrast=float(np.median(change[strong])),
        at_border=bool(left <= 0 or top <= 0 or right >= shape[1] - 1 or bottom >= shape[0] - 1),
        shadow=bool(0.35 < ratio.mean() < 0.97 and np.ptp(ratio) < 0.08),
        difference=color - under,
    )
