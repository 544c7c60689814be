"""Triangles of shapes, with normals and texture coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from physvision.core import Box, Capsule, Circle, Cylinder, Disc, Ellipsoid, Hull, Polygon, Rectangle, Shape, Sphere

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles of one shape in its own frame.

    Attributes:
        vertices: Positions, m, (vertices, 3).
        normals: Outward unit normals, (vertices, 3).
        faces: Vertices of the triangles, counterclockwise seen from outside, (faces, 3).
        groups: Smooth piece of each face, (faces,).
        uv: Texture coordinates, (vertices, 2).
        one_sided: If true, the back of a triangle is never visible.
    """

    vertices: Array
    normals: Array
    faces: NDArray[np.int32]
    groups: NDArray[np.int32]
    uv: Array
    one_sided: bool = True


def tessellate(shape: Shape, sizes: Sequence[float], segments: int, thickness: float) -> Triangles:
    """Triangulate a shape of given sizes.

    Args:
        shape: Shape, but not an infinite plane.
        sizes: Three numbers as in `Appearance.sizes`.
        segments: Number of segments around a sphere.
        thickness: Extent along z of the flat shapes of a planar world, m.
    """
    first, second, third = (float(size) for size in sizes)
    if isinstance(shape, Sphere):
        return _scaled(_sphere(segments), (first, first, first))
    if isinstance(shape, Ellipsoid):
        return _scaled(_sphere(segments), (first, second, third))
    if isinstance(shape, Capsule):
        ball = _sphere(segments)
        shift = 0.5 * third * np.where(_is_upper(segments), 1.0, -1.0)
        return Triangles(
            first * ball.vertices + shift[:, None] * [0.0, 0.0, 1.0], ball.normals, ball.faces, ball.groups, ball.uv
        )
    if isinstance(shape, Cylinder):
        return _prism(_circle(segments, first), third, smooth=True)
    if isinstance(shape, Box):
        return _prism(_rectangle(first, second), third)
    if isinstance(shape, Circle):
        return _prism(_circle(2 * segments, first), thickness, smooth=True)
    if isinstance(shape, Polygon):
        return _prism(np.array(shape.vertices) * [first, second], thickness)
    if isinstance(shape, Hull):
        return convex_hull(np.array(shape.vertices) * [first, second, third])
    if isinstance(shape, Disc):
        return _sheet(_circle(segments, first))
    assert isinstance(shape, Rectangle), shape
    return _sheet(_rectangle(first, second))


def convex_hull(points: Array) -> Triangles:
    """Triangulate the hull of points, flat sides as one piece each."""
    hull = ConvexHull(points)
    corners = points[hull.simplices]
    normals = hull.equations[:, :3]
    inward = np.einsum("ij,ij->i", np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), normals) < 0
    corners[inward] = corners[inward][:, ::-1]
    _, groups = np.unique(np.round(hull.equations, 6), axis=0, return_inverse=True)
    count = len(corners)
    faces = np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
    return Triangles(
        corners.reshape(-1, 3),
        np.repeat(normals, 3, 0),
        faces,
        groups.astype(np.int32).ravel(),
        np.zeros((3 * count, 2)),
    )


@lru_cache(maxsize=8)
def _sphere(segments: int) -> Triangles:
    """Unit sphere of rings, of which the middle one is double, so that a capsule can be pulled out of it."""
    half = max(2, segments // 4)
    polar = np.concatenate([np.linspace(0, math.pi / 2, half + 1), np.linspace(math.pi / 2, math.pi, half + 1)])
    around = np.linspace(0, 2 * math.pi, segments + 1)
    p, a = np.meshgrid(polar, around, indexing="ij")
    vertices = np.stack([np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)], -1).reshape(-1, 3)
    uv = np.stack([a / (2 * math.pi), p / math.pi], -1).reshape(-1, 2)
    faces = _grid_faces(len(polar), segments + 1)
    # Triangles of no area at the poles are never drawn, those between the two middle rings only in a capsule.
    return Triangles(vertices, vertices, faces, np.zeros(len(faces), np.int32), uv)


