"""Comparison of images with rendered objects: reprojection score, numbers of colored blobs, lines and discs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from physvision.core import Scene, SceneObject
from physvision.prediction.settings import SETTINGS

Frames = Float[np.ndarray, "frames height width channels"]
Outline = Float[np.ndarray, "frames points 2"]
PerObject = Float[np.ndarray, "frames objects"]


@dataclass(frozen=True)
class AppearanceCheck:
    """Comparison of frames with the objects that are rendered from their states.

    Attributes:
        objects: Objects with a color.
        frames: Frames from 0 to 1.
        outlines: Points of each object in the image, px.
    """

    objects: Sequence[SceneObject]
    frames: Frames
    outlines: Sequence[Outline]

    def line_colors(self) -> list[np.ndarray]:
        """Scale the objects' colors to the brightness in the middle of their lines, since blur dims thin lines."""
        colors, margin = self._object_colors(), SETTINGS.line_samples // 4
        gains = [
            np.median(_sample(self.frames, self._line_points(outline)[:, margin:-margin]) @ color) / (color @ color)
            for outline, color in zip(self.outlines, colors, strict=True)
        ]
        return [np.clip(np.median(gains), 0.7, 1.1) * color for color in colors]

    def color_match_along_lines(self, colors: Sequence[np.ndarray]) -> PerObject:
        """Fraction of each line where the image has its color, or that of an object at the same position."""
        width = SETTINGS.line_width * max(self.frames.shape[1:3])
        fractions = []
        for outline in self.outlines:
            points = self._line_points(outline)
            pixels = _sample(self.frames, points)
            matches = [
                (_distance_to_line(points, crossing) < width) & self._matches(pixels, color)
                for crossing, color in zip(self.outlines, colors, strict=True)
            ]
            fractions.append(np.any(matches, 0).mean(1))
        return np.stack(fractions, 1)

    def line_ends(self, colors: Sequence[np.ndarray]) -> PerObject:
        """End of the color of each object's last line, relative to the line's length; NaN where it is not visible."""
        ends, samples = [], SETTINGS.line_samples
        steps = np.arange(0.5, 1 + SETTINGS.line_extension, 0.5 / samples)
        for outline, color in zip(self.outlines, colors, strict=True):
            points = outline[:, -2:-1] + (outline[:, -1:] - outline[:, -2:-1]) * steps[:, None]
            matches = self._matches(_sample(self.frames, points), color)
            count = np.where(matches.all(1), len(steps), (~matches).argmax(1)) - 0.5
            ends.append(np.where(matches[:, 0], 0.5 + count * 0.5 / samples, np.nan))
        return np.stack(ends, 1)

    def surplus_foreground(self) -> Float[np.ndarray, " frames"]:
        """Fraction of the foreground that belongs to none of the objects' lines."""
        height, width = self.frames.shape[1:3]
        foreground = ~self._matches(self.frames, np.median(self.frames, (1, 2), keepdims=True))
        line_width, fractions = round(2 * SETTINGS.line_margin * max(height, width)), []
        for index, mask in enumerate(foreground):
            canvas = np.zeros((height, width), np.uint8)
            for outline in self.outlines:
                line = np.rint(outline[index] * 16 - 8).astype(np.int32)
                cv2.polylines(canvas, [line], False, 1, line_width, cv2.LINE_8, 4)
            fractions.append(float((mask & (canvas == 0)).sum() / max(1, mask.sum())))
        return np.array(fractions)

    def disc_sizes(self) -> PerObject:
        """Radius of each disc by the area of its color, relative to the scene's.

        NaN where another disc or the border of the image is too close.
        """
        background = np.median(self.frames, (1, 2))
        height, width = self.frames.shape[1:3]
        centers = np.stack([outline[:, 0] for outline in self.outlines], 1)
        sizes = np.full(centers.shape[:2], np.nan)
        for number, color in enumerate(self._object_colors()):
            radius = self.objects[number].radius or 1.0
            margin = SETTINGS.ring_radius * radius
            distance = np.linalg.norm(centers - centers[:, number : number + 1], axis=-1)
            distance[:, number] = np.inf
            inside = (centers[:, number] > margin) & (centers[:, number] < [width - margin, height - margin])
            for index in np.flatnonzero(inside.all(1) & (distance.min(1) > margin + radius)):
                x, y = centers[index, number]
                rows, columns = np.ogrid[int(y - margin) : int(y + margin) + 1, int(x - margin) : int(x + margin) + 1]
                radial = np.hypot(columns + 0.5 - x, rows + 0.5 - y) / radius
                contrast = np.linalg.norm(color - background[index])
                error = np.linalg.norm(self.frames[index, rows, columns] - color, axis=-1)
                coverage = np.clip(1 - error / contrast, 0, 1)
                disc = radial < SETTINGS.disc_radius
                offset = coverage[(radial > SETTINGS.disc_radius) & (radial < SETTINGS.ring_radius)].mean()
                area = ((coverage - offset) / max(1 - offset, 1e-3))[disc].sum()
                sizes[index, number] = np.sqrt(max(area, 0.0) / np.pi) / radius
        return sizes

    def cut_off(self) -> PerObject:
        """Flag the discs that the border of the image cuts off, by the length of the border that has their color.

        A disc whose center is three quarters of its radius inside has a chord of 1.3 radii on the border.
        """
        background = np.median(self.frames, (1, 2))[:, None]
        edges = [self.frames[:, 0], self.frames[:, -1], self.frames[:, :, 0], self.frames[:, :, -1]]
        flags = []
        for item, color in zip(self.objects, self._object_colors(), strict=True):
            max_error = 0.5 * np.linalg.norm(color - background, axis=-1)
            chords = [(np.linalg.norm(edge - color, axis=-1) < max_error).sum(1) for edge in edges]
            flags.append(np.max(chords, 0) > 1.3 * (item.radius or 1.0))
        return np.stack(flags, 1).astype(float)

    def _object_colors(self) -> list[np.ndarray]:
        """Colors of the objects from 0 to 1, in as many channels as the frames have."""
        channels = self.frames.shape[-1]
        return [np.array((item.color or (0.0,) * 3)[:channels], np.float32) for item in self.objects]

    def _matches(self, pixels: np.ndarray, color: np.ndarray) -> np.ndarray:
        return np.abs(pixels - color).mean(-1) < SETTINGS.max_color_error

    def _line_points(self, outline: Outline) -> Float[np.ndarray, "frames samples 2"]:
        """Sample points along a polyline, at equal steps of each segment."""
        fractions = (np.arange(SETTINGS.line_samples) + 0.5)[:, None] / SETTINGS.line_samples
        starts, ends = outline[:, :-1, None], outline[:, 1:, None]
        points = starts * (1 - fractions) + ends * fractions
        return points.reshape(len(outline), -1, 2)


