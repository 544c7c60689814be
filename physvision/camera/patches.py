"""Conversion of shapes to patches, the convex pieces that the kernels render; see `kernels/scene.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

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


@dataclass
class Patches:
    """Tables with one row a patch, in frames whose axes are those of the shapes in another order.

    Attributes:
        kind: Kind of the patch.
        shape: Index of its shape.
        group: First patch of the shape, and the sign of the outward normal (0: visible from both sides).
        axis: Axis of the shape that is z in the frame of the patch.
        shift: Origin of the frame on that axis, in lengths of the shape along it.
        extents: Indices of the shape's sizes that are the patch's width, height and length; 3 stands for none.
        corners: First corner and number of corners.
        mapping: Coefficients from width and height to texture coordinates.
        wrap: Continuation of the texture beyond its borders.
        vertices: Corners of all polygons, in units of width and height.
    """

    kind: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    group: list[tuple[int, int]] = field(default_factory=list)
    axis: list[int] = field(default_factory=list)
    shift: list[float] = field(default_factory=list)
    extents: list[tuple[int, int, int]] = field(default_factory=list)
    corners: list[tuple[int, int]] = field(default_factory=list)
    mapping: list[tuple[float, float, float, float]] = field(default_factory=list)
    wrap: list[int] = field(default_factory=list)
    vertices: list[tuple[float, float]] = field(default_factory=list)

    def add(
        self,
        kind: int,
        shape: int,
        extents: tuple[int, int, int],
        *,
        wrap: int = CLAMP,
        mapping: tuple[float, float, float, float] = CENTERED,
        vertices: Sequence[tuple[float, float]] = (),
        axis: int = 2,
        shift: float = 0.0,
        first: int | None = None,
    ) -> None:
        """Append a patch; `first` is the first patch of a closed shape, whose faces can be turned away."""
        self.group.append((len(self.kind) if first is None else first, 0 if shift == 0.0 else (1 if shift > 0 else -1)))
        self.kind.append(kind)
        self.shape.append(shape)
        self.axis.append(axis)
        self.shift.append(shift)
        self.extents.append(extents)
        self.corners.append((len(self.vertices), len(vertices)))
        self.mapping.append(mapping)
        self.wrap.append(wrap)
        self.vertices.extend(vertices)

    def turns(self) -> Tensor:
        """Return matrices (patches, 3, 3) by which row vectors of the shapes' frames become those of the patches."""
        turn = torch.zeros(len(self.axis), 3, 3, dtype=torch.float64)
        for patch, axis in enumerate(self.axis):
            for i in range(3):
                turn[patch, (axis + 1 + i) % 3, i] = 1.0
        return turn


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


def patches_of(shapes: Sequence[Shape]) -> Patches:
    """Return the patches of all shapes, those of one shape next to each other."""
    patches = Patches()
    for index, shape in enumerate(shapes):
        first = len(patches.kind)
        match shape:
            case Plane():
                patches.add(PLANE, index, (0, 1, 3), wrap=REPEAT)
            case Rectangle():
                patches.add(POLYGON, index, (0, 1, 3), vertices=UNIT_SQUARE)
            case Disc() | Circle():
                patches.add(DISC, index, (0, 0, 3), mapping=ROUND)
            case Polygon():
                vertices = _anticlockwise(shape.vertices)
                patches.add(POLYGON, index, (0, 1, 3), vertices=vertices, mapping=_polygon_mapping(vertices))
            case Sphere():
                patches.add(SPHERE, index, (0, 0, 3), wrap=AROUND)
            case Capsule():
                patches.add(CAPSULE, index, (0, 0, 2), wrap=AROUND)
            case Cylinder():
                # The caps come first: at the same depth the earlier patch of a shape is in front.
                for shift in (-0.5, 0.5):
                    patches.add(DISC, index, (0, 0, 3), mapping=ROUND, shift=shift, first=first)
                patches.add(CYLINDER, index, (0, 0, 2), wrap=AROUND, first=first)
            case Box():
                for axis in range(3):
                    across = ((axis + 1) % 3, (axis + 2) % 3, 3)
                    for shift in (-0.5, 0.5):
                        patches.add(POLYGON, index, across, vertices=UNIT_SQUARE, axis=axis, shift=shift, first=first)
    return patches