def _is_upper(segments: int) -> NDArray[np.bool_]:
    half = max(2, segments // 4)
    return np.repeat(np.arange(2 * half + 2) <= half, segments + 1)


def _grid_faces(rows: int, columns: int) -> NDArray[np.int32]:
    """Triangles between the vertices of a grid, counterclockwise where columns turn left and rows go down."""
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns - 1), indexing="ij")
    a, b = i * columns + j, (i + 1) * columns + j
    faces = np.stack([np.stack([a, b, b + 1], -1), np.stack([a, b + 1, a + 1], -1)], 2)
    return faces.reshape(-1, 3).astype(np.int32)


def _scaled(triangles: Triangles, scale: tuple[float, float, float]) -> Triangles:
    factors = np.array(scale)
    normals = triangles.normals / np.maximum(factors, 1e-9)
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return Triangles(triangles.vertices * factors, normals, triangles.faces, triangles.groups, triangles.uv)


def _circle(segments: int, radius: float) -> Array:
    angle = np.linspace(0, 2 * math.pi, segments, endpoint=False)
    return radius * np.stack([np.cos(angle), np.sin(angle)], 1)


def _rectangle(width: float, height: float) -> Array:
    return 0.5 * np.array([[-width, -height], [width, -height], [width, height], [-width, height]])


def _fan(count: int) -> NDArray[np.int32]:
    i = np.arange(1, count - 1)
    return np.stack([np.zeros_like(i), i, i + 1], 1).astype(np.int32)


def _sheet(outline: Array) -> Triangles:
    count = len(outline)
    vertices = np.pad(outline, ((0, 0), (0, 1)))
    normals = np.tile([0.0, 0.0, 1.0], (count, 1))
    extent = np.ptp(outline, axis=0)
    uv = (outline - outline.min(0)) / np.maximum(extent, 1e-9)
    return Triangles(vertices, normals, _fan(count), np.zeros(count - 2, np.int32), uv, one_sided=False)


def _prism(outline: Array, height: float, smooth: bool = False) -> Triangles:
    """Prism over a convex outline, centered along z; a smooth one is a cylinder."""
    count, half = len(outline), 0.5 * height
    top, bottom = (np.column_stack([outline, np.full(count, z)]) for z in (half, -half))
    following = np.roll(np.arange(count), -1)
    along = outline[following] - outline
    outward = np.stack([along[:, 1], -along[:, 0]], 1)
    outward /= np.maximum(np.linalg.norm(outward, axis=1, keepdims=True), 1e-12)
    radial = np.linalg.norm(outline, axis=1, keepdims=True)
    starts, ends = (outline / np.maximum(radial, 1e-12),) * 2 if smooth else (outward, outward)
    ends = ends[following] if smooth else ends
    flat = np.zeros((count, 1))
    sides = np.concatenate([bottom, bottom[following], top[following], top])
    side_normals = np.concatenate([np.hstack([n, flat]) for n in (starts, ends, ends, starts)])
    i = np.arange(count)
    quads = np.concatenate([np.stack([i, count + i, 2 * count + i], 1), np.stack([i, 2 * count + i, 3 * count + i], 1)])
    side_groups = np.full(2 * count, 2) if smooth else np.tile(2 + i, 2)
    cap = _fan(count)
    vertices = np.concatenate([sides, top, bottom])
    normals = np.concatenate([side_normals, np.tile([0, 0, 1.0], (count, 1)), np.tile([0, 0, -1.0], (count, 1))])
    faces = np.concatenate([quads, 4 * count + cap, 5 * count + cap[:, ::-1]])
    groups = np.concatenate([side_groups, np.zeros(len(cap)), np.ones(len(cap))])
    return Triangles(vertices, normals, faces.astype(np.int32), groups.astype(np.int32), np.zeros((len(vertices), 2)))
