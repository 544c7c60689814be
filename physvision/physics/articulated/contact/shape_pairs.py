"""Pairs of shapes that may collide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

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
from physvision.physics.articulated.contact.features import pair_features
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


def default_shape_pairs(
    tree: KinematicTree, geometry: Sequence[Placed], exclude: Sequence[tuple[str, str]], rotational_friction: bool
) -> list[ShapePair]:
    """Pairs of all shapes on different links, except those of parent and child and of excluded bodies.

    Shapes that are fixed to the world collide with everything that moves.

    Args:
        tree: Kinematic tree of the bodies.
        geometry: Shapes of the engine.
        exclude: Pairs of names of bodies that do not collide.
        rotational_friction: If true, all pairs have torsional and rolling friction.
    """
    excluded = _excluded_bodies(tree, exclude)
    pairs = []
    for first, second in combinations(range(len(geometry)), 2):
        a, b = (tree.shape_link(geometry[row]) for row in (first, second))
        related = b in (a, tree.parent_body_link(a)) or a == tree.parent_body_link(b)
        bodies = frozenset((geometry[first].body, geometry[second].body))
        if a == b or (related and -1 not in (a, b)) or bodies in excluded:
            continue
        for row in (first, second):
            if isinstance(geometry[row].shape, Rectangle):
                raise UnsupportedError(
                    f"contact: rectangle {_describe(tree, geometry[row])} cannot collide; use a Plane or a flat Box"
                )
        pairs.append(ShapePair(first, second, has_rotational_friction=rotational_friction))
    return pairs


def check_shape_pairs(tree: KinematicTree, geometry: Sequence[Placed], pairs: Sequence[ShapePair]) -> None:
    """Raise for the first pair of shapes whose collision is not supported, and for shapes without a size."""
    for pair in pairs:
        if pair.tendon is not None:
            continue
        first, second = geometry[pair.first], geometry[pair.second]
        _check_size(tree, first)
        _check_size(tree, second)
        if pair_features(first.shape, second.shape) is None:
            kinds = [type(placed.shape).__name__.lower() for placed in (first, second)]
            raise UnsupportedError(
                f"contact: collision of {kinds[0]} {_describe(tree, first)} with {kinds[1]} {_describe(tree, second)} "
                f"is not supported; exclude the pair, or use another shape"
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
            f"contact: {type(placed.shape).__name__.lower()} {_describe(tree, placed)}: expected sizes above zero of a "
            f"shape that can collide, got {placed.shape.sizes}"
        )


def _describe(tree: KinematicTree, placed: Placed) -> str:
    """Name of a shape and of its body, for messages."""
    body = "the world" if placed.body is None else f"body {tree.body_names[placed.body]!r}"
    return f"{placed.name!r} of {body}" if placed.name else f"of {body}"


def _excluded_bodies(tree: KinematicTree, exclude: Sequence[tuple[str, str]]) -> set[frozenset[int | None]]:
    number: dict[str, int | None] = {name: row for row, name in enumerate(tree.body_names)}
    number.setdefault("world", None)
    for pair in exclude:
        if isinstance(pair, str) or len(pair) != 2 or set(pair) - set(number):
            raise InputError(f"exclude: expected pairs of names of bodies (or 'world'), got {pair!r}")
    return {frozenset(number[name] for name in pair) for pair in exclude}
