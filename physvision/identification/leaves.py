"""Leaves of an engine's properties by the names that people give them: `mass:cart`, `joint_damping:hinge`, `gravity:z`.

A name is the leaf's, then, after colons, the row's (a body, a joint, a shape) and the axis (x, y, z or a number). What
is left out means all rows, which then share one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from physvision.core import InputError
from physvision.estimation import Unknown
from physvision.physics import Engine
from physvision.physics.properties import Leaf

_AXES = {"x": 0, "y": 1, "z": 2}
_DIMENSIONS = ("bodies", "moving", "joints", "springs", "shapes", "nq", "nv")  # whose rows have names


@dataclass(frozen=True)
class Place:
    """Where in an engine's properties one number stands.

    Attributes:
        leaf: name of the leaf.
        mask: which of the leaf's numbers it is, in the leaf's shape.
        unit: SI.
        low: the leaf's own lower bound.
        high: the leaf's own upper bound.
        own: the engine's number.
    """

    leaf: str
    mask: Tensor
    unit: str
    low: float
    high: float
    own: float


def place_of(engine: Engine, name: str) -> Place:
    """Which numbers of the engine's properties a name means."""
    leaf, *rest = name.split(":")
    leaves = engine.properties.leaves()
    if leaf not in leaves:
        raise InputError(f"{name}: no property {leaf!r}; there are {', '.join(leaves) or 'none'}")
    value = dict(engine.properties.items())[leaf]
    described = leaves[leaf]
    mask = torch.zeros(value.shape, dtype=torch.bool)
    mask[_indices(engine, name, described, rest, tuple(value.shape))] = True
    if not bool(mask.any()):
        raise InputError(f"{name}: the scene has nothing with this property")
    low, high = {"any": (-np.inf, np.inf), "share": (0.0, 1.0), "not nan": (-np.inf, np.inf)}.get(
        described.range, (0.0, np.inf)
    )
    return Place(leaf, mask, described.unit, low, high, float(value[mask].mean()))


def _indices(engine: Engine, name: str, leaf: Leaf, words: Sequence[str], shape: tuple[int, ...]) -> tuple:
    """Along each dimension of the leaf, what is meant."""
    left, found = list(words), []
    for dimension, size in zip(leaf.shape, shape, strict=True):
        if dimension in _DIMENSIONS:
            rows = list(engine.rows.get(str(dimension), [str(k) for k in range(size)]))
            if not left:
                found.append(slice(None))
                continue
            word = left.pop(0)
            chosen = [k for k, row in enumerate(rows) if row == word]
            if not chosen:
                raise InputError(f"{name}: nothing is called {word!r}; there are {', '.join(filter(None, rows))}")
            found.append(chosen)
        else:
            if not left:
                raise InputError(f"{name}: say along which axis, as {name}:{'z' if size == 3 else 'x'}")
            axis, *after = left.pop(0)
            left[:0] = ["".join(after)] if after else []
            number = _AXES.get(axis, int(axis) if axis.isdigit() else size)
            if number >= size:
                raise InputError(f"{name}: no axis {axis!r}; there are {', '.join('xyz'[:size])}")
            found.append(number)
    if left:
        raise InputError(f"{name}: {leaf.meaning} has no {':'.join(left)}")
    rows = [k for k, each in enumerate(found) if isinstance(each, list)]
    return tuple(torch.tensor(each) if k in rows else each for k, each in enumerate(found))


def unknown_of(
    place: Place,
    name: str,
    low: float | None = None,
    high: float | None = None,
    known: tuple[float, float] | None = None,
) -> Unknown:
    """The unknown for a place: between bounds, or known beforehand as a value and its deviation."""
    least, most = place.low if low is None else low, place.high if high is None else high
    if not least < most:
        raise InputError(f"{name}: expected low..high, the first below the second, got {least:g}..{most:g}")
    if known is not None:
        return Unknown(name, known[0], place.low, place.high, known[1] or 1.0, std=known[1], unit=place.unit)
    if least < place.own < most:
        start = place.own
    elif np.isfinite(least) and np.isfinite(most):
        start = (least + most) / 2
    else:
        raise InputError(f"{name}: it is {place.own:g} in the scene; say between which bounds it lies, as {name}=0..1")
    return Unknown(name, start, least, most, abs(start) or 1.0, unit=place.unit)


def with_number(leaf: Tensor, mask: Tensor, number: Tensor) -> Tensor:
    """A leaf, one a world, with a world's number where the mask says so."""
    wide = number.reshape(-1, *[1] * mask.dim())
    return torch.where(mask, wide.to(leaf.dtype), leaf)
