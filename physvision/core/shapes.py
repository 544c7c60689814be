"""What bodies look like, in words that engines can hand over and a camera can draw. Sizes in metres."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor
from torch.export import register_dataclass

IDENTITY = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Shape:
    """A surface in its own frame."""

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The three numbers that scale it, as `Appearance.sizes` has them."""
        raise NotImplementedError


@dataclass(frozen=True)
class Plane(Shape):
    """The whole plane z = 0, seen from both sides; its texture repeats every `tile` metres along x and y."""

    tile: tuple[float, float] = (1.0, 1.0)

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The tile's two lengths."""
        return (*self.tile, 0.0)


@dataclass(frozen=True)
class Rectangle(Shape):
    """The flat rectangle |x| ≤ width/2, |y| ≤ height/2 in the plane z = 0."""

    width: float
    height: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Width and height."""
        return (self.width, self.height, 0.0)


@dataclass(frozen=True)
class Disc(Shape):
    """The flat disc x² + y² ≤ radius² in the plane z = 0."""

    radius: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The radius."""
        return (self.radius, 0.0, 0.0)


@dataclass(frozen=True)
class Sphere(Shape):
    """The sphere of this radius about the origin."""

    radius: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The radius."""
        return (self.radius, 0.0, 0.0)


@dataclass(frozen=True)
class Box(Shape):
    """The box with these full edge lengths along x, y and z, centred at the origin."""

    size: tuple[float, float, float]

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The three edges."""
        return self.size


@dataclass(frozen=True)
class Ellipsoid(Shape):
    """The ellipsoid with these radii along x, y and z, centred at the origin; it can touch, and no camera draws it."""

    radii: tuple[float, float, float]

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The three radii."""
        return self.radii


@dataclass(frozen=True)
class Capsule(Shape):
    """A cylinder along z of this length, centred at the origin, with a half sphere on either end."""

    radius: float
    length: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Radius, nothing, and length."""
        return (self.radius, 0.0, self.length)


@dataclass(frozen=True)
class Cylinder(Shape):
    """A closed cylinder along z of this length, centred at the origin."""

    radius: float
    length: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Radius, nothing, and length."""
        return (self.radius, 0.0, self.length)


@dataclass(frozen=True)
class Circle(Shape):
    """A filled circle of a 2-D world, in the plane z = 0."""

    radius: float

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The radius."""
        return (self.radius, 0.0, 0.0)


@dataclass(frozen=True)
class Polygon(Shape):
    """A filled convex polygon of a 2-D world, in the plane z = 0; corners anticlockwise (x right, y up)."""

    vertices: tuple[tuple[float, float], ...]

    @property
    def sizes(self) -> tuple[float, float, float]:
        """How much its corners are stretched along x and y."""
        return (1.0, 1.0, 0.0)


@dataclass(frozen=True)
class Hull(Shape):
    """The convex hull of some points, m; it can touch, and no camera draws it."""

    vertices: tuple[tuple[float, float, float], ...] = field(repr=False)

    @property
    def sizes(self) -> tuple[float, float, float]:
        """How much its points are stretched along x, y and z."""
        return (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Placed:
    """A shape that moves with a body, or stands still in the world.

    Attributes:
        shape: the surface.
        body: row of `engine.poses(state)` that it moves with; None for the world.
        pose: the shape's frame in the body's, 4×4 nested tuple (or the world's, where body is None).
        color: red, green, blue in [0, 1].
        name: for people.
    """

    shape: Shape
    body: int | None = None
    pose: tuple[tuple[float, ...], ...] = field(default=IDENTITY, repr=False)
    color: tuple[float, float, float] = (0.5, 0.5, 0.5)
    name: str = ""


@dataclass(frozen=True)
class Appearance:
    """Where everything that can be drawn is, and how large, in the order of an engine's `geometry`.

    Attributes:
        poses: the frame of every shape in the world.
        sizes: of every shape, as `Shape.sizes` has them.
    """

    poses: Float[Tensor, "*worlds shapes 4 4"]
    sizes: Float[Tensor, "*worlds shapes 3"]


register_dataclass(Appearance)
