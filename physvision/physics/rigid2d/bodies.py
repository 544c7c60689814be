"""Bodies of a planar world: circles, convex polygons and rectangles, each checked by its constructor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from physvision.core import InputError, ModelError, shapes as core_shapes
from physvision.core.checks import check_positive

Number = float | int


def _numbers(label: str, value: Sequence[Number], count: int) -> tuple[float, ...]:
    try:
        numbers = tuple(float(number) for number in value)
    except (TypeError, ValueError):
        raise InputError(f"{label}: expected {count} numbers, got {value!r}") from None
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise InputError(f"{label}: expected {count} finite numbers, got {value!r}")
    return numbers


def _between(label: str, value: Number, low: float, high: float) -> float:
    if not low <= float(value) <= high:
        raise InputError(f"{label}: expected a number in [{low:g}, {high:g}], got {value!r}")
    return float(value)


@dataclass(eq=False, kw_only=True)
class Body:
    """Base of all bodies; lengths are in the world's own unit, meters or pixels.

    Attributes:
        angle: Orientation at the start, in radians.
        velocity: Velocity (x, y) of the frame at the start, per second.
        spin: Angular velocity at the start, in radians a second.
        mass: Mass in kilograms.
        inertia: Moment of inertia about the center of mass; None for that of a uniform body.
        restitution: Coefficient of restitution, 0 to 1 (elastic); a pair's is the mean of the two.
        friction: Coefficient of friction, at least 0; a pair's is the mean of the two.
        velocity_decay: Rate at which velocities decay, in 1/s.
        sliding_deceleration: Coulomb deceleration μ g of the center while the body slides on the plane, until it rests.
        static: If true, the body never moves; it has no state, and its mass does not matter.
        kinematic: If true, the body keeps its velocity whatever touches it, such as a moving platform; the caller sets
            its state, and no force acts on it.
        name: Name in messages and joints; "body 3" if none is given.
        color: Red, green and blue in [0, 1], for pictures; None for one of a palette.
    """

    angle: Number = 0.0
    velocity: Sequence[Number] = (0.0, 0.0)
    spin: Number = 0.0
    mass: Number = 1.0
    inertia: Number | None = None
    restitution: Number = 0.5
    friction: Number = 0.5
    velocity_decay: Number = 0.0
    sliding_deceleration: Number = 0.0
    static: bool = False
    kinematic: bool = False
    name: str = ""
    color: tuple[float, float, float] | None = None

    @property
    def label(self) -> str:
        """Name of the body in messages."""
        return self.name or type(self).__name__.lower()

    def _check(self) -> None:
        self.angle = _between(f"{self.label}: angle", self.angle, -math.inf, math.inf)
        self.spin = _between(f"{self.label}: spin", self.spin, -1e300, 1e300)
        if not math.isfinite(self.angle):
            raise InputError(f"{self.label}: angle: expected a finite number, got {self.angle!r}")
        self.velocity = _numbers(f"{self.label}: velocity", self.velocity, 2)
        if self.static and (any(self.velocity) or self.spin):
            raise ModelError(
                f"{self.label}: a static body stands still, but its velocity is {self.velocity} and its spin "
                f"{self.spin:g}; a platform that moves is kinematic=True"
            )
        if self.static and self.kinematic:
            raise ModelError(f"{self.label}: expected a static or a kinematic body (one that moves), got both")
        self.mass = check_positive(f"{self.label}: mass", self.mass)
        if self.inertia is not None:
            self.inertia = check_positive(f"{self.label}: inertia", self.inertia)
        self.restitution = _between(f"{self.label}: restitution", self.restitution, 0.0, 1.0)
        for name in ("friction", "velocity_decay", "sliding_deceleration"):
            setattr(self, name, _between(f"{self.label}: {name}", getattr(self, name), 0.0, 1e300))

    @property
    def center(self) -> tuple[float, float]:
        """Center of mass at the start, the origin of the body's frame."""
        raise NotImplementedError

    @property
    def bounding_radius(self) -> float:
        """Radius about the body's frame that holds all of it."""
        raise NotImplementedError

    @property
    def gyration(self) -> float:
        """Radius of gyration, whose square times the mass is the moment of inertia."""
        if self.inertia is not None:
            return math.sqrt(self.inertia / self.mass)
        return math.sqrt(self._uniform())

    def _uniform(self) -> float:
        raise NotImplementedError

    @property
    def shape(self) -> core_shapes.Shape:
        """Shape in the body's own frame."""
        raise NotImplementedError


