"""Read configurations in YAML: binary, damaged and maliciously large files are rejected, and nothing is imported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from physvision.core.errors import InputError
from physvision.core.files import read_text
from physvision.core.serialization import MAX_DEPTH, check_size

_MAX_BYTES = 2**20


class _Loader(yaml.SafeLoader):
    """Loader of plain values, for which 1e-3 is a number as it is in JSON and in YAML 1.2."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a configuration, a mapping of plain values.

    Raises:
        FileError: The file cannot be read.
        InputError: The file is not a valid configuration.
    """
    values = _load(read_text(path, _MAX_BYTES), str(path))
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected options and their values, got {type(values).__name__}")
    # Aliases of aliases stand for billions of values in a kilobyte.
    check_size(values, str(path))
    return values


def parse_value(text: str) -> Any:
    """Parse a value of the command line: plain YAML, or else the text itself."""
    try:
        return _load(text, "value")
    except InputError:
        return text


def _load(text: str, name: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except RecursionError:
        raise InputError(f"{name}: nested too deeply, expected at most {MAX_DEPTH} levels") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{name}: not YAML of plain values ({' '.join(str(error).split())})") from error
