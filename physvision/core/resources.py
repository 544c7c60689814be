"""Find the scripts, configurations and checkpoints that come with physvision, in a clone and in a wheel alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from physvision.core.errors import FileError, InputError
from physvision.core.plain import check_size

_PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = ("datasets", "models", "trainers")
# Bytes, and references to what stands elsewhere in it, of a configuration; references to references grow like 2ⁿ.
_LARGEST, _MOST_REFERENCES = 500_000, 50


def folder(name: str) -> Path:
    """The folder `name`, one of `datasets`, `models`, `trainers`."""
    if name not in FOLDERS:
        raise FileError(f"no folder {name!r} comes with physvision; there are {', '.join(FOLDERS)}")
    for candidate in (_PACKAGE / "resources" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileError(f"the folder {name!r} is missing from this installation of physvision; install it again")


def find(name: str, kind: str) -> Path:
    """The file `name` of the folder `kind`: a path that exists as given, or the name of a file there."""
    path = Path(name)
    if path.exists():
        return path
    shipped = folder(kind) / name
    if shipped.exists():
        return shipped
    names = ", ".join(sorted(entry.name for entry in folder(kind).iterdir()))
    raise FileError(f"{name!r} is neither a file nor one of the {kind} that come with physvision ({names})")


def read_yaml(path: Path) -> dict[str, Any]:
    """The plain values of a configuration.

    Raises:
        InputError: it is no YAML, or far larger than any configuration needs to be.
    """
    try:
        data = path.read_bytes()
        if len(data) > _LARGEST:
            raise InputError(f"{path}: {len(data):,} bytes are no configuration; expected at most {_LARGEST:,}")
        text = data.decode()
        references = sum(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, yaml.SafeLoader))
        if references > _MOST_REFERENCES:
            raise InputError(f"{path}: {references} references (*name); expected at most {_MOST_REFERENCES}")
        values = yaml.safe_load(text)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as YAML in UTF-8 ({error})") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected options and their values, got {type(values).__name__}")
    check_size(values, str(path))
    return values
