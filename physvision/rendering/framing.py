"""Placement of the camera: a direction that shows the motion, and a distance at which all that moves is visible.

The frames of films follow from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import UInt8
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from physvision.core import State
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.rendering.renderer import Renderer
from physvision.rendering.view import FIELD_OF_VIEW, View

DEFAULT_AZIMUTH, DEFAULT_ELEVATION = math.radians(-62.0), 0.26  # rad
GROUND_MARGIN = 0.02  # between the lowest point of a film and the ground below, in its height
TURN = 0.35  # by which a flat motion is seen from the side, rad
TOP_ELEVATION = 0.95  # of a motion in a horizontal plane, rad
FLAT = 0.04  # ratio of squared displacements below which a motion is flat
MARGIN = 1.12  # of the distance
SMOOTHING_S = 0.35  # standard deviation in time of the path of the camera
MAX_STATIC_SPREAD = 2.2  # of the whole motion in extents of one moment, up to which the camera stands still
MAX_ZOOM_OUT = 4.0  # largest distance in median distances: what flies off does not make all else small
NUM_PROBES, PROBE_SIZE = 16, 0.7  # random displacements that show what can move


@dataclass(frozen=True, eq=False)
class Framing:
    """Direction of the camera, and what it must keep in the picture.

    Attributes:
        movable: Frames (as `Renderer.frames` orders them) that can move and carry something to draw.
        radius: Bounding radius of what each of these carries, m.
        azimuth: Angle of the camera about z, rad.
        elevation: Angle of the camera above the horizontal, rad.
        y_down: If true, y points down in the picture of a flat world; None for a spatial one.
        size: Height and width of the picture, pixels.
    """

    movable: NDArray[np.int64]
    radius: NDArray[np.float64]
    azimuth: float
    elevation: float
    y_down: bool | None
    size: tuple[int, int]

    def view(self, target: NDArray, distance: float) -> View:
        """Return the camera that looks at a point from a distance; of a flat world, the picture's height in meters."""
        if self.y_down is None:
            return View.look_at(target, self.azimuth, self.elevation, distance, self.size)
        sign, (height, width) = (1.0 if self.y_down else -1.0), self.size
        rotation = np.diag([1.0, sign, sign])
        center, depth = (0.5 * (width - 1), 0.5 * (height - 1)), 4.0 * distance
        point = np.array([target[0], target[1], 0.0])
        return View(rotation, point - depth * rotation[2], height / distance, center, height, width, depth, True)

    def distance(self, points: NDArray, target: NDArray) -> float:
        """Return the smallest distance from which all points with their radii are visible.

        Args:
            points: Positions of the movable frames, m, (frames, 3).
            target: Point in the center of the picture, m.
        """
        finite = np.isfinite(points).all(1)
        if not finite.any():
            return 1.0
        offsets, radius = points[finite] - target, self.radius[finite]
        height, width = self.size
        if self.y_down is not None:
            wide, tall = ((np.abs(offsets[:, axis]) + radius).max() for axis in range(2))
            return 2.0 / 0.9 * max(float(tall), float(wide) * height / width, 1e-6)
        local = offsets @ self.view(np.zeros(3), 1.0).rotation.T
        slope = math.tan(0.5 * FIELD_OF_VIEW)
        across = (np.abs(local[:, 0]) + radius) / (slope * width / height) - local[:, 2]
        along = (np.abs(local[:, 1]) + radius) / slope - local[:, 2]
        nearest = (radius - local[:, 2]).max()
        return MARGIN * max(float(across.max()), float(along.max()), 1.2 * float(nearest), 1e-3)

    def middle(self, points: NDArray) -> NDArray[np.float64]:
        """Return the middle of the box about all points."""
        finite = np.isfinite(points).all(1)
        if not finite.any():
            return np.zeros(3)
        selection, radius = points[finite], self.radius[finite, None]
        return 0.5 * ((selection - radius).min(0) + (selection + radius).max(0))


@torch.no_grad()
def choose_framing(renderer: Renderer, state: State, size: tuple[int, int], properties: Overrides = None) -> Framing:
    """Find what can move and from which side its motion is seen best, by small random displacements.

    Args:
        renderer: Renderer of the engine.
        state: State of one world.
        size: Height and width of the picture, pixels.
        properties: Properties; the engine's own if None.
    """
    mechanics = renderer.mechanics
    still = state.q.double().expand(NUM_PROBES + 1, -1)
    noise = PROBE_SIZE * torch.randn(NUM_PROBES + 1, mechanics.nv, generator=torch.Generator().manual_seed(0)).double()
    noise[0] = 0.0
    moved = State(mechanics.integrate(still, noise), torch.zeros_like(noise))
    poses, sizes = renderer.frames(moved, properties)
    scene = renderer.draw_list(sizes)
    casts = scene.casts
    change = (poses[1:] - poses[:1])[:, casts]
    displacements = change[..., :3, 3]
    turns = np.abs(change[..., :3, :3]).max((2, 3), initial=0.0)
    shift = np.linalg.norm(displacements, axis=2).max(0) + turns.max(0) * scene.radius[casts]
    movable = shift > 1e-9 * max(1.0, float(np.abs(poses[:, casts, :3, 3]).max(initial=0.0)))
    rows = casts[movable] if movable.any() else casts
    y_down = _points_down(renderer) if renderer.planar else None
    azimuth, elevation = _direction(displacements[:, movable].reshape(-1, 3))
    return Framing(rows, scene.radius[rows], azimuth, elevation, y_down, size)


