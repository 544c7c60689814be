"""Pairs of shapes that may collide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from physvision.core import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    InputError,
    ModelError,
    Placed,
    Rectangle,
    Sphere,
    UnsupportedError,
)
from physvision.physics.articulated.contact.features import supported_pairs
from physvision.physics.articulated.model.kinematic_tree import KinematicTree


@dataclass(frozen=True)
class ShapePair:
    """Two shapes that may collide, by their rows in the engine's geometry, and the mixing of their friction.

    Attributes:
        first: Row of the first shape.
        second: Row of the second shape.
        friction: Coefficient of friction of the pair; None to mix those of the shapes.
        priority: Shape whose friction is the pair's: 1 for the first, −1 for the second, 0 for both.
        frictionless: If true, the pair has no friction.
        margin: Separation at which contact begins, m; of a tendon its largest or smallest length.
        has_rotational_friction: If true, the pair has torsional and rolling friction.
        rotational_friction: Lengths (torsional, rolling) of the pair, m; None to mix those of the shapes.
        tendon: Unilateral distance constraint between the origins of the shapes in place of contact: "max_length" or
            "min_length"; None for contact.
        is_held: If true, a penetration is no failure and is not resolved: by events, the pair does not get deeper, and
            collides as others do once it has separated.
    """

    first: int
    second: int
    friction: float | None = None
    priority: int = 0
    frictionless: bool = False
    margin: float = 0.0
    has_rotational_friction: bool = False
    rotational_friction: tuple[float, float] | None = None
    tendon: str | None = None
    is_held: bool = False


_ROW = np.dtype(
    [
        *((name, np.int64) for name in ("first", "second", "priority", "tendon")),
        *((name, float) for name in ("friction", "margin")),
        *((name, bool) for name in ("frictionless", "has_rotational_friction", "is_held")),
        ("rotational_friction", float, 2),
    ]
)
# Values of the column `tendon`.
_TENDONS = (None, "max_length", "min_length")


class ShapePairs(Sequence[ShapePair]):
    """Pairs of shapes as the columns of a table, so that many are compiled at once.

    Attributes:
        rows: One record a pair with the fields of `ShapePair`; NaN stands for None, and `tendon` for a number.
    """

    def __init__(self, rows: np.recarray) -> None:
        self.rows = rows

    @staticmethod
    def repeat(count: int, pair: ShapePair) -> ShapePairs:
        """Table of `count` pairs with the values of one."""
        return ShapePairs(np.repeat(ShapePairs.of([pair]).rows, count).view(np.recarray))

    @staticmethod
    def of(pairs: Sequence[ShapePair]) -> ShapePairs:
        """Table of a list of pairs."""
        if isinstance(pairs, ShapePairs):
            return pairs
        rows = np.recarray(len(pairs), _ROW)
        for name in _ROW.names or ():
            rows[name] = [_COLUMNS.get(name, lambda value: value)(getattr(pair, name)) for pair in pairs] or 0
        return ShapePairs(rows)

    def join(self, pairs: Sequence[ShapePair]) -> ShapePairs:
        """Table with further pairs behind these."""
        return ShapePairs(np.concatenate([self.rows, ShapePairs.of(pairs).rows]).view(np.recarray))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> ShapePair: ...
    @overload
    def __getitem__(self, index: slice) -> ShapePairs: ...
    def __getitem__(self, index: int | slice) -> ShapePair | ShapePairs:
        if isinstance(index, slice):
            return ShapePairs(self.rows[index].view(np.recarray))
        values = {name: self.rows[name][index].tolist() for name in _ROW.names or ()}
        friction, lengths = values["friction"], values["rotational_friction"]
        values["friction"] = None if np.isnan(friction) else friction
        values["rotational_friction"] = tuple(lengths) if values["has_rotational_friction"] else None
        return ShapePair(**{**values, "tendon": _TENDONS[values["tendon"]]})


_COLUMNS: dict[str, Callable[[Any], Any]] = {
    "friction": lambda friction: np.nan if friction is None else friction,
    "rotational_friction": lambda lengths: (np.nan, np.nan) if lengths is None else lengths,
    "tendon": _TENDONS.index,
}


def default_shape_pairs(
    tree: KinematicTree, geometry: Sequence[Placed], exclude: Sequence[tuple[str, str]], rotational_friction: bool
) -> ShapePairs:
    """Pairs of all shapes on different links, except those of parent and child and of excluded bodies.

    Shapes that are fixed to the world collide with everything that moves.

    Args:
        tree: Kinematic tree of the bodies.
        geometry: Shapes of the engine.
        exclude: Pairs of names of bodies that do not collide.
        rotational_friction: If true, all pairs have torsional and rolling friction.
    """
    link = np.array([tree.shape_link(placed) for placed in geometry], int)
    parents = {number: tree.parent_body_link(number) for number in set(link.tolist())}
    parent = np.array([parents[number] for number in link.tolist()], int)
    related = parent[:, None] == link[None]
    moves = link != -1
    collide = (link[:, None] != link[None]) & ~((related | related.T) & moves[:, None] & moves[None])
    body = np.array([-1 if placed.body is None else placed.body for placed in geometry], int)
    for pair in _excluded_bodies(tree, exclude):
        ends = [-1 if number is None else number for number in pair]
        sides = body[:, None] == ends[0], body[None] == ends[-1]
        collide &= ~((sides[0] & sides[1]) | (sides[0] & sides[1]).T)
    first, second = np.nonzero(np.triu(collide, 1))
    for row in np.unique([first, second]).tolist():
        if isinstance(geometry[row].shape, Rectangle):
            raise UnsupportedError(
                f"contact: {shape_name(tree, geometry[row])} cannot collide; use a Plane or a flat Box"
            )
    table = ShapePairs.repeat(len(first), ShapePair(0, 0, has_rotational_friction=rotational_friction))
    table.rows.first, table.rows.second = first, second
    return table


def check_shape_pairs(tree: KinematicTree, geometry: Sequence[Placed], pairs: ShapePairs) -> None:
    """Raise for the first pair of shapes whose collision is not supported, and for shapes without a size."""
    rows = pairs.rows[pairs.rows.tendon == 0].view(np.recarray)
    for row in np.unique([rows.first, rows.second]).tolist():
        _check_size(tree, geometry[row])
    supported = supported_pairs([placed.shape for placed in geometry], rows.first, rows.second)
    for pair in np.flatnonzero(~supported)[:1]:
        first, second = geometry[rows.first[pair]], geometry[rows.second[pair]]
        raise UnsupportedError(
            f"contact: collision of {shape_name(tree, first)} with {shape_name(tree, second)} is not supported; "
            "exclude the pair, or use another shape"
        )


def _check_size(tree: KinematicTree, placed: Placed) -> None:
    """Raise for a point, a line or a flat shape, whose contact normal is undefined."""
    match placed.shape:
        case Sphere(radius) | Capsule(radius):  # a capsule without a length is a sphere
            smallest = radius
        case Cylinder(radius, length):
            smallest = min(radius, length)
        case Box() | Ellipsoid():
            smallest = min(placed.shape.sizes)
        case _:
            return
    if smallest == 0:
        raise ModelError(
            f"contact: {shape_name(tree, placed)}: expected sizes above zero of a shape that can collide, "
            f"got {placed.shape.sizes}"
        )


def shape_name(tree: KinematicTree, placed: Placed) -> str:
    """Kind and name of a shape with its body, for messages."""
    body = "the world" if placed.body is None else f"body {tree.body_names[placed.body]!r}"
    kind = type(placed.shape).__name__.lower()
    return f"{kind} {placed.name!r} of {body}" if placed.name else f"{kind} of {body}"


def _excluded_bodies(tree: KinematicTree, exclude: Sequence[tuple[str, str]]) -> set[frozenset[int | None]]:
    number: dict[str, int | None] = {name: row for row, name in enumerate(tree.body_names)}
    number.setdefault("world", None)
    for pair in exclude:
        if isinstance(pair, str) or len(pair) != 2 or set(pair) - set(number):
            raise InputError(f"exclude: expected pairs of names of bodies (or 'world'), got {pair!r}")
    return {frozenset(number[name] for name in pair) for pair in exclude}
