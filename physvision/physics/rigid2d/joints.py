"""Joints and springs between two bodies, or a body and the world. Places are given in the world, at the start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from physvision.core import InputError
from physvision.physics.rigid2d.bodies import Body, Number, _between, _numbers

BodyName = Body | str | int | None


@dataclass(eq=False, kw_only=True)
class Joint:
    """What all joints have: two bodies, each given as itself, by name or by number; the second may be the world (None).

    Attributes:
        collide: whether the two bodies also touch each other.
        name: in messages.
    """

    first: BodyName
    second: BodyName = None
    collide: bool = False
    name: str = ""

    rows: tuple[int, ...] = field(init=False, default=(), repr=False)

    @property
    def label(self) -> str:
        """How messages call the joint."""
        return self.name or type(self).__name__

    @property
    def places(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Where it holds either body, in the world; None for the first body's center."""
        return None, None


def _place(label: str, at: Sequence[Number] | None) -> tuple[float, ...] | None:
    return None if at is None else _numbers(f"{label}: at", at, 2)


@dataclass(eq=False)
class Revolute(Joint):
    """A pin: the two bodies turn about a common point.

    Attributes:
        first: the body that motor and spring turn; the second is turned the other way.
        second: the other body; None for the world.
        at: the point, (x, y); None for the first body's center.
        limits: lower and upper bound on the angle between the two, relative to that at the start, radians.
        motor: whether controls hold a torque for it.
        stiffness: torque a radian, back to the angle at the start.
        damping: torque a radian a second.
    """

    first: BodyName
    second: BodyName = None
    at: Sequence[Number] | None = None
    limits: Sequence[Number] | None = None
    motor: bool = False
    stiffness: Number = 0.0
    damping: Number = 0.0

    def __post_init__(self) -> None:
        self.rows = (0, 1)
        self.at = _place(self.label, self.at)
        self.stiffness = _between(f"{self.label}: stiffness", self.stiffness, 0.0, 1e300)
        self.damping = _between(f"{self.label}: damping", self.damping, 0.0, 1e300)
        if self.limits is not None:
            low, high = _numbers(f"{self.label}: limits", self.limits, 2)
            if not low <= 0.0 <= high or low == high:
                raise InputError(f"{self.label}: limits: expected lower ≤ 0 ≤ upper, apart, got {self.limits!r}")

    @property
    def places(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """The pin, for both bodies."""
        return self.at, self.at  # type: ignore[return-value]


@dataclass(eq=False)
class Weld(Joint):
    """Two bodies as one.

    Attributes:
        first: a body.
        second: the other; None for the world.
        at: where the load is taken, (x, y); None for the first body's center.
    """

    first: BodyName
    second: BodyName = None
    at: Sequence[Number] | None = None

    def __post_init__(self) -> None:
        self.rows = (0, 1, 2)
        self.at = _place(self.label, self.at)

    @property
    def places(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """The weld, for both bodies."""
        return self.at, self.at  # type: ignore[return-value]


@dataclass(eq=False)
class HoldX(Joint):
    """Keeps the x of a point of one body equal to that of a point of the other: it slides along y."""

    first: BodyName
    second: BodyName = None
    at: Sequence[Number] | None = None

    def __post_init__(self) -> None:
        self.rows = (0,)
        self.at = _place(self.label, self.at)

    @property
    def places(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """The point, for both bodies."""
        return self.at, self.at  # type: ignore[return-value]


@dataclass(eq=False)
class HoldY(HoldX):
    """Keeps the y of a point of one body equal to that of a point of the other: it slides along x."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rows = (1,)


@dataclass(eq=False)
class HoldAngle(Joint):
    """Keeps the angle between two bodies: they move, but do not turn against each other."""

    first: BodyName
    second: BodyName = None

    def __post_init__(self) -> None:
        self.rows = (2,)


@dataclass(eq=False)
class Spring(Joint):
    """A spring and damper between a point of one body and a point of another, or of the world; bodies still collide.

    Attributes:
        first: a body.
        second: the other; None for the world.
        at: its end on the first body, (x, y); None for that body's center.
        to: its end on the second; None for that body's center, and needed for the world.
        stiffness: force a length.
        length: at which it rests; None for its length at the start.
        damping: force a speed.
    """

    first: BodyName
    second: BodyName = None
    at: Sequence[Number] | None = None
    to: Sequence[Number] | None = None
    stiffness: Number = 1.0
    length: Number | None = None
    damping: Number = 0.0

    def __post_init__(self) -> None:
        self.collide = True
        self.at = _place(self.label, self.at)
        self.to = _place(self.label, self.to)
        if self.second is None and self.to is None:
            raise InputError(f"{self.label}: to: a spring to the world needs the point it ends at; none was given")
        self.stiffness = _between(f"{self.label}: stiffness", self.stiffness, 0.0, 1e300)
        self.damping = _between(f"{self.label}: damping", self.damping, 0.0, 1e300)
        if self.length is not None:
            self.length = _between(f"{self.label}: length", self.length, 0.0, 1e300)

    @property
    def places(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Its two ends."""
        return self.at, self.to  # type: ignore[return-value]


def relative(point: Sequence[Number], pose: tuple[float, float, float]) -> tuple[float, float]:
    """A point of the world in the frame at `pose` (x, y, angle)."""
    x, y = point[0] - pose[0], point[1] - pose[1]
    c, s = math.cos(pose[2]), math.sin(pose[2])
    return c * x + s * y, c * y - s * x
