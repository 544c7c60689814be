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


def struct(entries: Mapping[str, Any], *tables: Mapping[str, ArrayField], group: str = "") -> Callable[[type], Any]:
    """Decorate a class as a Warp struct of its own fields and an array for each field of the tables.

    The group of a dotted name, the part before the dot, becomes a sub-struct.

    Args:
        entries: Type of each kind of entry in the precision of the kernels.
        tables: Tables of fields by name.
        group: Group to which the fields are limited; without it there are sub-structs for all groups.
    """

    def decorate(declared: type) -> Any:
        names = [name for table in tables for name in table]
        if group:
            names = [name for name in names if name.startswith(f"{group}.")]
        items = {name: table[name] for table in tables for name in table if name in names}
        for name, item in items.items():
            if group or "." not in name:
                kind = wp.array(dtype=entries[item.entry], ndim=1 + len(item.rows))
                declared.__annotations__[name.removeprefix(f"{group}.")] = kind
        for part in () if group else dict.fromkeys(name.partition(".")[0] for name in names if "." in name):
            title = declared.__name__.removesuffix("Struct") + part.title()
            inner = type(title, (), {"__annotations__": {}, "__module__": declared.__module__})
            declared.__annotations__[part] = struct(entries, *tables, group=part)(inner)
        return wp.struct(declared)

    return decorate
