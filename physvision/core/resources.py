"""Find the scripts, configurations and checkpoints that come with physvision, in a clone and in a wheel alike."""

from __future__ import annotations

import os
from pathlib import Path

from physvision.core.errors import FileError

StrPath = str | os.PathLike[str]

_PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = ("datasets", "models", "trainers")


def folder(name: str) -> Path:
    """Locate the folder `name`: `datasets`, `models` or `trainers`."""
    if name not in FOLDERS:
        raise FileError(f"no folder {name!r} comes with physvision; there are {', '.join(FOLDERS)}")
    for candidate in (_PACKAGE / "resources" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileError(f"the folder {name!r} is missing from this installation of physvision; install it again")


def is_file(path: Path) -> bool:
    """Return true if there is a file at `path`, false also of names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def find(name: StrPath, kind: str) -> Path:
    """Locate a file: `name` is its path, or NAME or `kind`/NAME of one that comes with physvision.

    The name of a model needs no suffix.
    """
    path, suffix = Path(name), ".safetensors" if kind == "models" else ".yaml"
    shipped = folder(kind) / (path.name if path.parent.name == kind else path)
    if kind == "models" and not shipped.suffix:
        shipped = shipped.with_name(f"{shipped.name}{suffix}")
    for candidate in (path, shipped):
        if is_file(candidate):
            return candidate
    names = ", ".join(sorted(entry.name for entry in folder(kind).iterdir() if entry.suffix == suffix))
    raise FileError(f"{os.fspath(name)!r} is neither a file nor one of the {kind} that come with physvision ({names})")
