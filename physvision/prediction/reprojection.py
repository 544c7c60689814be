"""How well what a model sees accounts for the picture as a whole, and which things of which colours are in it."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from physvision.core import Scene

# Distance of colours (each channel 0 to 1) below which a pixel has an object's colour, and beyond which it has not the
# background's. A pixel at an object's edge is between the two and counts for neither.
_LIKE, _UNLIKE = 0.35, 0.5
# Share of an object's pixels below which a blob of its colour is an edge or noise.
_BLOB = 0.25


def agreement(
    frames: Float[Tensor, "batch channels height width"], redrawn: Float[Tensor, "batch channels height width"]
) -> Float[Tensor, " batch"]:
    """Share of each frame's variance that the redrawn state explains, 0 to 1; 0 for a frame of one colour."""
    away = (frames - redrawn.clamp(0, 1)).square().flatten(1).sum(1)
    whole = (frames - frames.mean((2, 3), keepdim=True)).square().flatten(1).sum(1)
    return torch.where(whole > 1e-6, 1 - away / whole.clamp_min(1e-6), 0.0).clamp(0, 1)


def wrong_colors(scene: Scene, counts: Int[np.ndarray, "frames colors"]) -> list[str]:
    """What is wrong with the objects' colours and number in most frames, whose `colored_things` are given."""
    colors = [each.color for each in scene.objects]
    usual = np.median(counts, 0)
    wrong = []
    for color in dict.fromkeys(colors):
        names = [each.name for each in scene.objects if each.color == color]
        found = usual[colors.index(color)]
        if found < 1:
            wrong.append(f"nothing has the colour of {names[0]}")
        elif found > len(names):
            wrong.append(f"{found:.0f} things have the colour of {names[0]}")
    if usual[-1] >= 1:
        wrong.append(f"{usual[-1]:.0f} things of other colours")
    return wrong


def colored_things(scene: Scene, frame: UInt8[np.ndarray, "height width 3"]) -> list[int]:
    """How many things of each object's colour a frame shows, and at the end of other colours."""
    colors = np.array([each.color for each in scene.objects])
    levels = frame.astype(np.float32) / 255
    background = np.median(levels.reshape(-1, 3), 0)
    apart = np.linalg.norm(levels[..., None, :] - colors.astype(np.float32), axis=-1)
    least = [np.pi * (each.radius or 1.0) ** 2 * _BLOB for each in scene.objects]
    masks = [(apart[..., index] < _LIKE) & (apart.argmin(-1) == index) for index in range(len(colors))]
    far = np.linalg.norm(levels - background, axis=-1) > _UNLIKE
    masks.append(far & (apart.min(-1) > _UNLIKE))
    return [_count(mask, size) for mask, size in zip(masks, [*least, min(least)], strict=True)]


def _count(mask: np.ndarray, least: float) -> int:
    _, _, statistics, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    return int((statistics[1:, cv2.CC_STAT_AREA] >= least).sum())
