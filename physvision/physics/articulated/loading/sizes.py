"""Size limits of model files, checked before MuJoCo's compiler, which would crash, hang or take all memory."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from xml.etree import ElementTree

from physvision.core import ModelError
from physvision.physics.articulated.settings import SETTINGS

_SIZES = {"hfield": ("nrow", "ncol"), "texture": ("width", "height"), "flexcomp": ("count",)}
_FOLDERS = ("assetdir", "meshdir", "texturedir")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}


def check_sizes(text: str, folder: Path | None, name: str) -> None:
    """Raise ModelError if a model, or a file that it includes, is too large or names a pipe or a device.

    Args:
        text: XML of the model.
        folder: Folder of included files; None for inline XML.
        name: Name of the model, for messages.
    """
    _SizeCheck(folder, name).run(text)


class _SizeCheck:
    """Check of a model and of the files that it includes, each of which is parsed once."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self.name = name
        # Folders from which files may be named: that of the model, and those of the files that it includes.
        self.roots = [] if folder is None else [folder]
        self.included: set[str] = set()
        self.files: set[str] = set()
        self.folders = {""}

    def run(self, text: str) -> None:
        """Check the elements of the model, and of all files that it includes."""
        # Elements, the number of times that each is made, and the depth of its file.
        stack = [(root, 1, 0) for root in _parse(text)]
        copies = 0
        while stack:
            element, multiplicity, depth = stack.pop()
            self._check_numbers(element)
            if element.tag == "compiler":
                self.folders.update(element.get(key, "") for key in _FOLDERS)
            if element.tag == "include":
                stack += [(root, multiplicity, depth + 1) for root in self._include(element.get("file", ""), depth)]
                continue
            if file := element.get("file"):
                self.files.add(file)
            if element.tag == "replicate":
                multiplicity *= max(1, _integer(element.get("count", "1")))
                copies += multiplicity
                if copies > SETTINGS.max_replicas:
                    raise ModelError(
                        f"{self.name}: its `replicate` elements make {copies} copies; expected at most "
                        f"{SETTINGS.max_replicas}"
                    )
            stack += [(child, multiplicity, depth) for child in element]
        for file in self.files:
            for part in self.folders:
                self._regular_file(os.path.join(part, file))  # noqa: PTH118  an absolute file replaces the folder

    def _include(self, file: str, depth: int) -> list[ElementTree.Element]:
        """Elements of an included file; none if MuJoCo reports that it is missing."""
        path = self._regular_file(file)
        if path is None:
            return []
        if path in self.included or depth >= SETTINGS.max_include_depth:
            raise ModelError(f"{self.name}: {file!r} is included more than once, or too deeply")
        self.included.add(path)
        self.roots.append(Path(path).parent)
        return _parse(Path(path).read_text(errors="replace"))

    def _regular_file(self, file: str) -> str | None:
        """Path of a file beside the model; None if there is none, an error if it is a pipe or a device."""
        for root in self.roots:
            # As MuJoCo does, `a/..` is left out whether or not there is a folder `a`.
            path = os.path.normpath(root / file)
            try:
                mode = os.stat(path).st_mode  # noqa: PTH116
            except (OSError, ValueError):
                continue
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise ModelError(f"{self.name}: expected a file, {file!r} is a pipe or a device")
            if stat.S_ISREG(mode):
                return path
        return None

    def _check_numbers(self, element: ElementTree.Element) -> None:
        numbers = 1
        for attribute in _SIZES.get(element.tag, ()):
            for word in element.get(attribute, "").split():
                numbers *= max(1, _integer(word))
        if element.tag == "size":
            counts = {key: _integer(value) for key, value in element.attrib.items() if key != "memory"}
            numbers = max([*counts.values(), _bytes(element.get("memory", "")) // 8, 1])
        if numbers > SETTINGS.max_asset_numbers * (10 if element.get("memory") else 1):
            raise ModelError(
                f"{self.name}: {element.tag} {element.get('name', '')!r} has {numbers} numbers; expected at most "
                f"{SETTINGS.max_asset_numbers}"
            )


def _parse(text: str) -> list[ElementTree.Element]:
    try:
        return [ElementTree.fromstring(text)]
    except ElementTree.ParseError:
        return []  # MuJoCo reports the error


def _bytes(text: str) -> int:
    """Bytes of a size such as 100M."""
    unit = _UNITS.get(text[-1:].upper(), 1)
    return _integer(text[:-1] if unit > 1 else text) * unit


def _integer(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        return 1
