"""Looks of an engine beyond its shapes: triangle surfaces that bodies carry, textures, and shapes that they replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int, UInt8

from physvision.core.shapes import Placed


@dataclass(frozen=True, eq=False)
class Look:
    """Appearance of a surface beside its geometry.

    Attributes:
        color: Color (red, green, blue), 0 to 1, by which a texture is multiplied.
        texture: Image in RGB, its first row at v = 0; None for one color.
        repeat: Number of repetitions of the texture along x and y: for each meter on planes, over the whole elsewhere.
        opacity: Opacity from 0 to 1; what is below one half is not drawn.
        scale: Factor of the sizes of a shape in pictures.
    """

    color: tuple[float, float, float] = (0.5, 0.5, 0.5)
    texture: UInt8[np.ndarray, "height width 3"] | None = field(default=None, repr=False)
    repeat: tuple[float, float] = (1.0, 1.0)
    opacity: float = 1.0
    scale: float = 1.0

    @property
    def mean_color(self) -> tuple[float, float, float]:
        """Color times the mean of the texture."""
        mean = np.ones(3) if self.texture is None else self.texture.reshape(-1, 3).mean(0) / 255
        red, green, blue = (mean * self.color).tolist()
        return red, green, blue


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles whose vertices are carried by bodies: all by one for a rigid mesh, each by its own for cloth.

    Attributes:
        vertices: Positions in the frames of the bodies, m.
        faces: Vertices of the triangles, counterclockwise seen from outside.
        bodies: Body of every vertex, a row of `engine.poses`; −1 for the world.
        look: Color and texture.
        normals: Normals in the frames of the bodies; None to compute them from the triangles as they move.
        uv: Texture coordinates of the vertices; None without a texture.
        name: Name shown to people.
    """

    vertices: Float[np.ndarray, "vertices 3"] = field(repr=False)
    faces: Int[np.ndarray, "faces 3"] = field(repr=False)
    bodies: Int[np.ndarray, " vertices"] = field(repr=False)
    look: Look = field(default_factory=Look)
    normals: Float[np.ndarray, "vertices 3"] | None = field(default=None, repr=False)
    uv: Float[np.ndarray, "vertices 2"] | None = field(default=None, repr=False)
    name: str = ""


@dataclass(frozen=True, eq=False)
class Visuals:
    """Everything that is drawn beside or in place of an engine's shapes; it has no influence on the motion.

    Attributes:
        surfaces: Triangle surfaces.
        hidden: Rows of the engine's `geometry` that are not drawn, for example because a surface replaces them.
        looks: Looks of rows of the geometry that are more than a color.
        shapes: Further shapes on bodies, each with its look.
    """

    surfaces: tuple[Surface, ...] = ()
    hidden: frozenset[int] = frozenset()
    looks: Mapping[int, Look] = field(default_factory=dict)
    shapes: tuple[tuple[Placed, Look], ...] = ()


NO_VISUALS = Visuals()
