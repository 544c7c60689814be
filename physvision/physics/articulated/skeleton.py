"""Rods between the joints of bodies without shapes, so that every mechanism can be looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from physvision.core import Capsule, Placed, Sphere
from physvision.core.visuals import Look

RADIUS = 0.04  # of a rod, in mean lengths of the rods


def skeleton(parents: NDArray, poses: NDArray[np.float64], centers: NDArray[np.float64]) -> list[tuple[Placed, Look]]:
    """Make a rod from each body to each of its children, and to the center of mass where it has none.

    Args:
        parents: Parent of each body; −1 for the world.
        poses: Frames of the bodies in a reference pose, (bodies, 4, 4).
        centers: Centers of mass in the frames of the bodies, m, (bodies, 3).
    """
    ends: list[tuple[int, NDArray]] = []
    for body, pose in enumerate(poses):
        children = np.flatnonzero(parents == body)
        positions = [pose[:3, :3].T @ (poses[child, :3, 3] - pose[:3, 3]) for child in children]
        ends += [(body, place) for place in (positions or [centers[body]])]
    lengths = [float(np.linalg.norm(end)) for _, end in ends]
    longer = [length for length in lengths if length > 1e-6]
    radius = RADIUS * float(np.mean(longer)) if longer else RADIUS
    rods = [(body, end, length) for (body, end), length in zip(ends, lengths, strict=True) if length > 1e-6]
    shapes = [Placed(Capsule(radius, length), body, _along(end)) for body, end, length in rods]
    shapes += [Placed(Sphere(1.4 * radius), body) for body in range(len(poses))]
    return [(shape, Look(Placed.color)) for shape in shapes]


def _along(end: NDArray) -> tuple[tuple[float, ...], ...]:
    """Pose of a rod from the origin to a point, along its z."""
    z = end / np.linalg.norm(end)
    x = np.cross(z, [0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0])
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.stack([x, np.cross(z, x), z], 1), 0.5 * end
    return tuple(map(tuple, pose.tolist()))