def _sample(frames: Frames, points: Float[np.ndarray, "frames samples 2"]) -> Float[np.ndarray, "frames samples c"]:
    """Sample frames bilinearly at points, px."""
    maps = (points - 0.5).astype(np.float32)
    pairs = zip(frames, maps[:, None, :, 0], maps[:, None, :, 1], strict=True)
    samples = [cv2.remap(frame, x, y, cv2.INTER_LINEAR) for frame, x, y in pairs]
    return np.stack(samples).reshape(*points.shape[:2], -1)


def _distance_to_line(points: np.ndarray, outline: Outline) -> Float[np.ndarray, "frames samples"]:
    """Distance of points from a polyline, px."""
    distances = []
    for k in range(outline.shape[1] - 1):
        start, segment = outline[:, k : k + 1], outline[:, k + 1 : k + 2] - outline[:, k : k + 1]
        fraction = ((points - start) * segment).sum(-1) / np.maximum((segment**2).sum(-1), 1e-9)
        nearest = start + np.clip(fraction, 0, 1)[..., None] * segment
        distances.append(np.linalg.norm(points - nearest, axis=-1))
    return np.min(distances, 0)


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


def count_colored_objects(scene: Scene, frame: UInt8[np.ndarray, "height width 3"]) -> list[int]:
    """Count the blobs of each object's color in a frame, and at the end those of other colors."""
    colors = np.array([item.color for item in scene.objects])
    pixels = frame.astype(np.float32) / 255
    background = np.median(pixels.reshape(-1, 3), 0)
    distance = np.linalg.norm(pixels[..., None, :] - colors.astype(np.float32), axis=-1)
    min_areas = [np.pi * (item.radius or 1.0) ** 2 * SETTINGS.min_blob_area for item in scene.objects]
    nearest, is_similar = distance.argmin(-1), distance < SETTINGS.color_distance
    masks = [is_similar[..., index] & (nearest == index) for index in range(len(colors))]
    is_foreground = np.linalg.norm(pixels - background, axis=-1) > SETTINGS.background_distance
    masks.append(is_foreground & (distance.min(-1) > SETTINGS.background_distance))
    return [_count_blobs(mask, area) for mask, area in zip(masks, [*min_areas, min(min_areas)], strict=True)]


def _count_blobs(mask: np.ndarray, min_area: float) -> int:
    _, _, statistics, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    return int((statistics[1:, cv2.CC_STAT_AREA] >= min_area).sum())
