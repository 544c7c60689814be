"""Frames of a motion: bodies, lines, shadows and a hand before a background, with blur and rolling shutter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from physvision.datasets.clips.motion import Body, Line, Motion

_SKIN, _SLEEVE = (0.80, 0.58, 0.46), (0.72, 0.52, 0.41)


@dataclass(frozen=True)
class Projection:
    """Projection of the plane of motion into the picture.

    Attributes:
        matrix: Homography from x, y in meters to pixels from the corner of the picture, y down.
        scale: Pixels per meter in the middle of the picture.
    """

    matrix: np.ndarray
    scale: float

    def project(self, points: np.ndarray) -> np.ndarray:
        """Pixels of points (…, 2) of the plane, m."""
        return _mapped(self.matrix, points)

    def back(self, pixels: np.ndarray) -> np.ndarray:
        """Points of the plane, m, that appear at pixels (…, 2)."""
        return _mapped(np.linalg.inv(self.matrix), pixels)


def _mapped(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    whole = points @ matrix[:, :2].T + matrix[:, 2]
    return whole[..., :2] / whole[..., 2:]


def view(
    points: np.ndarray, width: int, height: int, fill_fraction: float, roll: float, yaw: float, pitch: float
) -> tuple[Projection, float]:
    """View that holds points in a fraction of the picture, from 2.5 picture widths away, and its scale.

    Args:
        points: Points that must be visible, (n, 2), m.
        width: Width of the picture, pixels.
        height: Height of the picture, pixels.
        fill_fraction: Fraction of the picture that they fill.
        roll: Rotation of the camera about its line of sight, rad.
        yaw: Rotation of the camera to the side against the normal of the plane, rad.
        pitch: Rotation of the camera up or down against the normal of the plane, rad.
    """
    low, high = points.min(0), points.max(0)
    span = np.maximum(high - low, 1e-3)
    scale = fill_fraction * min(width / span[0], height / span[1])
    middle = (low + high) / 2
    turned = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
    tilted = np.array(
        [
            [np.cos(yaw), 0, 0],
            [0, np.cos(pitch), 0],
            [np.sin(yaw) / (2.5 * width), np.sin(pitch) / (2.5 * width), 1],
        ]
    )
    flat = np.array([[scale, 0, -scale * middle[0]], [0, -scale, scale * middle[1]], [0, 0, 1]])
    shift = np.array([[1, 0, width / 2], [0, 1, height / 2], [0, 0, 1]])
    return Projection(shift @ tilted @ turned @ flat, float(scale)), float(scale)


@dataclass(frozen=True)
class Exposure:
    """Exposure of a frame: every row is open for `open` seconds, the last one `readout` seconds after the first."""

    open: float
    readout: float


class Painter:
    """Painter of the frames of a motion; the background is painted once."""

    def __init__(
        self, motion: Motion, view: Projection, size: tuple[int, int], exposure: Exposure, random: np.random.Generator
    ) -> None:
        """Choose the background and its objects at random; `size` is width and height."""
        self.motion, self.view, self.size, self.exposure = motion, view, size, exposure
        self.background = _background(motion, view, size, random)
        self._shadow = random.uniform(-1, 1, 2) * [3.0, 0.5] + [0, 2.0], random.uniform(0, 0.3)
        self._hand = _hand(motion) if motion.hand is not None else None

    def frame(self, time: float, shift: np.ndarray) -> np.ndarray:
        """Frame in levels of 0 to 255 whose first row opens at `time`; `shift` is the camera's shake, pixels."""
        width, height = self.size
        moved = np.array([[1, 0, shift[0]], [0, 1, shift[1]]])
        picture = cv2.warpAffine(
            self.background, moved, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
        )
        offset, darkness = self._shadow
        if darkness > 0.05 and not self.motion.above:
            for index, body in enumerate(self.motion.bodies):
                away = offset * min(body.size) / 2
                self._paint(picture, time, shift, self._body(index, away), None, darkness, soft=0.25 * body.size[1])
        for line in self.motion.lines:
            self._draw_line(picture, time, shift, line)
        for body, path in self._hand or ():
            self._paint(picture, time, shift, self._posed(body, path), body.color)
        for index, body in enumerate(self.motion.bodies):
            self._paint(picture, time, shift, self._body(index), body.color, mark=body.mark)
        return picture

    def _body(self, index: int, away: np.ndarray | None = None) -> _Part:
        body = self.motion.bodies[index]
        return self._posed(body, lambda times: self.motion.poses(times)[:, index], away)

    def _posed(self, body: Body, path: Callable, away: np.ndarray | None = None) -> _Part:
        nudge = np.zeros(3) if away is None else np.array([away[0], -away[1], 0])

        def distance(points, times):
            pose = path(times) + nudge
            local = points - pose[:, None, :2]
            c, s = np.cos(pose[:, None, 2]), np.sin(pose[:, None, 2])
            x, y = c * local[..., 0] + s * local[..., 1], -s * local[..., 0] + c * local[..., 1]
            return _outside(body, x, y), x

        def corners(times):
            half = max(body.size) / (2 if body.shape != "box" else 1.4)
            pose = path(times)[:, :2] + nudge[:2]
            return np.concatenate([pose - half, pose + half])

        return _Part(distance, corners)

    def _draw_line(self, picture: np.ndarray, time: float, shift: np.ndarray, line: Line) -> None:
        """Draw a line as it is when the row that shows its end is read, blurred by four exposures."""
        time += self.exposure.readout * self._row(time, line.end) / picture.shape[0]
        times = time + self.exposure.open * (np.arange(4) + 0.5) / 4
        poses = self.motion.poses(times)[..., :2]
        start = poses[:, line.start] if isinstance(line.start, int) else np.tile(line.start, (len(times), 1))
        knots = self.view.project(_knots(start, poses[:, line.end], line)) + shift
        width = line.width * self.view.scale
        low, high = (knots.reshape(-1, 2).min(0) - width - 2, knots.reshape(-1, 2).max(0) + width + 2)
        left, top = np.floor(low).astype(int).clip(0)
        right, bottom = np.ceil(high).astype(int).clip(0)
        piece = picture[top:bottom, left:right]
        covered = np.zeros(piece.shape[:2], np.float32)
        for sample in range(len(times)):
            mask = np.zeros(piece.shape[:2], np.uint8)
            points = np.round(16 * (knots[:, sample] - [left + 0.5, top + 0.5])).astype(np.int32)
            cv2.polylines(mask, [points[:, None]], False, 255, max(1, round(width)), cv2.LINE_AA, 4)
            covered += mask / (255 * len(times))
        covered *= min(1.0, width)
        piece *= 1 - covered[..., None]
        piece += 255 * np.asarray(line.color, np.float32) * covered[..., None]

    def _row(self, time: float, body: int) -> float:
        place = self.view.project(self.motion.poses(np.array([time]))[:, body, :2])
        return float(np.clip(place[0, 1], 0, self.size[1]))

    def _paint(self, picture, time, shift, part, color, darkness=0.0, mark=0.0, soft=0.0) -> None:
        """Blend a part into the picture, in its color or only darker, averaged over the exposure of each row."""
        height, width = picture.shape[:2]
        last = time + self.exposure.readout + self.exposure.open
        box = self.view.project(part.corners(np.linspace(time, last, 5))) + shift
        travel = np.ptp(box[: len(box) // 2], axis=0).max() * self.exposure.open / (last - time)
        count = int(np.clip(np.ceil(travel), 1, 16))
        margin = 2 + soft * self.view.scale
        left, top = np.floor(box.min(0) - margin).astype(int).clip(0)
        right, bottom = np.ceil(box.max(0) + margin).astype(int)
        right, bottom = min(right, width), min(bottom, height)
        if left >= right or top >= bottom:
            return
        rows, columns = np.arange(top, bottom) + 0.5, np.arange(left, right) + 0.5
        pixels = np.stack(np.meshgrid(columns, rows), -1) - shift
        points = self.view.back(pixels)
        covered = np.zeros(points.shape[:2])
        darkened = np.zeros(points.shape[:2])
        for sample in range(count):
            times = time + self.exposure.readout * rows / height + self.exposure.open * (sample + 0.5) / count
            outside, across = part.distance(points, times)
            weight = np.clip(0.5 - outside / max(1 / self.view.scale, soft), 0, 1) / count
            covered += weight
            darkened += weight * np.clip(0.5 + across * self.view.scale, 0, 1)
        piece = picture[top:bottom, left:right]
        if color is None:
            piece *= 1 - darkness * covered[..., None]
        else:
            piece *= 1 - covered[..., None]
            piece += 255 * np.asarray(color) * (covered - mark * darkened)[..., None]


@dataclass(frozen=True)
class _Part:
    """Part to paint: distance to its edge (m, negative inside) at points (rows, columns, 2) and a time for each row."""

    distance: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    corners: Callable[[np.ndarray], np.ndarray]


def _outside(body: Body, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    long, wide = body.size[0] / 2, body.size[1] / 2
    if body.shape == "disc":
        return np.hypot(x, y) - long
    if body.shape == "box":
        return np.maximum(abs(x) - long, abs(y) - wide)
    if body.shape == "rod":
        return np.hypot(np.maximum(abs(x) - long + wide, 0), y) - wide
    # An ellipse, to first order at its edge.
    level = np.hypot(x / long, y / wide)
    return (level - 1) * level / np.maximum(np.hypot(x / long**2, y / wide**2), 1e-9)


def _knots(start: np.ndarray, end: np.ndarray, line: Line) -> np.ndarray:
    """Points along a line: its ends, or the zigzag of a spring."""
    if not line.coils:
        return np.stack([start, end])
    fractions = np.linspace(0, 1, 2 * line.coils + 2)
    aside = np.where(np.arange(len(fractions)) % 2, 1.0, -1.0) * 3 * line.width
    aside[[0, -1]] = 0.0
    along = end - start
    normal = np.stack([-along[:, 1], along[:, 0]], 1) / np.linalg.norm(along, axis=1, keepdims=True)
    return start + fractions[:, None, None] * along + aside[:, None, None] * normal


def _hand(motion: Motion):
    """Hand and forearm that hold a body until its release, and stay behind."""
    held = motion.bodies[motion.hand or 0]
    size = 2.6 * held.size[0]
    final = motion.poses(np.array([motion.begin]))[0, motion.hand, :2]
    before = motion.poses(np.array([motion.begin - 1e-3]))[0, motion.hand, :2]
    velocity = (final - before) / 1e-3

    # The arm is out of the way of what flies up or falls down.
    turn = 0.0 if velocity[1] < 0.5 else np.pi / 2
    back = np.array([-np.cos(turn), -np.sin(turn)]) * (-1 if velocity[0] < 0 else 1) ** (turn == 0.0)

    def path(offset):
        def pose(times):
            place = motion.poses(np.minimum(times, motion.begin))[:, motion.hand, :2]
            after = np.maximum(times - motion.begin, 0)[:, None]
            place = place + velocity * 0.04 * (1 - np.exp(-after / 0.04)) + offset
            return np.concatenate([place, np.full((len(times), 1), turn)], 1)

        return pose

    away = 0.5 * size
    palm = Body("leaf", (size, 0.8 * size), _SKIN)
    arm = Body("rod", (5 * size, 0.5 * size), _SLEEVE)
    return (arm, path(back * (away + 2.5 * size))), (palm, path(back * away))


def _background(motion: Motion, view: Projection, size: tuple[int, int], random: np.random.Generator) -> np.ndarray:
    """Wall or table: an even color, uneven light, a fine texture, a few boxes and the ground."""
    width, height = size
    base = _base_color(motion, random)
    light = cv2.resize(random.normal(0, 1, (3, 4)).astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)
    fine = cv2.GaussianBlur(random.normal(0, 1, (height, width)).astype(np.float32), (0, 0), 1.2)
    coarse = cv2.GaussianBlur(random.normal(0, 1, (height, width)).astype(np.float32), (0, 0), 6)
    texture = random.uniform(0, 10) * fine / fine.std() + random.uniform(0, 6) * coarse / coarse.std()
    picture = 255 * base * (1 + 0.05 * light[..., None]) + texture[..., None]
    for _ in range(random.integers(0, 5)):
        corner, reach = random.uniform(0, 1, 2) * size, random.uniform(0.03, 0.25, 2) * size
        gray = base * random.uniform(0.7, 1.15)
        start, end = tuple(corner.astype(int).tolist()), tuple((corner + reach).astype(int).tolist())
        cv2.rectangle(picture, start, end, tuple((255 * gray).tolist()), -1)
    ground = 255 * np.clip(base * random.uniform(0.5, 0.8), 0, 1)
    for segment in motion.surfaces:
        ends = view.project(np.array(segment))
        along = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        below = np.array([-along[1], along[0]]) * (1 if along[0] > 0 else -1) * random.uniform(8, 60)
        outline = np.stack([ends[0], ends[1], ends[1] + below, ends[0] + below])
        cv2.fillConvexPoly(picture, np.round(16 * (outline - 0.5)).astype(np.int32), tuple(ground.tolist()), 16, 4)
    return np.clip(picture, 0, 255).astype(np.float32)


def _base_color(motion: Motion, random: np.random.Generator) -> np.ndarray:
    """Color of a background from which every body stands out."""
    while True:
        gray = random.uniform(0.08, 0.25) if random.random() < 0.25 else random.uniform(0.45, 0.9)
        base = np.clip(gray + random.normal(0, 0.04, 3), 0.02, 0.95)
        if all(np.linalg.norm(base - body.color) > 0.3 for body in motion.bodies):
            return base
