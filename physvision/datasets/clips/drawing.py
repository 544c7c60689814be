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
        return _apply_homography(self.matrix, points)

    def unproject(self, pixels: np.ndarray) -> np.ndarray:
        """Points of the plane, m, that appear at pixels (…, 2)."""
        return _apply_homography(np.linalg.inv(self.matrix), pixels)


def _apply_homography(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    homogeneous = points @ matrix[:, :2].T + matrix[:, 2]
    return homogeneous[..., :2] / homogeneous[..., 2:]


def fit_view(
    points: np.ndarray, width: int, height: int, fill_fraction: float, roll: float, yaw: float, pitch: float
) -> Projection:
    """View that holds points in a fraction of the picture, from 2.5 picture widths away.

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
    rotation = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
    perspective = np.array(
        [
            [np.cos(yaw), 0, 0],
            [0, np.cos(pitch), 0],
            [np.sin(yaw) / (2.5 * width), np.sin(pitch) / (2.5 * width), 1],
        ]
    )
    scaling = np.array([[scale, 0, -scale * middle[0]], [0, -scale, scale * middle[1]], [0, 0, 1]])
    translation = np.array([[1, 0, width / 2], [0, 1, height / 2], [0, 0, 1]])
    return Projection(translation @ perspective @ rotation @ scaling, float(scale))


@dataclass(frozen=True)
class Exposure:
    """Exposure of a frame by a rolling shutter.

    Attributes:
        duration: Exposure time of every row, s.
        readout: Time from the start of the first row's exposure to that of the last row's, s.
    """

    duration: float
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
        self._hand = _hand(motion) if motion.held_body is not None else None

    def frame(self, time: float, shift: np.ndarray) -> np.ndarray:
        """Frame in levels of 0 to 255 whose first row opens at `time`; `shift` is the camera's shake, pixels."""
        width, height = self.size
        translation = np.array([[1, 0, shift[0]], [0, 1, shift[1]]])
        picture = cv2.warpAffine(
            self.background, translation, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
        )
        direction, darkness = self._shadow
        if darkness > 0.05 and not self.motion.from_above:
            for index, body in enumerate(self.motion.bodies):
                offset = direction * min(body.size) / 2
                part, blur = self._body(index, offset), 0.25 * body.size[1]
                self._paint(picture, time, shift, part, None, darkness=darkness, blur=blur)
        for line in self.motion.lines:
            self._draw_line(picture, time, shift, line)
        for body, path in self._hand or ():
            self._paint(picture, time, shift, self._posed(body, path), body.color)
        for index, body in enumerate(self.motion.bodies):
            self._paint(picture, time, shift, self._body(index), body.color, mark=body.mark)
        return picture

    def _body(self, index: int, offset: np.ndarray | None = None) -> _Part:
        body = self.motion.bodies[index]
        return self._posed(body, lambda times: self.motion.poses(times)[:, index], offset)

    def _posed(self, body: Body, path: Callable, offset: np.ndarray | None = None) -> _Part:
        displacement = np.zeros(3) if offset is None else np.array([offset[0], -offset[1], 0])

        def distance(points, times):
            pose = path(times) + displacement
            local = points - pose[:, None, :2]
            c, s = np.cos(pose[:, None, 2]), np.sin(pose[:, None, 2])
            x, y = c * local[..., 0] + s * local[..., 1], -s * local[..., 0] + c * local[..., 1]
            return _signed_distance(body, x, y), x

        def corners(times):
            half = max(body.size) / (2 if body.shape != "box" else 1.4)
            pose = path(times)[:, :2] + displacement[:2]
            return np.concatenate([pose - half, pose + half])

        return _Part(distance, corners)

    def _draw_line(self, picture: np.ndarray, time: float, shift: np.ndarray, line: Line) -> None:
        """Draw a line as it is when the row that shows its end is read, blurred by four exposures."""
        time += self.exposure.readout * self._row(time, line.end) / picture.shape[0]
        times = time + self.exposure.duration * (np.arange(4) + 0.5) / 4
        poses = self.motion.poses(times)[..., :2]
        start = poses[:, line.start] if isinstance(line.start, int) else np.tile(line.start, (len(times), 1))
        pixels = self.view.project(_line_points(start, poses[:, line.end], line)) + shift
        width = line.width * self.view.scale
        low, high = pixels.reshape(-1, 2).min(0) - width - 2, pixels.reshape(-1, 2).max(0) + width + 2
        left, top = np.floor(low).astype(int).clip(0)
        right, bottom = np.ceil(high).astype(int).clip(0)
        patch = picture[top:bottom, left:right]
        coverage = np.zeros(patch.shape[:2], np.float32)
        for sample in range(len(times)):
            mask = np.zeros(patch.shape[:2], np.uint8)
            corners = np.round(16 * (pixels[:, sample] - [left + 0.5, top + 0.5])).astype(np.int32)
            cv2.polylines(mask, [corners[:, None]], False, 255, max(1, round(width)), cv2.LINE_AA, 4)
            coverage += mask / (255 * len(times))
        coverage *= min(1.0, width)
        patch *= 1 - coverage[..., None]
        patch += 255 * np.asarray(line.color, np.float32) * coverage[..., None]

    def _row(self, time: float, body: int) -> float:
        position = self.view.project(self.motion.poses(np.array([time]))[:, body, :2])
        return float(np.clip(position[0, 1], 0, self.size[1]))

    def _paint(self, picture, time, shift, part, color, *, darkness=0.0, mark=0.0, blur=0.0) -> None:
        """Blend a part into the picture, in its color or only darker, averaged over the exposure of each row."""
        height, width = picture.shape[:2]
        last = time + self.exposure.readout + self.exposure.duration
        box = self.view.project(part.corners(np.linspace(time, last, 5))) + shift
        travel = np.ptp(box[: len(box) // 2], axis=0).max() * self.exposure.duration / (last - time)
        count = int(np.clip(np.ceil(travel), 1, 16))
        margin = 2 + blur * self.view.scale
        left, top = np.floor(box.min(0) - margin).astype(int).clip(0)
        right, bottom = np.ceil(box.max(0) + margin).astype(int)
        right, bottom = min(right, width), min(bottom, height)
        if left >= right or top >= bottom:
            return
        rows, columns = np.arange(top, bottom) + 0.5, np.arange(left, right) + 0.5
        pixels = np.stack(np.meshgrid(columns, rows), -1) - shift
        points = self.view.unproject(pixels)
        coverage, marked_coverage = np.zeros(points.shape[:2]), np.zeros(points.shape[:2])
        for sample in range(count):
            times = time + self.exposure.readout * rows / height + self.exposure.duration * (sample + 0.5) / count
            distance, along = part.distance(points, times)
            weight = np.clip(0.5 - distance / max(1 / self.view.scale, blur), 0, 1) / count
            coverage += weight
            marked_coverage += weight * np.clip(0.5 + along * self.view.scale, 0, 1)
        patch = picture[top:bottom, left:right]
        if color is None:
            patch *= 1 - darkness * coverage[..., None]
        else:
            patch *= 1 - coverage[..., None]
            patch += 255 * np.asarray(color) * (coverage - mark * marked_coverage)[..., None]


@dataclass(frozen=True)
class _Part:
    """Part of a frame to paint.

    Attributes:
        distance: Function from points (rows, columns, 2) and a time for each row to signed distances from the part's
            edge, negative inside, and to coordinates along the part; m.
        corners: Function from times to corners of a box around the part, m.
    """

    distance: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    corners: Callable[[np.ndarray], np.ndarray]


def _signed_distance(body: Body, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    a, b = body.size[0] / 2, body.size[1] / 2
    if body.shape == "disc":
        return np.hypot(x, y) - a
    if body.shape == "box":
        return np.maximum(abs(x) - a, abs(y) - b)
    if body.shape == "rod":
        return np.hypot(np.maximum(abs(x) - a + b, 0), y) - b
    # An ellipse, to first order at its edge.
    level = np.hypot(x / a, y / b)
    return (level - 1) * level / np.maximum(np.hypot(x / a**2, y / b**2), 1e-9)


def _line_points(start: np.ndarray, end: np.ndarray, line: Line) -> np.ndarray:
    """Points along a line: its ends, or the zigzag of a spring."""
    if not line.coils:
        return np.stack([start, end])
    fractions = np.linspace(0, 1, 2 * line.coils + 2)
    deflections = np.where(np.arange(len(fractions)) % 2, 1.0, -1.0) * 3 * line.width
    deflections[[0, -1]] = 0.0
    span = end - start
    normal = np.stack([-span[:, 1], span[:, 0]], 1) / np.linalg.norm(span, axis=1, keepdims=True)
    return start + fractions[:, None, None] * span + deflections[:, None, None] * normal


def _hand(motion: Motion):
    """Forearm and hand that hold a body until its release, with their paths."""
    size = 2.6 * motion.bodies[motion.held_body or 0].size[0]
    final = motion.poses(np.array([motion.release]))[0, motion.held_body, :2]
    before = motion.poses(np.array([motion.release - 1e-3]))[0, motion.held_body, :2]
    velocity = (final - before) / 1e-3

    # The arm is out of the way of what flies up or falls down.
    angle = 0.0 if velocity[1] < 0.5 else np.pi / 2
    backward = np.array([-np.cos(angle), -np.sin(angle)]) * (-1 if velocity[0] < 0 else 1) ** (angle == 0.0)

    def path(offset):
        def pose(times):
            position = motion.poses(np.minimum(times, motion.release))[:, motion.held_body, :2]
            elapsed = np.maximum(times - motion.release, 0)[:, None]
            # After the release the hand slows down within 0.04 s.
            position = position + velocity * 0.04 * (1 - np.exp(-elapsed / 0.04)) + offset
            return np.concatenate([position, np.full((len(times), 1), angle)], 1)

        return pose

    palm = Body("leaf", (size, 0.8 * size), _SKIN)
    arm = Body("rod", (5 * size, 0.5 * size), _SLEEVE)
    return (arm, path(3.0 * size * backward)), (palm, path(0.5 * size * backward))


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
        corner, extent = random.uniform(0, 1, 2) * size, random.uniform(0.03, 0.25, 2) * size
        color = base * random.uniform(0.7, 1.15)
        start, end = tuple(corner.astype(int).tolist()), tuple((corner + extent).astype(int).tolist())
        cv2.rectangle(picture, start, end, tuple((255 * color).tolist()), -1)
    ground = 255 * np.clip(base * random.uniform(0.5, 0.8), 0, 1)
    for segment in motion.surfaces:
        ends = view.project(np.array(segment))
        direction = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        depth = np.array([-direction[1], direction[0]]) * (1 if direction[0] > 0 else -1) * random.uniform(8, 60)
        outline = np.stack([ends[0], ends[1], ends[1] + depth, ends[0] + depth])
        cv2.fillConvexPoly(picture, np.round(16 * (outline - 0.5)).astype(np.int32), tuple(ground.tolist()), 16, 4)
    return np.clip(picture, 0, 255).astype(np.float32)


def _base_color(motion: Motion, random: np.random.Generator) -> np.ndarray:
    """Color of a background from which every body stands out."""
    while True:
        gray = random.uniform(0.08, 0.25) if random.random() < 0.25 else random.uniform(0.45, 0.9)
        base = np.clip(gray + random.normal(0, 0.04, 3), 0.02, 0.95)
        if all(np.linalg.norm(base - body.color) > 0.3 for body in motion.bodies):
            return base
