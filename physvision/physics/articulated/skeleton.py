"""Rods between the joints of bodies without shapes, so that every mechanism can be looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from physvision.core import Capsule, Placed, Sphere
from physvision.core.visuals import Look, Visuals
from physvision.physics.articulated.model.properties import TreeProperties

RADIUS = 0.04  # of a rod, in mean lengths of the rods
MIN_LENGTH = 1e-6  # of a rod, m


def shapeless_bodies(geometry: Sequence[Placed], visuals: Visuals, bodies: int) -> NDArray[np.bool_]:
    """Mask of the bodies without a shape or surface: of all of them where nothing that moves is drawn."""
    rows = {row for row, placed in enumerate(geometry) if placed.body is not None}
    mask = np.ones(bodies, bool)
    if visuals.surfaces or visuals.shapes or rows - visuals.hidden:
        shapes = [*(geometry[row] for row in rows), *(placed for placed, _ in visuals.shapes)]
        mask[[placed.body for placed in shapes if placed.body is not None]] = False
        for surface in visuals.surfaces:
            mask[surface.bodies[surface.bodies >= 0]] = False
    return mask


def skeleton(
    parents: NDArray, poses: NDArray[np.float64], properties: TreeProperties, shapeless: NDArray[np.bool_]
) -> list[tuple[Placed, Look]]:
    """Make a rod from each body without shapes to each of its children, or to the center of mass if it has none.

    Balls mark the ends of rods, and all bodies of trees that have no shape at all. Massless ends of trees have no rod,
    massless trees nothing at all.

    Args:
        parents: Parent of each body, which comes before it; −1 for the world.
        poses: Frames of the bodies in a reference pose, (bodies, 4, 4).
        properties: Properties of the tree, in double precision.
        shapeless: If true, the body has no shape, (bodies,).
    """
    centers, mass = (leaf.cpu().numpy() for leaf in (properties.center_of_mass, properties.mass))
    children: list[list[int]] = [[] for _ in poses]
    roots = np.arange(len(poses))
    for body in np.flatnonzero(parents >= 0).tolist():
        children[parents[body]].append(body)
        roots[body] = roots[parents[body]]
    empty_trees = np.bincount(roots, ~shapeless, len(poses))[roots] == 0
    shapeless = shapeless & (np.bincount(roots, mass, len(poses))[roots] > 0)
    balls, rods = shapeless & empty_trees, list[tuple[int, NDArray]]()
    for body in np.flatnonzero(shapeless).tolist():
        pose = poses[body]
        ends = [pose[:3, :3].T @ (poses[child, :3, 3] - pose[:3, 3]) for child in children[body]]
        if not ends and mass[body] > 0:
            ends = [centers[body]]
        long_ends = [end for end in ends if np.linalg.norm(end) > MIN_LENGTH]
        rods += [(body, end) for end in long_ends]
        balls[[body, *children[body]] if long_ends else []] = True
    lengths = [float(np.linalg.norm(end)) for _, end in rods]
    radius = RADIUS * float(np.mean(lengths)) if lengths else RADIUS
    shapes = [
        Placed(Capsule(radius, length), body, _along(end)) for (body, end), length in zip(rods, lengths, strict=True)
    ]
    shapes += [Placed(Sphere(1.4 * radius), body) for body in np.flatnonzero(balls & shapeless).tolist()]
    return [(shape, Look(Placed.color)) for shape in shapes]


def _along(end: NDArray) -> tuple[tuple[float, ...], ...]:
    """Pose of a rod from the origin to a point, along its z."""
    z = end / np.linalg.norm(end)
    x = np.cross(z, [0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0])
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.stack([x, np.cross(z, x), z], 1), 0.5 * end
    return tuple(map(tuple, pose.tolist()))
