"""Workspace of a thread, sliced from two long rows, one of real numbers and one of integers.

A table declares the name and the length of each part. It defines the struct that kernels read, the function that slices
it from the rows, and the lengths of the rows.
"""

from __future__ import annotations

import dataclasses
import linecache
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import warp as wp

_CARVE = """
def carve({arguments}real: wp.array(dtype=scalar), integer: wp.array(dtype=wp.int32)):
    t = Workspace()
    at = wp.int32(0)
    number = wp.int32(0)
{lines}
    return t
"""


class Layout:
    """Parts of the workspace of one thread, in their order.

    Args:
        module: Name of the module of kernels that owns it.
        scalar: Type of the real numbers.
        sizes: Names and types of the sizes from which lengths are computed, parameters of `carve`.
        real: Length of each part of the real numbers by name, an expression in `sizes`.
        whole: Length of each part of the integers by name.
        others: Names and types of further fields of the struct, which are set elsewhere.

    Attributes:
        Workspace: Struct with an array for each part.
        carve: Warp function that slices a workspace: (*sizes, row of real numbers, row of integers) -> Workspace.
    """

    def __init__(
        self,
        module: str,
        scalar: Any,
        sizes: Mapping[str, Any],
        real: Mapping[str, str],
        whole: Mapping[str, str],
        others: Mapping[str, Any] | None = None,
    ) -> None:
        self._parts = real, whole
        self._sizes = tuple(sizes)
        fields = {name: wp.array(dtype=scalar) for name in real} | {name: wp.array(dtype=wp.int32) for name in whole}
        self.Workspace = make_struct("Workspace", module, {**fields, **(others or {})})
        lines = [
            line
            for parts, row, at in ((real, "real", "at"), (whole, "integer", "number"))
            for name, length in parts.items()
            for line in (f"    t.{name} = {row}[{at} : {at} + ({length})]", f"    {at} += ({length})")
        ]
        arguments = "".join(f"{name}: {name}_type, " for name in sizes)
        source = _CARVE.format(arguments=arguments, lines="\n".join(lines)).lstrip()
        types = {f"{name}_type": kind for name, kind in sizes.items()}
        scope = {"wp": wp, "scalar": scalar, "Workspace": self.Workspace, "__name__": module, **types}
        # Warp reads the source of what it compiles.
        place = f"<{module} workspace>"
        linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
        exec(compile(source, place, "exec"), scope)
        self.carve = wp.func(scope["carve"])

    def length(self, *sizes: str) -> tuple[str, str]:
        """Lengths of the two rows as expressions, given the sizes as expressions, for a part of another layout."""
        expressions = dict(zip(self._sizes, sizes, strict=True))
        real, whole = (" + ".join(f"({length})" for length in parts.values()) for parts in self._parts)
        real, whole = (
            re.sub(r"[A-Za-z_.]+", lambda word: expressions.get(word[0], word[0]), length) for length in (real, whole)
        )
        return real, whole

    @cache
    def lengths(self, *sizes: Any) -> tuple[int, int]:
        """Lengths of the two rows of one thread."""
        scope = dict(zip(self._sizes, sizes, strict=True))
        real, whole = (sum(eval(length, {}, scope) for length in parts.values()) for parts in self._parts)
        return real, whole


def make_struct(name: str, module: str, fields: Mapping[str, Any]) -> Any:
    """Return the Warp struct of a module with these fields, types by name."""
    return wp.struct(type(name, (), {"__module__": module, "__annotations__": dict(fields)}))


def settings_struct(module: str, settings: type, scalar: Any) -> Any:
    """Return the struct by which kernels read a settings class: its fields that are whole or real numbers.

    Args:
        module: Name of the module of kernels that owns the struct.
        settings: Frozen dataclass of the settings.
        scalar: Precision of the real numbers.
    """
    types = {"int": wp.int32, "float": scalar}
    fields = {field.name: types[field.type] for field in dataclasses.fields(settings) if field.type in types}
    return make_struct(settings.__name__, module, fields)


def fill_struct(struct: Any, settings: Any) -> Any:
    """Return a new `struct` that holds the numbers of `settings`."""
    values = struct()
    for name in struct.vars:
        setattr(values, name, getattr(settings, name))
    return values
