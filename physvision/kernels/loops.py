"""Loops of kernels, as the compiler reads them best.

Warp keeps the index and the step of a `range` in one word of 64 bits and takes them out of it again in each turn. As
nobody can tell that such an index is not negative, each array that it is used on asks, too. A `while` loop has neither
and runs in about half the instructions. So kernels are written with `range`, and Warp is given `while`.

Indices are of arrays: a loop begins, or ends, at zero at the least.
"""

from __future__ import annotations

import linecache
import re
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
from typing import Any, ClassVar

from typing_extensions import override

_LOOP = re.compile(r"^( *)for (\w+) in range\((.*)\):( *#.*)?$")
# What Warp knows when it compiles: it unrolls a short loop.
_CONSTANT = re.compile(r"^[\s\dA-Z_+*/(),-]*$")


def _arguments(text: str) -> list[str]:
    """The arguments of a call, cut at commas outside brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [each.strip() for each in found]


def as_while(line: str) -> str:
    """The line; of a `range` loop by one, up or down, the head of a `while` loop that runs as often."""
    found = _LOOP.match(line)
    if not found or _CONSTANT.match(found[3]):
        return line
    indent, name, inside, _ = found.groups()
    given = _arguments(inside)
    first, last, step = given if len(given) == 3 else (*["0", *given][-2:], "1")
    if step not in ("1", "-1"):
        return line
    if step == "1" and first != "0":
        first = f"wp.max({first}, 0)"
    if step == "-1" and last != "-1":
        last = f"wp.max({last}, -1)"
    lines = (
        f"{name}_next = wp.int32({first})",
        f"{name}_last = wp.int32({last})",
        f"while {name}_next {'<' if step == '1' else '>'} {name}_last:",
        f"    {name} = wp.int32({name}_next)",
        f"    {name}_next += {step}",
    )
    return "\n".join(indent + each for each in lines)


class _KernelLoader(SourceFileLoader):
    """Loads a module of kernels with `while` in place of `range`."""

    @override
    def get_code(self, fullname: str) -> CodeType:
        lines = self.get_data(self.get_filename(fullname)).decode().split("\n")
        source = "\n".join(map(as_while, lines))
        # Warp reads the source of what it compiles.
        place = f"<{fullname}>"
        linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
        return compile(source, place, "exec", dont_inherit=True)


class KernelFinder(PathFinder):
    """Finds the modules of packages of kernels, the names of which it is given."""

    packages: ClassVar[set[str]] = set()

    @classmethod
    @override
    def find_spec(cls, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname.rpartition(".")[0] not in cls.packages:
            return None
        found = super().find_spec(fullname, path, target)
        if found is None or found.origin is None:
            return found
        return spec_from_file_location(fullname, found.origin, loader=_KernelLoader(fullname, found.origin))
