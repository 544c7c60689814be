"""What a body is put together from, beside its mesh: muscles, and what it touches; and checks of what is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from physvision.core import Box, Circle, InputError, Rectangle, Sphere


@dataclass(frozen=True)
class Muscle:
    """Elements that pull themselves shorter; a control of 1 makes the whole tension.

    Attributes:
        elements: of the mesh.
        direction: of its fibres, at rest.
        tension: Pa, at control 1.
    """

    elements: Sequence[int]
    direction: Sequence[float]
    tension: float


@dataclass(frozen=True)
class Ground:
    """A plane that bodies stay before, and everything behind it.

    Attributes:
        point: a place on the plane, m.
        normal: out of the ground.
        friction: the largest share of the load that holds against slipping.
    """

    point: Sequence[float]
    normal: Sequence[float]
    friction: float = 0.0


@dataclass(frozen=True)
class Solid:
    """A rigid ball, or a box with round edges, that the body touches; it moves in straight lines and does not turn.

    Attributes:
        centre: where it is at the start, m.
        radius: of the ball, or of the box's edges, m; a node that is pressed deeper into a box leaves it no more.
        half_size: from the centre to the faces of the box, less the radius; a ball if not given.
        mass: kg.
        friction: the largest share of the load that holds against slipping.
        held: whether it keeps the velocity that it has.
        pushed: whether controls push it.
    """

    centre: Sequence[float]
    radius: float
    half_size: Sequence[float] | None = None
    mass: float = 1.0
    friction: float = 0.0
    held: bool = False
    pushed: bool = False


def materials_of(given: Sequence[int] | None, elements: int, numbers: dict[str, Any]) -> tuple[np.ndarray, int]:
    """The material of each element, and how many there are."""
    lengths = {name: len(value) for name, value in numbers.items() if isinstance(value, (Sequence, np.ndarray, Tensor))}
    kinds = max(lengths.values(), default=1)
    if any(length not in (1, kinds) for length in lengths.values()):
        raise InputError(f"expected numbers of one material or of all {kinds}, got {lengths}")
    if given is None:
        if kinds not in (1, elements):
            raise InputError(f"materials: {kinds} are given for {elements} elements; say which element is of which")
        return np.arange(elements) if kinds == elements else np.zeros(elements, dtype=np.int64), kinds
    found = np.asarray(given, dtype=np.int64)
    if found.shape != (elements,) or found.min() < 0 or (kinds > 1 and found.max() >= kinds):
        raise InputError(f"materials: expected for each of {elements} elements a number from 0 to {kinds - 1}")
    return found, max(kinds, int(found.max()) + 1)


def listed(name: str, given: Sequence[int], count: int) -> tuple[int, ...]:
    """Numbers of nodes or elements, each once."""
    found = tuple(int(each) for each in given)
    wrong = [each for each in found if not 0 <= each < count]
    if wrong or len(set(found)) < len(found):
        raise InputError(f"{name}: expected different numbers from 0 to {count - 1}, got {wrong or list(found)}")
    return found


def drawn(solid: Solid, axes: int) -> Circle | Sphere | Rectangle | Box:
    """The shape of a solid, whose round edges are drawn sharp."""
    if solid.half_size is None:
        return Circle(solid.radius) if axes == 2 else Sphere(solid.radius)
    sides = [2 * (half + solid.radius) for half in solid.half_size]
    return Rectangle(sides[0], sides[1]) if axes == 2 else Box((sides[0], sides[1], sides[2]))


def vector_of(name: str, given: Sequence[float], axes: int) -> np.ndarray:
    """Finite numbers, one for each axis."""
    found = np.asarray(given, dtype=np.float64)
    if found.shape != (axes,) or not np.isfinite(found).all():
        raise InputError(f"{name}: expected {axes} finite numbers, got {given!r}")
    return found


def direction_of(name: str, given: Sequence[float], axes: int) -> np.ndarray:
    """A vector of length one."""
    found = vector_of(name, given, axes)
    if not found.any():
        raise InputError(f"{name}: expected a direction, got zeros")
    return found / np.linalg.norm(found)