@dataclass(eq=False)
class Circle(Body):
    """Filled circle, a rigid body.

    Attributes:
        radius: Radius of the circle.
        position: Position (x, y) of its center at the start.
    """

    radius: Number
    position: Sequence[Number]

    def __post_init__(self) -> None:
        self._check()
        self.radius = check_positive(f"{self.label}: radius", self.radius)
        self.position = _numbers(f"{self.label}: position", self.position, 2)

    @property
    def center(self) -> tuple[float, float]:
        """Position of the center at the start."""
        return self.position[0], self.position[1]

    @property
    def bounding_radius(self) -> float:
        """Radius of the circle itself."""
        return float(self.radius)

    def _uniform(self) -> float:
        return 0.5 * self.radius**2

    @property
    def shape(self) -> core_shapes.Shape:
        """Shape of a filled circle."""
        return core_shapes.Circle(self.radius)


@dataclass(eq=False)
class Polygon(Body):
    """Filled convex polygon, a rigid body.

    Attributes:
        vertices: Vertices (x, y) relative to `position`, in the direction of growing angle: from x towards y.
        position: Origin (x, y) of the vertices at the start; `angle` turns them about it.
        corners: Vertices about the center of mass, in the body's frame.
    """

    vertices: Sequence[Sequence[Number]]
    position: Sequence[Number] = (0.0, 0.0)
    corners: tuple[tuple[float, float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        self.position = _numbers(f"{self.label}: position", self.position, 2)
        points = [_numbers(f"{self.label}: vertices[{i}]", point, 2) for i, point in enumerate(self.vertices)]
        self._check_convex(points)
        # Exact sums do not depend on which vertex is the first.
        sides = list(zip(points, points[1:] + points[:1], strict=True))
        crosses = [a[0] * b[1] - a[1] * b[0] for a, b in sides]
        area = math.fsum(crosses) / 2
        center = [
            math.fsum((a[k] + b[k]) * c for (a, b), c in zip(sides, crosses, strict=True)) / (6 * area)
            for k in range(2)
        ]
        self._centroid = (center[0], center[1])
        self.corners = tuple((point[0] - center[0], point[1] - center[1]) for point in points)

    def _check_convex(self, points: list[tuple[float, ...]]) -> None:
        if len(points) < 3:
            raise ModelError(f"{self.label}: expected at least 3 vertices, got {len(points)}")
        # Sine and cosine of the turn at each vertex, times the lengths of its two edges.
        angles = [self._turn(points, i) for i in range(len(points))]
        turns = [sine for sine, _ in angles]
        if all(turn < 0 for turn in turns):
            raise ModelError(f"{self.label}: the vertices run clockwise (from y towards x); give them in reverse order")
        if any(turn <= 0 for turn in turns):
            raise ModelError(
                f"{self.label}: the polygon is not strictly convex at vertex {[t <= 0 for t in turns].index(True)}; "
                "split it into convex parts and weld them"
            )
        wound = sum(math.atan2(sine, cosine) for sine, cosine in angles)
        if wound > 2 * math.pi + 1e-6:
            raise ModelError(f"{self.label}: the edges of the polygon cross each other")

    @staticmethod
    def _turn(points: list[tuple[float, ...]], i: int) -> tuple[float, float]:
        a, b, c = points[i - 2], points[i - 1], points[i]
        u, w = (b[0] - a[0], b[1] - a[1]), (c[0] - b[0], c[1] - b[1])
        return u[0] * w[1] - u[1] * w[0], u[0] * w[0] + u[1] * w[1]

    @property
    def center(self) -> tuple[float, float]:
        """Center of mass at the start."""
        c, s = math.cos(self.angle), math.sin(self.angle)
        x, y = self._centroid
        return self.position[0] + c * x - s * y, self.position[1] + s * x + c * y

    @property
    def bounding_radius(self) -> float:
        """Distance of the farthest corner from the center of mass."""
        return max(math.hypot(*corner) for corner in self.corners)

    def _uniform(self) -> float:
        area, total = [], []
        for a, b in zip(self.corners, self.corners[1:] + self.corners[:1], strict=True):
            cross = a[0] * b[1] - a[1] * b[0]
            area.append(cross / 2)
            x, y = (a[k] * a[k] + b[k] * b[k] + a[k] * b[k] for k in range(2))
            total.append(cross * (x + y) / 12)
        return math.fsum(total) / math.fsum(area)

    @property
    def shape(self) -> core_shapes.Shape:
        """Shape of a filled polygon about the center of mass."""
        return core_shapes.Polygon(self.corners)


class Rectangle(Polygon):
    """Filled rectangle of this size (width, height), centered at `position`."""

    def __init__(self, size: Sequence[Number], position: Sequence[Number], angle: Number = 0.0, **body) -> None:
        label = body.get("name") or "rectangle"
        width, height = (check_positive(f"{label}: size", side) for side in _numbers(f"{label}: size", size, 2))
        self.size = (width, height)
        x, y = width / 2, height / 2
        super().__init__([(-x, -y), (x, -y), (x, y), (-x, y)], position, angle=angle, **body)
