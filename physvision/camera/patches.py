"""Conversion of shapes to patches, the convex pieces that the kernels render; see `kernels/scene.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from physvision.core import (
    Box,
    Capsule,
    Circle,
    Cylinder,
    Disc,
    InputError,
    Plane,
    Polygon,
    Rectangle,
    Shape,
    Sphere,
)

POLYGON, DISC, PLANE, SPHERE, CAPSULE, CYLINDER = range(6)
CLAMP, AROUND, REPEAT = range(3)
UNIT_SQUARE = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
CENTERED = (0.5, 1.0, 0.5, -1.0)
# A disc is as wide as two of its extents.
ROUND = (0.5, 0.5, 0.5, -0.5)


class Patch(NamedTuple):
    """A patch in a frame whose axes are those of its shape in another order.

    Attributes:
        kind: Kind of the patch.
        shape: Index of its shape.
        extents: Indices of the shape's sizes that are the patch's width, height and length; 3 stands for none.
        vertices: Corners of a polygon, in units of width and height.
        mapping: Coefficients from width and height to texture coordinates.
        wrap: Continuation of the texture beyond its borders.
        axis: Axis of the shape that is z in the frame of the patch.
        shift: Origin of the frame on that axis, in lengths of the shape along it; its sign is that of the outward
            normal of a face that can be turned away.
        first: Index of the first patch of a closed shape; None for a patch that is a whole shape.
    """

    kind: int
    shape: int
    extents: tuple[int, int, int]
    vertices: Sequence[tuple[float, float]] = ()
    mapping: tuple[float, float, float, float] = CENTERED
    wrap: int = CLAMP
    axis: int = 2
    shift: float = 0.0
    first: int | None = None

    def turn(self) -> list[list[float]]:
        """Return the matrix by which row vectors of the shape's frame become those of the patch."""
        return [[float((self.axis + 1 + column) % 3 == row) for column in range(3)] for row in range(3)]


def _anticlockwise(vertices: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    successors = (*vertices[1:], vertices[0])
    pairs = list(zip(vertices, successors, strict=True))
    area = sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairs)
    corners = tuple(vertices) if area >= 0 else tuple(reversed(vertices))
    n = len(corners)
    for i in range(n):
        (ax, ay), (bx, by), (cx, cy) = corners[i], corners[(i + 1) % n], corners[(i + 2) % n]
        turn = (bx - ax) * (cy - by) - (by - ay) * (cx - bx)
        if turn < -1e-9 * abs(area):
            raise InputError(f"Polygon: expected convex corners, got a dent at {corners[(i + 1) % n]}")
    return corners


def _polygon_mapping(vertices: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
    xs, ys = zip(*vertices, strict=True)
    width, height = max(xs) - min(xs) or 1.0, max(ys) - min(ys) or 1.0
    return (-min(xs) / width, 1.0 / width, max(ys) / height, -1.0 / height)


def patches_of(shapes: Sequence[Shape]) -> list[Patch]:
    """Return the patches of all shapes, those of one shape next to each other."""
    patches: list[Patch] = []
    for index, shape in enumerate(shapes):
        first = len(patches)
        match shape:
            case Plane():
                patches.append(Patch(PLANE, index, (0, 1, 3), wrap=REPEAT))
            case Rectangle():
                patches.append(Patch(POLYGON, index, (0, 1, 3), UNIT_SQUARE))
            case Disc() | Circle():
                patches.append(Patch(DISC, index, (0, 0, 3), mapping=ROUND))
            case Polygon():
                vertices = _anticlockwise(shape.vertices)
                patches.append(Patch(POLYGON, index, (0, 1, 3), vertices, _polygon_mapping(vertices)))
            case Sphere():
                patches.append(Patch(SPHERE, index, (0, 0, 3), wrap=AROUND))
            case Capsule():
                patches.append(Patch(CAPSULE, index, (0, 0, 2), wrap=AROUND))
            case Cylinder():
                # The caps come first: at the same depth the earlier patch of a shape is in front.
                patches += [Patch(DISC, index, (0, 0, 3), mapping=ROUND, shift=s, first=first) for s in (-0.5, 0.5)]
                patches.append(Patch(CYLINDER, index, (0, 0, 2), wrap=AROUND, first=first))
            case Box():
                for axis in range(3):
                    across = ((axis + 1) % 3, (axis + 2) % 3, 3)
                    for shift in (-0.5, 0.5):
                        patches.append(Patch(POLYGON, index, across, UNIT_SQUARE, axis=axis, shift=shift, first=first))
    return patches
