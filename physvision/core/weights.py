"""Tensors as files: safetensors with the plain configuration of what they belong to. Nothing is unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from physvision.core.errors import CheckpointError, FileError

# Characters: of a configuration, an MJCF model included.
_LONGEST = 4_000_000


def write_weights(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], configuration: Mapping[str, Any], kind: str
) -> Path:
    """Write `tensors`; a file that is there is replaced at once or not at all.

    Args:
        path: where to, usually NAME.safetensors.
        tensors: by name, on any device.
        configuration: plain values.
        kind: what the file holds, as `read_weights` will ask for it.
    """
    path = Path(path)
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written by Python, for save_file makes files that nobody else may read.
        partial.write_bytes(save(plain, {"format": kind, "configuration": json.dumps(dict(configuration))}))
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise FileError(f"{path}: cannot be written ({error.strerror or error})") from error
    return path


def describe_weights(path: str | os.PathLike[str]) -> tuple[str | None, dict[str, Any]]:
    """What a sound file holds, and its configuration, without its tensors."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    return metadata.get("format"), json.loads(metadata.get("configuration", "{}"))


def read_weights(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file by name, and their configuration.

    Raises:
        CheckpointError: it is damaged, or of another kind.
    """
    if not Path(path).is_file():
        raise FileError(f"there is no file {os.fspath(path)!r}")
    try:
        # A memory map that is dropped while tensors live would be read after its end; the tensors are copies.
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118  not a mapping
    except Exception as error:
        raise CheckpointError(
            f"{path}: cannot be read as safetensors ({error}); it is damaged, cut short, or another kind of file"
        ) from error
    if metadata.get("format") != kind:
        raise CheckpointError(f"{path}: expected the format {kind!r}, got {metadata.get('format')!r}")
    return tensors, read_configuration(str(path), metadata.get("configuration"))


def read_configuration(path: str, text: object) -> dict[str, Any]:
    """The configuration that a file holds as JSON."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise CheckpointError(f"{path}: holds no configuration, or one of more than {_LONGEST:,} characters")
    try:
        configuration = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: its configuration cannot be read ({error})") from error
    if not isinstance(configuration, dict):
        raise CheckpointError(
            f"{path}: expected a configuration of names and values, got {type(configuration).__name__}"
        )
    return configuration
