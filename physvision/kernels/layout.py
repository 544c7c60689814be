"""Declaration of arrays of kernels: tables of fields that define structs, tensors and Warp arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import warp as wp

SHAPES: dict[str, tuple[int, ...]] = {"scalar": (), "whole": (), "vec3": (3,), "mat33": (3, 3)}


class ArrayField(NamedTuple):
    """Array of a struct, whose first dimension is that of the worlds.

    Attributes:
        entry: Kind of an entry: "scalar", "whole" (an integer), "vec3" or "mat33".
        rows: Names of the sizes of its further dimensions.
    """

    entry: str
    rows: tuple[str, ...]

    def shape(self, counts: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of the tensor of one world, entries included."""
        return (*(counts[row] for row in self.rows), *SHAPES[self.entry])


def field(entry: str, *rows: str) -> ArrayField:
    """Field of a table of arrays; see `ArrayField`."""
    return ArrayField(entry, rows)


def struct(entries: Mapping[str, Any], *tables: Mapping[str, ArrayField]) -> Callable[[type], Any]:
    """Decorate a class as a Warp struct of its own fields and an array for each field of the tables.

    Args:
        entries: Type of each kind of entry in the precision of the kernels.
        tables: Tables of fields by name.
    """

    def decorate(declared: type) -> Any:
        for table in tables:
            for name, item in table.items():
                declared.__annotations__[name] = wp.array(dtype=entries[item.entry], ndim=1 + len(item.rows))
        return wp.struct(declared)

    return decorate
