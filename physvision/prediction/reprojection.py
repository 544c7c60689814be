"""Reprojection score of a state, and the number of objects of each color in an image."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from physvision.core import Scene
from physvision.prediction.settings import DEFAULT_SETTINGS, PredictionSettings


def reprojection_score(
    frames: Float[Tensor, "batch channels height width"], rendered: Float[Tensor, "batch channels height width"]
) -> Float[Tensor, " batch"]:
    """Fraction of each frame's variance that the rendered state explains, 0 to 1; 0 for a uniform frame."""
    residual = (frames - rendered.clamp(0, 1)).square().flatten(1).sum(1)
    total = (frames - frames.mean((2, 3), keepdim=True)).square().flatten(1).sum(1)
    return torch.where(total > 1e-6, 1 - residual / total.clamp_min(1e-6), 0.0).clamp(0, 1)


def describe_color_mismatch(scene: Scene, counts: Int[np.ndarray, "frames colors"]) -> list[str]:
    """Describe what is wrong with the number of objects of each color in most frames.

    Args:
        scene: Scene that the video should show.
        counts: Numbers of objects in each frame, see `count_colored_objects`.
    """
    colors = [item.color for item in scene.objects]
    median = np.median(counts, 0)
    mismatches = []
    for color in dict.fromkeys(colors):
        names = [item.name for item in scene.objects if item.color == color]
        count = median[colors.index(color)]
        if count < 1:
            mismatches.append(f"nothing has the color of {names[0]}")
        elif count > len(names):
            mismatches.append(f"{count:.0f} objects have the color of {names[0]}")
    if median[-1] >= 1:
        mismatches.append(f"{median[-1]:.0f} objects of other colors")
    return mismatches


def count_colored_objects(
    scene: Scene, frame: UInt8[np.ndarray, "height width 3"], settings: PredictionSettings = DEFAULT_SETTINGS
) -> list[int]:
    """Count the blobs of each object's color in a frame, and at the end those of other colors."""
    colors = np.array([item.color for item in scene.objects])
    pixels = frame.astype(np.float32) / 255
    background = np.median(pixels.reshape(-1, 3), 0)
    distance = np.linalg.norm(pixels[..., None, :] - colors.astype(np.float32), axis=-1)
    min_areas = [np.pi * (item.radius or 1.0) ** 2 * settings.min_blob_area for item in scene.objects]
    masks = [
        (distance[..., index] < settings.color_distance) & (distance.argmin(-1) == index)
        for index in range(len(colors))
    ]
    is_foreground = np.linalg.norm(pixels - background, axis=-1) > settings.background_distance
    masks.append(is_foreground & (distance.min(-1) > settings.background_distance))
    return [_count_blobs(mask, area) for mask, area in zip(masks, [*min_areas, min(min_areas)], strict=True)]


def _count_blobs(mask: np.ndarray, min_area: float) -> int:
    _, _, statistics, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    return int((statistics[1:, cv2.CC_STAT_AREA] >= min_area).sum())
