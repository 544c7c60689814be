"""Foreground blobs of one frame, with thin structures such as strings cut away."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float

from physvision.perception.settings import AssociationSettings


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
                blobs.append(
                    _make_blob(frame[patch], difference[patch], background[patch], part, (left, top), mask.shape)
                )
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
    strong = (part > 0) & (difference >= np.median(difference[part > 0]))
    color = np.median(frame[strong].astype(float), axis=0)
    background_color = np.median(background[strong].astype(float), axis=0)
    ratio = (color + 3) / (background_color + 3)
    left, top = columns.min() + corner[0], rows.min() + corner[1]
    right, bottom = columns.max() + corner[0], rows.max() + corner[1]
    return Blob(
        position=np.array([x + corner[0], y + corner[1]]),
        area=float(part.sum()),
        color=color,
        contrast=float(np.median(difference[strong])),
        touches_border=bool(left <= 0 or top <= 0 or right >= shape[1] - 1 or bottom >= shape[0] - 1),
        is_shadow=bool(0.35 < ratio.mean() < 0.97 and np.ptp(ratio) < 0.08),
        color_difference=color - background_color,
    )
