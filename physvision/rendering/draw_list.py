"""Everything visible of an engine: triangles in the frames that carry them, materials and planes."""

# Warp's arrays of vectors have no types for type checkers.
# pyright: reportArgumentType=false

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from physvision.core import Circle, Placed, Plane, Polygon, Rectangle
from physvision.core.visuals import Look, Surface, Visuals
from physvision.rendering.settings import RenderSettings
from physvision.rendering.tessellation import Triangles, tessellate
from physvision.rendering.textures import MaterialTable

DEFAULT_COLOR = Placed.color
GOLDEN_RATIO = 0.61803398875


@dataclass(frozen=True)
class PlaneRow:
    """Plane or rectangle that is drawn without triangles.

    Attributes:
        frame: Row of its pose among those of the shapes; −1 for a ground that the scene does not have.
        half_size: Half edge lengths, m; zeros if it is infinite.
        material: Row of its material.
        textured: If true, it has a texture and no grid.
        is_floor: If true, it is fixed in the world.
    """

    frame: int
    half_size: tuple[float, float]
    material: int
    textured: bool
    is_floor: bool = True


class DrawList:
    """Triangles of all shapes and surfaces of an engine, for given sizes of the shapes.

    The frames that carry vertices are those of the shapes, of the bodies, of the world, and of the shapes of visuals.

    Attributes:
        planes: Planes and large rectangles.
        casts: Rows of the frames of bounded shapes, and of the bodies of surfaces.
        radius: Bounding radius of the triangles about each of these frames, m.
        deforming: Vertices whose normals follow from the triangles as they move.
        face_count: Number of triangles.
        textured: If true, a triangle has a texture.
    """

    def __init__(
        self,
        kernels: Any,
        geometry: Sequence[Placed],
        sizes: NDArray[np.float64],
        bodies: int,
        visuals: Visuals,
        settings: RenderSettings,
        thickness: float,
    ) -> None:
        self._settings, self._materials = settings, MaterialTable(kernels)
        self._parts: list[_Part] = []
        self.textured, self._colors = False, dict[int, tuple[int, int, int]]()
        self.planes: list[PlaneRow] = []
        visible_rows = [row for row in range(len(geometry)) if row not in visuals.hidden]
        segments = settings.resolution
        if len(visible_rows) > settings.max_detailed_shapes:
            segments //= 2
        for row in visible_rows:
            self._add_shape(row, geometry[row], sizes[row], visuals.looks.get(row), segments, thickness)
        for surface in visuals.surfaces:
            if surface.look.opacity >= 0.5:
                self._add_surface(surface, len(geometry), bodies)
        for number, (placed, look) in enumerate(visuals.shapes):
            own = np.array(placed.shape.sizes)
            self._add_shape(len(geometry) + bodies + 1 + number, placed, own, look, segments, thickness)
        if not any(plane.half_size == (0.0, 0.0) for plane in self.planes):
            ground = self._materials.add(Look(settings.ground), 0.0)
            self.extra_ground = PlaneRow(-1, (0.0, 0.0), ground, False)
        else:
            self.extra_ground = None
        self._pack(len(geometry) + bodies + 1 + len(visuals.shapes))

    def _add_shape(
        self, row: int, placed: Placed, sizes: NDArray, look: Look | None, segments: int, thickness: float
    ) -> None:
        shape, settings = placed.shape, self._settings
        look = Look(placed.color) if look is None else look
        if look.texture is None:
            look = replace(look, color=_visible_color(replace(placed, color=look.color)))
        if look.opacity < 0.5:
            return
        if isinstance(shape, Plane | Rectangle):
            color = settings.ground if look.texture is None and look.color == DEFAULT_COLOR else look.color
            material = self._materials.add(Look(color, look.texture, look.repeat), 0.0)
            half = (0.0, 0.0) if isinstance(shape, Plane) else (0.5 * float(sizes[0]), 0.5 * float(sizes[1]))
            self.planes.append(PlaneRow(row, half, material, look.texture is not None, placed.body is None))
            return
        gloss = 0.0 if isinstance(shape, Circle | Polygon) else settings.gloss
        material = self._materials.add(Look(look.color), gloss)
        self._colors[material] = _to_bytes(look.color)
        triangles = tessellate(shape, (look.scale * sizes).tolist(), segments, thickness)
        self._parts.append(_Part(triangles, np.full(len(triangles.vertices), row), material, False))

    def _add_surface(self, surface: Surface, shapes: int, bodies: int) -> None:
        look = surface.look if surface.uv is not None else Look(surface.look.color)
        material = self._materials.add(look, self._settings.gloss)
        self.textured |= look.texture is not None
        self._colors[material] = _to_bytes(look.mean_color)
        rows = np.where(surface.bodies >= 0, shapes + surface.bodies, shapes + bodies)
        count = len(surface.vertices)
        normals = np.zeros((count, 3)) if surface.normals is None else surface.normals
        uv = np.zeros((count, 2)) if surface.uv is None else surface.uv
        groups = np.zeros(len(surface.faces), np.int32)
        faces = np.asarray(surface.faces, np.int32)
        triangles = Triangles(surface.vertices, normals, faces, groups, uv, one_sided=False)
        self._parts.append(_Part(triangles, rows, material, surface.normals is None))

    def pieces(self) -> list[Piece]:
        """Return the triangles of each shape and surface by itself."""
        return [
            Piece(
                part.triangles.vertices.astype(np.float32),
                part.triangles.faces,
                part.rows,
                self._colors[part.material],
                part.triangles.one_sided,
            )
            for part in self._parts
        ]

    def _pack(self, frames: int) -> None:
        """Concatenate all parts to arrays of the kernels."""
        parts = self._parts
        counts = np.cumsum([0, *(len(part.triangles.vertices) for part in parts)])
        groups = np.cumsum([0, *(int(part.triangles.groups.max()) + 1 for part in parts)])
        self.vertex_count = int(counts[-1])
        vertices = _stack([part.triangles.vertices for part in parts], 3)
        rows = _stack([part.rows for part in parts])
        faces = _stack([part.triangles.faces + first for part, first in zip(parts, counts, strict=False)], 3)
        group = _stack([part.triangles.groups + first for part, first in zip(parts, groups, strict=False)])
        self.face_count, self.frames = len(faces), frames
        self.vertices = wp.array(vertices.astype(np.float32), dtype=wp.vec3, device="cpu")
        normals = _stack([part.triangles.normals for part in parts], 3)
        self.normals = wp.array(normals.astype(np.float32), dtype=wp.vec3, device="cpu")
        uv = _stack([part.triangles.uv for part in parts], 2)
        self.uv = wp.array(uv.astype(np.float32), dtype=wp.vec2, device="cpu")
        self.rows = wp.array(rows.astype(np.int32), dtype=int, device="cpu")
        self.faces_host = faces.astype(np.int32).reshape(-1, 3)
        self.faces = wp.array(self.faces_host, dtype=int, ndim=2, device="cpu")
        self.groups = wp.array(group.astype(np.int32), dtype=int, device="cpu")
        material = _stack([np.full(len(part.triangles.faces), part.material) for part in parts])
        self.face_materials = wp.array(material.astype(np.int32), dtype=int, device="cpu")
        one_sided = _stack([np.full(len(part.triangles.faces), part.triangles.one_sided) for part in parts])
        self.one_sided_host = one_sided.astype(np.int32)
        self.materials, self.texels = self._materials.pack()
        self.deforming = np.flatnonzero(_stack([np.full(len(part.triangles.vertices), part.deforms) for part in parts]))
        self.deforming_faces = self.faces_host[np.isin(self.faces_host[:, 0], self.deforming)]
        distance = np.linalg.norm(vertices.reshape(-1, 3), axis=1)
        self.radius = np.zeros(frames)
        np.maximum.at(self.radius, rows.astype(int), distance)
        self.casts = np.unique(rows.astype(int))


