"""Meshes that a file names by their package, as ROS does: `package://NAME/path`."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import mujoco

from physvision.core import FileError

_PREFIX = "package://"


def find_meshes(
    specification: mujoco.MjSpec, file: Path | None, packages: Sequence[str | os.PathLike[str]], name: str
) -> None:
    """Give every mesh of a package the path that it has on this machine.

    A package is a folder of its name: in one of `packages`, or around the model's file or beside what is around it.
    """
    around = [] if file is None else list(file.resolve().parents)
    for mesh in specification.meshes:
        if not mesh.file.startswith(_PREFIX):
            continue
        package, _, rest = mesh.file.removeprefix(_PREFIX).partition("/")
        folders = [Path(each) / package for each in packages]
        folders += [each for each in around if each.name == package] + [each / package for each in around]
        found = next((folder / rest for folder in folders if (folder / rest).is_file()), None)
        if found is None:
            raise FileError(
                f"{name}: mesh {mesh.file!r} is not there; name the folder that holds {package!r} in packages=(…)"
            )
        mesh.file = str(found.resolve())
