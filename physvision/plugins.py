"""Plug-ins: modules of one's own, which the command line names by `--import` and which register what they offer.

Nothing else imports them: no file, no checkpoint, and no entry point that was not named.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

from physvision.core.errors import InputError
from physvision.options import take_option

GROUP = "physvision.plugins"
_OPTION = "--import"


def split_imports(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments without `--import NAME`, and these names."""
    return take_option(arguments, _OPTION, "the name of a module")


def load_plugins(names: Iterable[str]) -> None:
    """Import entry points of the group `physvision.plugins`, or modules, also of the working folder.

    Raises:
        InputError: A module is missing, or fails while it is imported.
    """
    if "" not in sys.path and (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)  # last, so that no file of the folder replaces an installed module
    for name in names:
        points = list(entry_points(group=GROUP, name=name))
        try:
            if points:
                points[0].load()
            else:
                importlib.import_module(name)
        except ModuleNotFoundError as error:
            # A module that is missing is one of the path that was asked for, or one that the plug-in imports.
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise InputError(_failure(name, error)) from error
            known = ", ".join(sorted(point.name for point in entry_points(group=GROUP))) or "none"
            raise InputError(
                f"{_OPTION} {name}: there is no such module in the working folder or installed, and no plug-in of this "
                f"name; installed plug-ins: {known}"
            ) from error
        except Exception as error:  # whatever the module raises
            raise InputError(_failure(name, error)) from error


def _failure(name: str, error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    place = f", in {frames[-1].filename}, line {frames[-1].lineno}" if len(frames) > 1 else ""
    return f"{_OPTION} {name}: {type(error).__name__} while it is imported{place}: {error}"
