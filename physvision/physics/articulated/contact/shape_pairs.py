"""Which shapes of a world may touch each other."""

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
from physvision.physics.articulated.contact.features import features
from physvision.physics.articulated.model.kinematic_tree import Model


@dataclass(frozen=True)
class Touching:
    """Two shapes that may touch, by their rows in the engine's geometry, and how their friction mixes.

    Attributes:
        first: row of one shape.
        second: row of the other.
        friction: a coefficient of the pair's own; None to mix those of the shapes.
        prevails: 1 where the first shape's friction is the pair's, −1 where the second's is, 0 where both count.
        slippery: whether there is no friction, whatever the shapes have.
        margin: distance at which they touch already, m.
        string: whether it is a string between their origins instead, `-margin` long.
        strut: whether their origins are kept `margin` apart instead.
        turns: whether there is friction against turning, too.
        turning: lengths of the pair's own against spinning and rolling, m; None to mix those of the shapes.
    """

    first: int
    second: int
    friction: float | None = None
    prevails: int = 0
    slippery: bool = False
    margin: float = 0.0
    turns: bool = False
    turning: tuple[float, float] | None = None
    string: bool = False
    strut: bool = False


def all_touching(
    model: Model, geometry: Sequence[Placed], exempt: Sequence[tuple[str, str]], turns: bool = False
) -> list[Touching]:
    """All pairs of shapes of different links, but those of parent and child and of exempt pairs of bodies.

    What is fixed to the world touches whatever moves. All of them, or none, have friction against turning.
    """
    apart = _exempt(model, exempt)
    found = []
    for first, second in combinations(range(len(geometry)), 2):
        links = [link_of(model, geometry[row]) for row in (first, second)]
        related = links[1] in (links[0], carrier(model, links[0])) or links[0] == carrier(model, links[1])
        bodies = frozenset((geometry[first].body, geometry[second].body))
        if links[0] == links[1] or (related and -1 not in links) or bodies in apart:
            continue
        for row in (first, second):
            if isinstance(geometry[row].shape, Rectangle):
                raise UnsupportedError(f"contact: rectangle {named(model, geometry[row])}; use a Plane or a flat Box")
        found.append(Touching(first, second, turns=turns))
    return found


def link_of(model: Model, placed: Placed) -> int:
    """The link that a shape is part of, −1 for the world."""
    return -1 if placed.body is None else int(model.body_link[placed.body])


def carrier(model: Model, link: int) -> int:
    """The link of the body that carries the body of this one; between them are the further joints of the latter."""
    with_bodies = {int(each) for each in model.body_link}
    while link >= 0:
        link = int(model.parent[link])
        if link in with_bodies:
            break
    return link


def named(model: Model, placed: Placed) -> str:
    """A shape and its body, for messages."""
    body = "the world" if placed.body is None else f"body {model.body_names[placed.body]!r}"
    return f"{placed.name!r} of {body}" if placed.name else f"of {body}"


def check_supported(model: Model, geometry: Sequence[Placed], touching: Sequence[Touching]) -> None:
    """Raise for the first pair of shapes that has no rule, and for shapes that have no size."""
    for each in touching:
        if each.string or each.strut:
            continue
        first, second = geometry[each.first], geometry[each.second]
        _check_size(model, first)
        _check_size(model, second)
        if features(first.shape, second.shape) is None:
            kinds = [type(placed.shape).__name__.lower() for placed in (first, second)]
            raise UnsupportedError(
                f"contact: {kinds[0]} {named(model, first)} and {kinds[1]} {named(model, second)}: such a pair is not "
                f"simulated; keep it from touching, or use another shape"
            )


def _check_size(model: Model, placed: Placed) -> None:
    """Raise for a point, a line or a flat thing: nothing says to which side such shapes push each other."""
    match placed.shape:
        case Sphere(radius) | Capsule(radius):  # a capsule without a length is a sphere
            least = radius
        case Cylinder(radius, length):
            least = min(radius, length)
        case Box() | Ellipsoid():
            least = min(placed.shape.sizes)
        case _:
            return
    if least == 0:
        raise ModelError(
            f"contact: {type(placed.shape).__name__.lower()} {named(model, placed)}: expected sizes above zero of what "
            f"can touch, got {placed.shape.sizes}"
        )


def _exempt(model: Model, exempt: Sequence[tuple[str, str]]) -> set[frozenset[int | None]]:
    number: dict[str, int | None] = {name: row for row, name in enumerate(model.body_names)}
    number.setdefault("world", None)
    for pair in exempt:
        if isinstance(pair, str) or len(pair) != 2 or set(pair) - set(number):
            raise InputError(f"exempt: expected pairs of names of bodies (or 'world'), got {pair!r}")
    return {frozenset(number[name] for name in pair) for pair in exempt}
