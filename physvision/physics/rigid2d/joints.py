"""Joints and springs between two bodies, or a body and the world. Points are given in the world, at the start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from physvision.core import InputError
from physvision.physics.rigid2d.bodies import Body, Number, _between, _numbers

BodyName = Body | str | int | None
Anchors = tuple[tuple[float, ...] | None, tuple[float, ...] | None]


@dataclass(eq=False)
class Joint:
    """Base of all joints between two bodies, each given as itself, by name or by number.

    Attributes:
        first: First body.
        second: Second body; None for the world.
        collide: If true, the two bodies also touch each other.
        name: Name in messages.
    """

    first: BodyName
    second: BodyName = None
    collide: bool = field(default=False, kw_only=True)
    name: str = field(default="", kw_only=True)

    rows: ClassVar[tuple[int, ...]] = ()

    @property
    def label(self) -> str:
        """Name of the joint in messages."""
        return self.name or type(self).__name__

    @property
    def anchors(self) -> Anchors:
        """Points of the world that it holds on either body; None for the first body's center."""
        at = getattr(self, "at", None)
        return at, at


def _point(label: str, at: Sequence[Number] | None) -> tuple[float, ...] | None:
    return None if at is None else _numbers(f"{label}: at", at, 2)


@dataclass(eq=False)
class Revolute(Joint):
    """Pin about which two bodies turn.

    Attributes:
        first: Body that motor and spring turn; the second is turned the other way.
        second: Second body; None for the world.
        at: Position (x, y) of the pin; None for the first body's center.
        limits: Lower and upper bound of the angle between the two, relative to that at the start, in radians.
        motor: If true, controls hold a torque for it.
        stiffness: Torque per radian, back to the angle at the start.
        damping: Torque per radian a second.
    """

    at: Sequence[Number] | None = None
    limits: Sequence[Number] | None = None
    motor: bool = False
    stiffness: Number = 0.0
    damping: Number = 0.0

    rows = (0, 1)

    def __post_init__(self) -> None:
        self.at = _point(self.label, self.at)
        self.stiffness = _between(f"{self.label}: stiffness", self.stiffness, 0.0, 1e300)
        self.damping = _between(f"{self.label}: damping", self.damping, 0.0, 1e300)
        if self.limits is not None:
            low, high = _numbers(f"{self.label}: limits", self.limits, 2)
            if not low <= 0.0 <= high or low == high:
                raise InputError(f"{self.label}: limits: expected lower ≤ 0 ≤ upper, not equal, got {self.limits!r}")


@dataclass(eq=False)
class Weld(Joint):
    """Rigid connection of two bodies.

    Attributes:
        first: First body.
        second: Second body; None for the world.
        at: Position (x, y) where it takes the load; None for the first body's center.
    """

    at: Sequence[Number] | None = None

    rows = (0, 1, 2)

    def __post_init__(self) -> None:
        self.at = _point(self.label, self.at)


@dataclass(eq=False)
class HoldX(Joint):
    """Joint that holds the x of a point of one body equal to that of a point of the other: it slides along y.

    Attributes:
        first: First body.
        second: Second body; None for the world.
        at: Position (x, y) of the point; None for the first body's center.
    """

    at: Sequence[Number] | None = None

    rows = (0,)

    def __post_init__(self) -> None:
        self.at = _point(self.label, self.at)


@dataclass(eq=False)
class HoldY(HoldX):
    """Joint that holds the y of a point of one body equal to that of a point of the other: it slides along x."""

    rows = (1,)


@dataclass(eq=False)
class HoldAngle(Joint):
    """Joint that holds the angle between two bodies, which do not turn against each other.

    Attributes:
        first: First body.
        second: Second body; None for the world.
    """

    rows = (2,)


@dataclass(eq=False)
class Spring(Joint):
    """Spring and damper between a point of one body and a point of another, or of the world; bodies still collide.

    Attributes:
        first: First body.
        second: Second body; None for the world.
        at: End (x, y) on the first body; None for that body's center.
        to: End (x, y) on the second; None for that body's center, and needed for the world.
        stiffness: Force per length.
        length: Rest length; None for its length at the start.
        damping: Force per speed.
    """

    at: Sequence[Number] | None = None
    to: Sequence[Number] | None = None
    stiffness: Number = 1.0
    length: Number | None = None
    damping: Number = 0.0

    def __post_init__(self) -> None:
        self.collide = True
        self.at = _point(self.label, self.at)
        self.to = _point(self.label, self.to)
        if self.second is None and self.to is None:
            raise InputError(f"{self.label}: to: a spring to the world needs the point it ends at; none was given")
        self.stiffness = _between(f"{self.label}: stiffness", self.stiffness, 0.0, 1e300)
        self.damping = _between(f"{self.label}: damping", self.damping, 0.0, 1e300)
        if self.length is not None:
            self.length = _between(f"{self.label}: length", self.length, 0.0, 1e300)

    @property
    def anchors(self) -> Anchors:
        """Its two ends in the world."""
        return self.at, self.to  # type: ignore[return-value]


def relative(point: Sequence[Number], pose: tuple[float, float, float]) -> tuple[float, float]:
    """Return a point of the world in the frame at `pose` (x, y, angle)."""
    x, y = point[0] - pose[0], point[1] - pose[1]
    c, s = math.cos(pose[2]), math.sin(pose[2])
    return c * x + s * y, c * y - s * x
