"""Shapes of bodies, which engines report and a camera renders; sizes in meters."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor
from torch.export import register_dataclass

IDENTITY = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Shape:
    """Surface of a body in its own frame."""

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Three numbers that scale the shape, in the order of `Appearance.sizes`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Plane(Shape):
    """Infinite plane z = 0, visible from both sides; its texture repeats every `tile` meters along x and y."""

    tile: tuple[float, float] = (1.0, 1.0)

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Edge lengths of the texture tile, and zero."""
        return (*self.tile, 0.0)


@dataclass(frozen=True)
class Rectangle(Shape):
    """Flat rectangle |x| ≤ width/2, |y| ≤ height/2 in the plane z = 0."""

    width: float
    height: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Width, height, and zero."""
        return (self.width, self.height, 0.0)


@dataclass(frozen=True)
class _Round(Shape):
    radius: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Radius, followed by two zeros."""
        return (self.radius, 0.0, 0.0)


class Disc(_Round):
    """Flat disc x² + y² ≤ radius² in the plane z = 0."""


class Sphere(_Round):
    """Sphere of a radius about the origin."""


class Circle(_Round):
    """Filled circle of a 2-D world, in the plane z = 0."""


@dataclass(frozen=True)
class Box(Shape):
    """Box with full edge lengths along x, y and z, centered at the origin."""

    size: tuple[float, float, float]

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Edge lengths along x, y and z."""
        return self.size


@dataclass(frozen=True)
class Ellipsoid(Shape):
    """Ellipsoid with radii along x, y and z, centered at the origin; it collides, but cameras do not render it."""

    radii: tuple[float, float, float]

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Radii along x, y and z."""
        return self.radii


@dataclass(frozen=True)
class _Elongated(Shape):
    radius: float
    length: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Radius, zero, and length."""
        return (self.radius, 0.0, self.length)


class Capsule(_Elongated):
    """Cylinder along z of a length, centered at the origin, with a hemisphere on either end."""


class Cylinder(_Elongated):
    """Closed cylinder along z of a length, centered at the origin."""


@dataclass(frozen=True)
class Polygon(Shape):
    """Filled convex polygon of a 2-D world, in the plane z = 0; vertices counterclockwise (x right, y up)."""

    vertices: tuple[tuple[float, float], ...]

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Scale factors of the vertices along x and y, and zero."""
        return (1.0, 1.0, 0.0)


@dataclass(frozen=True)
class Hull(Shape):
    """Convex hull of points, m; it collides, but cameras do not render it."""

    vertices: tuple[tuple[float, float, float], ...] = field(repr=False)

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Scale factors of the vertices along x, y and z."""
        return (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Placed:
    """Shape attached to a body, or fixed in the world.

    Attributes:
        shape: Surface in its own frame.
        body: Row of the body in `engine.poses(state)`; None for the world.
        pose: Pose of the shape in the frame of the body (or of the world), a nested 4×4 tuple.
        color: Color (red, green, blue), 0 to 1.
        name: Name shown to people.
    """

    shape: Shape
    body: int | None = None
    pose: tuple[tuple[float, ...], ...] = field(default=IDENTITY, repr=False)
    color: tuple[float, float, float] = (0.5, 0.5, 0.5)
    name: str = ""


@dataclass(frozen=True)
class Appearance:
    """Poses and sizes of all shapes that can be rendered, in the order of an engine's `geometry`.

    Attributes:
        poses: Poses of the shapes in the world.
        sizes: Sizes of the shapes, as in `Shape.sizes`.
    """

    poses: Float[Tensor, "*worlds shapes 4 4"]
    sizes: Float[Tensor, "*worlds shapes 3"]


register_dataclass(Appearance)
