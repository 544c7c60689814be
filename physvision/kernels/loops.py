"""Translation of `range` loops of kernels to `while` loops, which compile to faster code.

Warp keeps the index and the step of a `range` in one word of 64 bits and takes them out of it again in each turn. As
the compiler cannot tell that such an index is not negative, each array access checks it, too. A `while` loop has
neither and runs in about half the instructions. So kernels are written with `range`, and Warp is given `while`.

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
# Bounds that Warp knows when it compiles: it unrolls such a loop if it is short.
_CONSTANT = re.compile(r"^[\s\dA-Z_+*/(),-]*$")


def _arguments(text: str) -> list[str]:
    """Split the arguments of a call at commas outside brackets."""
    arguments, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += letter
    return [argument.strip() for argument in arguments]


def as_while(line: str) -> str:
    """Translate the head of a `range` loop with step 1 or −1 to that of a `while` loop; other lines stay."""
    match = _LOOP.match(line)
    if not match or _CONSTANT.match(match[3]):
        return line
    indent, name, inside, _ = match.groups()
    arguments = _arguments(inside)
    first, last, step = arguments if len(arguments) == 3 else (*["0", *arguments][-2:], "1")
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
    return "\n".join(indent + row for row in lines)


class KernelLoader(SourceFileLoader):
    """Loader of kernel modules that rewrites `range` loops and directs imports to the packages of one precision."""

    @override
    def get_code(self, fullname: str) -> CodeType:
        lines = self.get_data(self.get_filename(fullname)).decode().split("\n")
        source = "\n".join(as_while(KernelFinder.redirect(line, fullname)) for line in lines)
        # Warp reads the source of what it compiles.
        place = f"<{fullname}>"
        linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
        return compile(source, place, "exec", dont_inherit=True)


class KernelFinder(PathFinder):
    """Finder of the modules of kernel packages that are loaded under names of their own.

    Attributes:
        packages: Package and suffix by the name that a package is loaded under, which is both joined.
    """

    packages: ClassVar[dict[str, tuple[str, str]]] = {}

    @classmethod
    def root(cls, fullname: str) -> str | None:
        """Return the name of the loaded package that a module belongs to, or None."""
        return next((name for name in cls.packages if f"{fullname}.".startswith(f"{name}.")), None)

    @classmethod
    def redirect(cls, line: str, fullname: str) -> str:
        """Direct an absolute import of a kernel package to its copy with the suffix of the importing module."""
        root = cls.root(fullname)
        if root is None or not line.startswith("from "):
            return line
        suffix = cls.packages[root][1]
        for name, (package, other_suffix) in cls.packages.items():
            if suffix == other_suffix and line.startswith((f"from {package}.", f"from {package} ")):
                return f"from {name}{line.removeprefix(f'from {package}')}"
        return line

    @classmethod
    @override
    def find_spec(cls, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if cls.root(fullname) in (None, fullname):
            return None
        spec = super().find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return spec
        loader = KernelLoader(fullname, spec.origin)
        folders = spec.submodule_search_locations
        return spec_from_file_location(fullname, spec.origin, loader=loader, submodule_search_locations=folders)
