"""Pixels that change once: something comes to rest there, or leaves the place where it rested.

All pixels of a body that comes to rest or leaves show it either before their change or after it. So a patch of such
pixels is decided as a whole, by its edge: without the body, the background continues across it.
"""

from __future__ import annotations

import cv2
import numpy as np
from jaxtyping import Bool, Float, Int

from physvision.perception.settings import BackgroundSettings

_EDGE_WIDTH = 11  # px, of the blurred edge of a body and the background beside it; odd


def unify_single_changes(
    image: Float[np.ndarray, "height width 3"],
    samples: np.ndarray,
    region: Bool[np.ndarray, "height width"],
    tolerance: float,
    settings: BackgroundSettings,
) -> Float[np.ndarray, "height width 3"]:
    """Return the background with each patch of pixels that change once as it is without the body that rests there.

    A patch stays as it is where its edge does not agree on the state in which the background continues across it, and
    so do pixels that show neither state, where a body is taken to hide the background all the time.

    Args:
        image: Background, resolved pixel by pixel, levels.
        samples: Frames spread over the whole clip, levels.
        region: Pixels that may have several colors.
        tolerance: Difference up to which two colors are equal, levels.
        settings: Thresholds of the estimation.
    """
    rows, columns = np.nonzero(region)
    before, after, changes = _split_once(samples[:, rows, columns].astype(np.float32), tolerance, settings)
    rows, columns, before, after = rows[changes], columns[changes], before[changes], after[changes]
    mask = np.zeros(region.shape, np.uint8)
    mask[rows, columns] = 1
    count, labels = cv2.connectedComponents(mask, connectivity=8)
    patches: Int[np.ndarray, " pixels"] = labels[rows, columns]
    beside, is_edge = _colors_beside(image, region)
    edge, outside = is_edge[rows, columns], beside[rows, columns]
    step_before, step_after = (np.abs(state - outside).max(-1) for state in (before, after))
    counts = np.maximum(np.bincount(patches[edge], minlength=count), 1)
    unified = image.copy()
    # Where a body moves by less than its own size, one end of the patch shows it before, and the other after.
    gain = step_before - step_after
    for state, alternative, continues in ((before, after, gain < -tolerance), (after, before, gain > tolerance)):
        agreement = np.bincount(patches[edge], continues[edge], minlength=count) / counts
        shows_alternative = np.abs(image[rows, columns] - alternative).max(-1) < tolerance
        pixels = (agreement > settings.min_edge_majority)[patches] & shows_alternative
        unified[rows[pixels], columns[pixels]] = state[pixels]
    return unified


def _colors_beside(
    image: Float[np.ndarray, "height width 3"], region: Bool[np.ndarray, "height width"]
) -> tuple[Float[np.ndarray, "height width 3"], Bool[np.ndarray, "height width"]]:
    """Return the mean color outside the region near each pixel, and the pixels that are near any of it."""
    size = (_EDGE_WIDTH, _EDGE_WIDTH)
    weight = cv2.blur((~region).astype(np.float32), size)
    color = cv2.blur(np.where(region[..., None], 0, image).astype(np.float32), size)
    return color / np.maximum(weight, 1e-6)[..., None], weight > 1e-6


def _split_once(
    values: Float[np.ndarray, "samples pixels 3"], tolerance: float, settings: BackgroundSettings
) -> tuple[Float[np.ndarray, "pixels 3"], Float[np.ndarray, "pixels 3"], Bool[np.ndarray, " pixels"]]:
    """Return the colors of each pixel before and after its largest change, and which pixels change just once."""
    count, margin = len(values), settings.min_state_samples
    if count < 2 * margin:
        empty = np.zeros(values.shape[1:], np.float32)
        return empty, empty, np.zeros(values.shape[1], bool)
    sums = values.cumsum(0)
    splits = np.arange(margin, count - margin + 1)
    lengths = splits[:, None, None]
    totals = sums[-1]
    # The split that explains most of the variance has the largest sum of squared means, weighted by their lengths.
    gains = (sums[splits - 1] ** 2 / lengths + (totals - sums[splits - 1]) ** 2 / (count - lengths)).sum(-1)
    split = splits[gains.argmax(0)]
    first = np.take_along_axis(sums, (split - 1)[None, :, None], 0)[0]
    before, after = first / split[:, None], (totals - first) / (count - split)[:, None]
    is_before = np.arange(count)[:, None] < split
    deviations = np.abs(values - np.where(is_before[..., None], before, after)).max(-1)
    steady = (deviations < tolerance).mean(0) > settings.min_steady_fraction
    return before, after, steady & (np.abs(after - before).max(-1) > 2 * tolerance)