def film_views(framing: Framing, paths: NDArray, dt: float) -> list[View]:
    """Return the camera of every frame of a film: at rest if it can see everything, otherwise following smoothly.

    Args:
        framing: Direction of the camera.
        paths: Positions of the movable frames of the whole motion, m, (times, frames, 3).
        dt: Time between frames, s.
    """
    moving = np.nanmax(np.abs(paths - paths[:1]), axis=(0, 2), initial=0.0) > 1e-6
    if moving.any():
        framing, paths = replace(framing, radius=framing.radius[moving]), paths[:, moving]
    middles = np.array([framing.middle(points) for points in paths])
    apart = [framing.distance(points, middle) for points, middle in zip(paths, middles, strict=True)]
    center = 0.5 * (middles.min(0) + middles.max(0))
    static = max(framing.distance(points, center) for points in paths)
    if static <= MAX_STATIC_SPREAD * max(apart):
        targets = np.repeat(center[None], len(paths), 0)
    else:
        targets = _smooth(middles, SMOOTHING_S / dt)
    distances = np.array([framing.distance(points, target) for points, target in zip(paths, targets, strict=True)])
    distance = float(min(distances.max(), MAX_ZOOM_OUT * np.median(distances)))
    return [framing.view(target, distance) for target in targets]


def _smooth(path: NDArray, deviation: float) -> NDArray[np.float64]:
    """Smooth a path by a Gaussian, and keep its ends by a reflection about them.

    Args:
        path: Points, (times, 3).
        deviation: Standard deviation, frames.
    """
    count = min(len(path) - 1, math.ceil(4 * deviation))
    padded = np.pad(path, ((count, count), (0, 0)), "reflect", reflect_type="odd")
    smooth = gaussian_filter1d(padded, deviation, axis=0, mode="nearest")
    return smooth[count : count + len(path)]


class FollowingCamera:
    """Camera that follows a motion as it happens, without knowing what comes.

    Attributes:
        framing: Direction of the camera.
        dead_zone: Part of the distance by which the middle of the motion may be off before the camera must move.
    """

    def __init__(self, framing: Framing, dead_zone: float = 0.12) -> None:
        self.framing, self.dead_zone = framing, dead_zone
        self._target: NDArray | None = None
        self._distance = 0.0

    def reset(self) -> None:
        """Forget the motion so far."""
        self._target = None

    def update(self, points: NDArray, dt: float) -> View:
        """Return the camera of the next frame.

        Args:
            points: Positions of the movable frames, m, (frames, 3).
            dt: Time since the last frame, s.
        """
        middle = self.framing.middle(points)
        if self._target is None:
            self._target, self._distance = middle, 1.25 * self.framing.distance(points, middle)
        fraction = 1.0 - math.exp(-dt / SMOOTHING_S)
        self._target = self._target + fraction * (middle - self._target)
        off, limit = float(np.linalg.norm(middle - self._target)), self.dead_zone * self._distance
        if off > limit:
            self._target = middle + (self._target - middle) * (limit / off)
        needed = self.framing.distance(points, self._target)
        if needed > self._distance:
            self._distance = needed
        return self.framing.view(self._target, self._distance)


def _points_down(renderer: Renderer) -> bool:
    gravity = dict(renderer.mechanics.properties.items()).get("gravity")
    return gravity is not None and bool(gravity.reshape(-1)[1] > 0)


def _direction(displacements: NDArray) -> tuple[float, float]:
    """Return azimuth and elevation from which displacements are seen best."""
    if not len(displacements):
        return DEFAULT_AZIMUTH, DEFAULT_ELEVATION
    covariance = displacements.T @ displacements
    values, vectors = np.linalg.eigh(covariance[:2, :2])
    if covariance[2, 2] < FLAT * values[1] and values[0] > FLAT * values[1]:
        return math.radians(-90.0), TOP_ELEVATION
    if values[0] > FLAT * max(values[1], covariance[2, 2]):
        return DEFAULT_AZIMUTH, DEFAULT_ELEVATION
    x, y = vectors[:, 0]
    # From the side of negative y, or of positive x: x or y points to the right.
    if y > 1e-6 or (abs(y) <= 1e-6 and x < 0):
        x, y = -x, -y
    return math.atan2(y, x) + TURN, DEFAULT_ELEVATION


def ground_below(renderer: Renderer, poses: NDArray, sizes: NDArray, margin: float) -> float:
    """Return a height below everything that is drawn at some moments, m.

    Args:
        renderer: Renderer of the engine.
        poses: Poses of everything in the scene, (moments, frames, 4, 4).
        sizes: Sizes of the shapes.
        margin: Distance between the lowest point and the ground, in extents of the scene.
    """
    scene = renderer.draw_list(sizes)
    heights, radius = poses[:, scene.casts, 2, 3], scene.radius[scene.casts]
    if not np.isfinite(heights).any():
        return 0.0
    low, high = float(np.nanmin(heights - radius)), float(np.nanmax(heights + radius))
    return low - margin * (high - low)


def film_frames(
    engine: Engine, states: State, dt: float, size: tuple[int, int], properties: Overrides = None
) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """Render states of one world that follow one another in time.

    Args:
        engine: Engine with mechanics.
        states: States of the world, a batch of them.
        dt: Time between them, s.
        size: Height and width of the frames, pixels.
        properties: Properties; the engine's own if None.
    """
    renderer = Renderer(engine)
    poses, sizes = renderer.frames(states, properties)
    if not renderer.planar:
        renderer.ground_height = ground_below(renderer, poses, sizes, GROUND_MARGIN)
    framing = choose_framing(renderer, State(states.q[:1], states.v[:1]), size, properties)
    views = film_views(framing, poses[:, framing.movable][..., :3, 3], dt)
    for moment, current in zip(poses, views, strict=True):
        yield renderer.render_frames(moment, sizes, current)