@dataclass(frozen=True, eq=False)
class Piece:
    """Triangles of one shape or surface.

    Attributes:
        vertices: Positions in the frames that carry them, m, (vertices, 3).
        faces: Vertices of the triangles, (faces, 3).
        rows: Frame of each vertex, (vertices,).
        color: Color in eight bits, the mean of a texture.
        one_sided: If true, the back of a triangle is never visible.
    """

    vertices: NDArray[np.float32]
    faces: NDArray[np.int32]
    rows: NDArray
    color: tuple[int, int, int]
    one_sided: bool


@dataclass(frozen=True, eq=False)
class _Part:
    triangles: Triangles
    rows: NDArray
    material: int
    deforms: bool


def _to_bytes(color: tuple[float, float, float]) -> tuple[int, int, int]:
    red, green, blue = (round(255 * min(max(level, 0.0), 1.0)) for level in color)
    return red, green, blue


def _stack(arrays: list[NDArray], columns: int | None = None) -> NDArray:
    """Concatenate arrays, of which there may be none."""
    return np.concatenate(arrays) if arrays else np.zeros((0, columns) if columns else 0)


def _visible_color(placed: Placed) -> tuple[float, float, float]:
    """Return the color of a shape; one without a color of its own gets one by its body, planes and the world none."""
    if placed.color != DEFAULT_COLOR or placed.body is None or isinstance(placed.shape, Plane | Rectangle):
        return placed.color
    hue = (0.58 + GOLDEN_RATIO * placed.body) % 1.0
    return colorsys.hls_to_rgb(hue, 0.58, 0.55)
