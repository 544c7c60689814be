"""How well what a model sees accounts for the picture, and whether a video is of the kind that it was made for."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from physvision.core import InputError, Scene

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


def check_kind(
    source: str,
    scene: Scene,
    frames: Sequence[UInt8[np.ndarray, "height width channels"]],
    agreements: Float[np.ndarray, " windows"],
) -> None:
    """Raise unless the first frames of a video look like what the model was made for.

    Args:
        source: the video, for people.
        scene: what was expected.
        frames: the first ones.
        agreements: of the redrawn states with them.
    """
    wrong = _wrong_colors(scene, frames)
    middle = float(np.median(agreements))
    if middle < scene.least_agreement:
        wrong.append(
            f"the redrawn state explains {middle:.0%} of the picture, {scene.least_agreement:.0%} are usual at least"
        )
    if wrong:
        names = ", ".join(each.name for each in scene.objects)
        raise InputError(
            f"{source}: does not look like what the checkpoint was made for ({'; '.join(wrong)}). It expects "
            f"{scene.appearance}; objects: {names}. Give --crop '[x,y,width,height]' of the part that shows just that, "
            "use or train a checkpoint for this scene, or add --anyway to go on"
        )


def _wrong_colors(scene: Scene, frames: Sequence[np.ndarray]) -> list[str]:
    """What is wrong with the objects' colours and number in most of `frames`."""
    if scene.color != "rgb" or any(each.color is None for each in scene.objects):
        return []
    colors = [each.color for each in scene.objects]
    counts = np.array([_blobs(scene, frame, np.array(colors)) for frame in frames])
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


def _blobs(scene: Scene, frame: np.ndarray, colors: np.ndarray) -> list[int]:
    """How many things of each colour a frame shows, and at the end of other colours."""
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
