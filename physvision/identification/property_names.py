"""Names of single numbers in an engine's properties, such as `mass:cart`, `joint_damping:hinge` or `gravity:z`.

A name consists of the property, the row (a body, joint or shape) and the axis (x, y, z or a number), with colons
between them. Without a row, all rows share one number.
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
_NAMED_DIMENSIONS = ("bodies", "moving", "joints", "springs", "shapes", "nq", "nv")


@dataclass(frozen=True)
class PropertyEntry:
    """Single number in an engine's properties, or one that several entries share.

    Attributes:
        leaf: Name of the property.
        mask: Mask of the number, or of the numbers that share it, in the shape of the property.
        unit: SI unit.
        low: Lower bound of the property.
        high: Upper bound of the property.
        value: Value in the engine, the mean if several entries share the number.
    """

    leaf: str
    mask: Tensor
    unit: str
    low: float
    high: float
    value: float


def find_entry(engine: Engine, name: str) -> PropertyEntry:
    """Find the number in an engine's properties that a name refers to."""
    leaf, *path = name.split(":")
    leaves = engine.properties.leaves()
    if leaf not in leaves:
        raise InputError(f"{name}: no property {leaf!r}; expected one of {', '.join(leaves) or 'none'}")
    values = dict(engine.properties.items())[leaf]
    description = leaves[leaf]
    mask = torch.zeros(values.shape, dtype=torch.bool)
    mask[_indices(engine, name, description, path, tuple(values.shape))] = True
    if not bool(mask.any()):
        raise InputError(f"{name}: nothing in the scene has this property")
    low, high = {"any": (-np.inf, np.inf), "share": (0.0, 1.0), "not nan": (-np.inf, np.inf)}.get(
        description.range, (0.0, np.inf)
    )
    return PropertyEntry(leaf, mask, description.unit, low, high, float(values[mask].mean()))


def _indices(engine: Engine, name: str, leaf: Leaf, path: Sequence[str], shape: tuple[int, ...]) -> tuple:
    """Return the index along each dimension of the property."""
    parts, indices = list(path), []
    for dimension, size in zip(leaf.shape, shape, strict=True):
        if dimension in _NAMED_DIMENSIONS:
            labels = list(engine.rows.get(str(dimension), [str(k) for k in range(size)]))
            if not parts:
                indices.append(slice(None))
                continue
            part = parts.pop(0)
            matches = [k for k, label in enumerate(labels) if label == part]
            if not matches:
                raise InputError(
                    f"{name}: nothing is called {part!r}; expected one of {', '.join(filter(None, labels))}"
                )
            indices.append(torch.tensor(matches))
        else:
            if not parts:
                raise InputError(f"{name}: an axis is needed, such as {name}:{'z' if size == 3 else 'x'}")
            axis, *rest = parts.pop(0)
            parts[:0] = ["".join(rest)] if rest else []
            index = _AXES.get(axis, int(axis) if axis.isdigit() else size)
            if index >= size:
                raise InputError(f"{name}: no axis {axis!r}; expected one of {', '.join('xyz'[:size])}")
            indices.append(index)
    if parts:
        raise InputError(f"{name}: {leaf.meaning} has no {':'.join(parts)}")
    return tuple(indices)


def bounded_unknown(entry: PropertyEntry, name: str, low: float | None = None, high: float | None = None) -> Unknown:
    """Return the unknown for an entry, between bounds; a bound of None is that of the property."""
    low, high = entry.low if low is None else low, entry.high if high is None else high
    if not low < high:
        raise InputError(f"{name}: expected low..high with low below high, got {low:g}..{high:g}")
    if low < entry.value < high:
        start = entry.value
    elif np.isfinite(low) and np.isfinite(high):
        start = (low + high) / 2
    else:
        raise InputError(
            f"{name}: the scene has {entry.value:g}, which is outside of its bounds; give both bounds, as {name}=0..1"
        )
    return Unknown(name, start, low, high, abs(start) or 1.0, unit=entry.unit)


def replace_entry(values: Tensor, entry: PropertyEntry, number: Tensor) -> Tensor:
    """Return a property batched over worlds, with each world's number at the entry."""
    expanded = number.reshape(-1, *[1] * entry.mask.dim())
    return torch.where(entry.mask, expanded.to(values.dtype), values)
