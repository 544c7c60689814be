"""Memory of kernels declared once: a table of fields, from which structs, tensors and Warp arrays follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import warp as wp

SHAPES: dict[str, tuple[int, ...]] = {"scalar": (), "whole": (), "vec3": (3,), "mat33": (3, 3)}


class ArrayField(NamedTuple):
    """One array of a struct, whose first dimension is the world's.

    Attributes:
        entry: what one entry is: "scalar", "whole" (a number), "vec3" or "mat33".
        rows: names of what its further dimensions count.
    """

    entry: str
    rows: tuple[str, ...]

    def shape(self, counts: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of one world's tensor, entries included."""
        return (*(counts[row] for row in self.rows), *SHAPES[self.entry])


def field(entry: str, *rows: str) -> ArrayField:
    """A field of a table; see `ArrayField`."""
    return ArrayField(entry, rows)


def struct(entries: Mapping[str, Any], *tables: Mapping[str, ArrayField]) -> Callable[[type], Any]:
    """Make a Warp struct of a class: what it declares itself, and an array for each field of the tables.

    Args:
        entries: the type of each kind of entry in the precision of the kernels.
        tables: fields by name.
    """

    def made(declared: type) -> Any:
        for table in tables:
            for name, each in table.items():
                declared.__annotations__[name] = wp.array(dtype=entries[each.entry], ndim=1 + len(each.rows))
        return wp.struct(declared)

    return made
