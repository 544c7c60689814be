"""Meshes with ROS package paths, `package://NAME/path`."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import mujoco

from physvision.core import FileError

_PREFIX = "package://"


def resolve_meshes(
    specification: mujoco.MjSpec, file: Path | None, packages: Sequence[str | os.PathLike[str]], name: str
) -> None:
    """Replace the package path of every mesh by its path on this machine.

    A package is a folder of its name in one of `packages`, among the parents of the model file, or beside one of them.

    Args:
        specification: Specification of the model, changed in place.
        file: Path of the model file; None for inline XML.
        packages: Folders that hold packages.
        name: Name of the model, for messages.
    """
    parents = [] if file is None else list(file.resolve().parents)
    for mesh in specification.meshes:
        if not mesh.file.startswith(_PREFIX):
            continue
        package, _, rest = mesh.file.removeprefix(_PREFIX).partition("/")
        folders = [Path(folder) / package for folder in packages]
        folders += [parent for parent in parents if parent.name == package] + [parent / package for parent in parents]
        path = next((folder / rest for folder in folders if (folder / rest).is_file()), None)
        if path is None:
            raise FileError(
                f"{name}: mesh {mesh.file!r} does not exist; name the folder that holds {package!r} in packages=(…)"
            )
        mesh.file = str(path.resolve())
