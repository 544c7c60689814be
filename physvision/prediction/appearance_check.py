"""What is drawn from a state, compared with the picture object by object."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from jaxtyping import Float

from physvision.core import SceneObject

Frames = Float[np.ndarray, "frames height width channels"]
Outline = Float[np.ndarray, "frames points 2"]

# A place has an object's colour where no channel is further from it, on average.
_ALIKE = 0.15
# Half the width of a line, as a share of the picture's longer side; further off is another thing.
_WIDTH, _FAR = 0.0185, 0.04
_ALONG = 48  # places along a line
_BEYOND = 0.25  # how far past its end a line's colour is followed, as a share of its length
# A disc is looked for in so many radii, and the background in a ring beyond the first number of them.
_RING, _AROUND = 2.0, 2.5


def line_colors(objects: Sequence[SceneObject], frames: Frames, outlines: Sequence[Outline]) -> list[np.ndarray]:
    """The objects' colours as bright as the picture shows most of them in the middle of their lines: blur dims them."""
    colors = levels(objects, frames.shape[-1])
    shares = [
        np.median(_sampled(frames, _along(whole)[:, _ALONG // 4 : -_ALONG // 4]) @ color) / (color @ color)
        for whole, color in zip(outlines, colors, strict=True)
    ]
    return [np.clip(np.median(shares), 0.7, 1.1) * color for color in colors]


def shown_along_lines(
    colors: Sequence[np.ndarray], frames: Frames, outlines: Sequence[Outline]
) -> Float[np.ndarray, "frames objects"]:
    """Share of each object's line where the picture has its colour, or that of an object that lies there as well."""
    reach = _WIDTH * max(frames.shape[1:3])
    found = []
    for whole in outlines:
        places = _along(whole)
        seen = _sampled(frames, places)
        there = [_distance(places, other) < reach for other in outlines]
        alike = [np.abs(seen - color).mean(-1) < _ALIKE for color in colors]
        found.append(np.any([near & like for near, like in zip(there, alike, strict=True)], 0).mean(1))
    return np.stack(found, 1)


def line_ends(
    colors: Sequence[np.ndarray], frames: Frames, outlines: Sequence[Outline]
) -> Float[np.ndarray, "frames objects"]:
    """Where the colour of each object's last line ends, as a share of the line's length; NaN where it is not seen."""
    found = []
    steps = np.arange(0.5, 1 + _BEYOND, 0.5 / _ALONG)
    for whole, color in zip(outlines, colors, strict=True):
        places = whole[:, -2:-1] + (whole[:, -1:] - whole[:, -2:-1]) * steps[:, None]
        own = np.abs(_sampled(frames, places) - color).mean(-1) < _ALIKE
        ends = np.where(own.all(1), len(steps), (~own).argmax(1)) - 0.5
        found.append(np.where(own[:, 0], 0.5 + ends * 0.5 / _ALONG, np.nan))
    return np.stack(found, 1)


def beside_lines(frames: Frames, outlines: Sequence[Outline]) -> Float[np.ndarray, " frames"]:
    """Share of what differs from the background that is no object's."""
    high, wide = frames.shape[1:3]
    background = np.median(frames, (1, 2), keepdims=True)
    differs = np.abs(frames - background).mean(-1) > _ALIKE
    shares = []
    for index, mask in enumerate(differs):
        canvas = np.zeros((high, wide), np.uint8)
        for whole in outlines:
            line = np.rint(whole[index] * 16 - 8).astype(np.int32)
            cv2.polylines(canvas, [line], False, 1, round(2 * _FAR * max(high, wide)), cv2.LINE_8, 4)
        shares.append(float((mask & (canvas == 0)).sum() / max(1, mask.sum())))
    return np.array(shares)


def disc_sizes(
    objects: Sequence[SceneObject], frames: Frames, outlines: Sequence[Outline]
) -> Float[np.ndarray, "frames objects"]:
    """The radius of each disc by the area that has its colour, as a multiple of the scene's.

    NaN where it is not alone, or too near to the border of the picture.
    """
    colors = levels(objects, frames.shape[-1])
    background = np.median(frames, (1, 2))
    high, wide = frames.shape[1:3]
    centers = np.stack([whole[:, 0] for whole in outlines], 1)
    found = np.full(centers.shape[:2], np.nan)
    for each, color in enumerate(colors):
        radius = objects[each].radius or 1.0
        around = _AROUND * radius
        apart = np.linalg.norm(centers - centers[:, each : each + 1], axis=-1)
        apart[:, each] = np.inf
        inside = (centers[:, each] > around) & (centers[:, each] < [wide - around, high - around])
        for index in np.flatnonzero(inside.all(1) & (apart.min(1) > around + radius)):
            x, y = centers[index, each]
            rows, columns = np.ogrid[int(y - around) : int(y + around) + 1, int(x - around) : int(x + around) + 1]
            away = np.hypot(columns + 0.5 - x, rows + 0.5 - y) / radius
            contrast = np.linalg.norm(color - background[index])
            cover = np.clip(1 - np.linalg.norm(frames[index, rows, columns] - color, axis=-1) / contrast, 0, 1)
            level = cover[(away > _RING) & (away < _AROUND)].mean()
            area = ((cover - level) / max(1 - level, 1e-3))[away < _RING].sum()
            found[index, each] = np.sqrt(max(area, 0.0) / np.pi) / radius
    return found


def cut_off(objects: Sequence[SceneObject], frames: Frames) -> Float[np.ndarray, "frames objects"]:
    """Whether the border of the picture cuts each disc: its colour lies along more of the border than where it touches.

    A disc whose middle is three quarters of its radius inside has a chord of 1.3 radii on the border.
    """
    background = np.median(frames, (1, 2))[:, None]
    edges = [frames[:, 0], frames[:, -1], frames[:, :, 0], frames[:, :, -1]]
    found = []
    for each, color in zip(objects, levels(objects, frames.shape[-1]), strict=True):
        near = 0.5 * np.linalg.norm(color - background, axis=-1)
        chords = [(np.linalg.norm(edge - color, axis=-1) < near).sum(1) for edge in edges]
        found.append(np.max(chords, 0) > 1.3 * (each.radius or 1.0))
    return np.stack(found, 1).astype(float)


def levels(objects: Sequence[SceneObject], channels: int) -> list[np.ndarray]:
    """The colours of objects that have all been given one."""
    return [np.array((each.color or (0.0,) * 3)[:channels], np.float32) for each in objects]


def _along(whole: Outline) -> Float[np.ndarray, "frames places 2"]:
    """Places along the lines through given points, at equal steps of each piece."""
    shares = (np.arange(_ALONG) + 0.5)[:, None] / _ALONG
    pieces = [whole[:, k : k + 1] * (1 - shares) + whole[:, k + 1 : k + 2] * shares for k in range(whole.shape[1] - 1)]
    return np.concatenate(pieces, 1)


def _sampled(frames: Frames, places: Float[np.ndarray, "frames places 2"]) -> Float[np.ndarray, "frames places c"]:
    """What frames show at places, in between pixels."""
    maps = (places - 0.5).astype(np.float32)
    seen = [
        cv2.remap(frame, at[None, :, 0], at[None, :, 1], cv2.INTER_LINEAR)
        for frame, at in zip(frames, maps, strict=True)
    ]
    return np.stack(seen).reshape(*places.shape[:2], -1)


def _distance(places: np.ndarray, whole: Outline) -> Float[np.ndarray, "frames places"]:
    """From places to the line through the points of an outline."""
    distances = []
    for k in range(whole.shape[1] - 1):
        start, along = whole[:, k : k + 1], whole[:, k + 1 : k + 2] - whole[:, k : k + 1]
        share = ((places - start) * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-9)
        nearest = start + np.clip(share, 0, 1)[..., None] * along
        distances.append(np.linalg.norm(places - nearest, axis=-1))
    return np.min(distances, 0)
