"""Static things in front of a motion, such as a post: pixels that an object passes but never shows at.

A partly hidden object's center is that of its visible part. How far it lies beside the object's own center follows from
the hidden part of its disc.
"""

from __future__ import annotations

import cv2
import numpy as np
from jaxtyping import Bool, Float, Int

from physvision.perception.settings import OcclusionSettings

_STEPS = 5  # of the fixed-point iteration of a disc's center


def occluded_pixels(
    visits: Int[np.ndarray, "height width"],
    centers: Float[np.ndarray, "detections 2"],
    radius: float,
    settings: OcclusionSettings,
) -> Bool[np.ndarray, "height width"]:
    """Mask the pixels that a round object passes, again and again, without being seen there.

    Args:
        visits: Number of frames in which each pixel differs from the background.
        centers: Centers of the visible parts of the object, px.
        radius: Radius of the object, px.
        settings: Thresholds of the numbers of passages.
    """
    passages, core = np.zeros(visits.shape, np.int32), settings.core_radius * radius
    for center in centers:
        left, top = np.floor(center - core).astype(int).clip(0)
        right, bottom = np.ceil(center + core).astype(int).clip(0) + 1
        patch = passages[top:bottom, left:right]
        rows, columns = np.ogrid[top : top + patch.shape[0], left : left + patch.shape[1]]
        patch += np.hypot(columns + 0.5 - center[0], rows + 0.5 - center[1]) < core
    hidden = (passages >= settings.min_passages) & (visits < settings.max_visible * passages)
    hidden = cv2.morphologyEx(hidden.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    # What hides the core reaches beyond it.
    side = 2 * round(radius - core) + 3
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
    return cv2.dilate(hidden, disc).astype(bool)


def visible_offset(
    occluded: Bool[np.ndarray, "height width"], position: Float[np.ndarray, "2"], radius: float
) -> float:
    """Return the distance of a disc's center from that of its visible part, px.

    Args:
        occluded: Mask of the pixels of static things in front of the motion.
        position: Center of the visible part, px.
        radius: Radius of the disc, px.
    """
    left, top = np.floor(position - 2 * radius).astype(int).clip(0)
    right, bottom = np.ceil(position + 2 * radius).astype(int).clip(0) + 1
    visible = ~occluded[top:bottom, left:right]
    if visible.all():
        return 0.0
    rows, columns = np.mgrid[top : top + visible.shape[0], left : left + visible.shape[1]] + 0.5
    center = np.array(position, float)
    for _ in range(_STEPS):
        disc = np.clip(radius + 0.5 - np.hypot(columns - center[0], rows - center[1]), 0, 1)
        weights = disc * visible
        if weights.sum() < 0.1 * disc.sum():
            break
        offset = np.array([(axis * weights).sum() for axis in (columns, rows)]) / weights.sum() - center
        center = position - offset
    return float(np.linalg.norm(center - position))
