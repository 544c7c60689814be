"""Turning of balls that roll without slipping, as quaternions (w, x, y, z).

The world has x to the right, y down and z into the table. A ball that moves by (dx, dy) along a straight line rests on
its lowest point, so it turns by the rotation vector (dy, −dx, 0) / radius.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def rotation_of_path(
    displacements: Float[np.ndarray, "*batch 2"], radii: Float[np.ndarray, "*batch"]
) -> Float[np.ndarray, "*batch 4"]:
    """Rotation of balls that roll along straight paths.

    Args:
        displacements: Vectors from the starts to the ends of the paths.
        radii: Radii of the balls, in the same unit.
    """
    half_angle = 0.5 * np.linalg.norm(displacements, axis=-1) / radii
    # sinc(x) is sin(πx) / (πx), so that the axis of no displacement at all needs no case of its own.
    scale = 0.5 * np.sinc(half_angle / np.pi) / radii
    zero = np.zeros_like(half_angle)
    return np.stack([np.cos(half_angle), scale * displacements[..., 1], -scale * displacements[..., 0], zero], -1)


def turn(
    orientations: Float[np.ndarray, "*batch 4"], rotations: Float[np.ndarray, "*batch 4"]
) -> Float[np.ndarray, "*batch 4"]:
    """Apply rotations, given in the world's axes, to orientations: the product rotation · orientation."""
    w, x, y, z = np.moveaxis(rotations, -1, 0)
    a, b, c, d = np.moveaxis(orientations, -1, 0)
    return np.stack(
        [
            w * a - x * b - y * c - z * d,
            w * b + x * a + y * d - z * c,
            w * c - x * d + y * a + z * b,
            w * d + x * c - y * b + z * a,
        ],
        -1,
    )


def rotation_matrices(quaternions: Float[np.ndarray, "*batch 4"]) -> Float[np.ndarray, "*batch 3 3"]:
    """Matrices that turn vectors as unit quaternions do."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def random_orientations(count: int, random: np.random.Generator) -> Float[np.ndarray, "count 4"]:
    """Quaternions of uniformly distributed orientations."""
    quaternions = random.standard_normal((count, 4))
    return quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
