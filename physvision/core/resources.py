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


def exists(path: Path) -> bool:
    """Return true if there is a file or folder at `path`, false also of names that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Return true if there is a file at `path`, false also of names that no file can have."""
    return exists(path) and path.is_file()


def find_configuration(name: str, kind: str) -> Path:
    """Locate a configuration as `find` does; `kind`/NAME is a shipped one where there is no such path."""
    path = Path(name)
    return find(path.name if not exists(path) and path.parent.name == kind else name, kind)


def find(name: str, kind: str) -> Path:
    """Locate a file: `name` is an existing path, or the name of a file in the folder `kind`."""
    path = Path(name)
    if exists(path):
        return path
    shipped = folder(kind) / name
    if exists(shipped):
        return shipped
    suffix = ".safetensors" if kind == "models" else ".yaml"
    names = ", ".join(sorted(entry.name for entry in folder(kind).iterdir() if entry.suffix == suffix))
    raise FileError(f"{name!r} is neither a file nor one of the {kind} that come with physvision ({names})")
