"""Packages that only some of this is for."""

from __future__ import annotations

import importlib
from types import ModuleType

from physvision.core import MissingError


def needed(module: str, extra: str) -> ModuleType:
    """The module, of a package that the extra brings.

    Raises:
        MissingError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingError(
            f'{package} is not installed, and this needs it: pip install "physvision[{extra}]"'
        ) from error
