"""Write tensors as safetensors with a configuration in JSON, or as training checkpoints; read the former safely."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from physvision.core.errors import CheckpointError, FileError, TrainingError
from physvision.core.files import atomic_path
from physvision.core.resources import StrPath, is_file

# Size of a configuration in characters, an MJCF model included.
_MAX_CHARACTERS = 4_000_000


def write_weights(path: StrPath, tensors: Mapping[str, Tensor], configuration: Mapping[str, Any], kind: str) -> Path:
    """Write tensors and their configuration atomically; an existing file is replaced.

    Args:
        path: Path of the file, usually NAME.safetensors.
        tensors: Tensors by name, on any device.
        configuration: Values that JSON can represent.
        kind: Format name, which `read_weights` checks.
    """
    path = Path(path)
    arrays = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    data = save(arrays, {"format": kind, "configuration": json.dumps(dict(configuration))})
    try:
        # Written by Python, since save_file makes files that only their owner can read.
        with atomic_path(path) as hidden, hidden.open("wb") as file:
            file.writelines(_ordered(data))
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error.strerror or error})") from error
    return path


def _ordered(data: bytes) -> tuple[bytes, memoryview]:
    """Header and tensors of a file of safetensors; its metadata, which have any order, in that of their names."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, memoryview(data)[end:]


def describe_weights(path: StrPath) -> tuple[str | None, dict[str, Any]]:
    """Read the format name and the configuration of a valid file, without its tensors."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    return metadata.get("format"), json.loads(metadata.get("configuration", "{}"))


def read_weights(path: StrPath, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors of a file by name, and their configuration.

    Raises:
        CheckpointError: The file is damaged, or of another format.
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


def read_saved(path: StrPath) -> Any:
    """Read tensors and plain values that torch saved; any other content is rejected.

    Raises:
        CheckpointError: The file is missing, damaged, compressed, or holds objects that would have to be unpickled.
    """
    if not is_file(Path(path)):
        raise CheckpointError(f"{path}: no such file")
    try:
        size = _unpacked_size(path)
        if size > Path(path).stat().st_size:
            raise CheckpointError(f"{path}: refused, for it would grow to {size:,} bytes; torch compresses no file")
        return torch.load(path, map_location="cpu", weights_only=True)
    except CheckpointError:
        raise
    except Exception as error:  # torch raises whatever its reading of a damaged file comes across
        # Its message is left out, since it tells how to load the file all the same.
        raise CheckpointError(
            f"{path}: refused, for it is damaged or holds more than tensors and plain values; loading it could run "
            "foreign code"
        ) from error


def _unpacked_size(path: StrPath) -> int:
    """Size of what a zip file holds, 0 for any other file; compressed, it can be a thousand times that of the file."""
    if not zipfile.is_zipfile(path):
        return 0
    with zipfile.ZipFile(path) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def read_state_dict(path: StrPath) -> Mapping[str, Tensor]:
    """Read the state dict of a network that torch saved.

    Raises:
        CheckpointError: There is no such file, or it holds something else.
    """
    weights = read_saved(path)
    if not isinstance(weights, Mapping) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise CheckpointError(f"weights: {path} holds no state dict; save the state_dict() of torchvision's network")
    return weights


def read_configuration(path: str, text: object) -> dict[str, Any]:
    """Parse the configuration that a file holds as JSON."""
    if not isinstance(text, str) or len(text) > _MAX_CHARACTERS:
        raise CheckpointError(f"{path}: expected a configuration of at most {_MAX_CHARACTERS:,} characters")
    try:
        configuration = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: its configuration cannot be read ({error})") from error
    if not isinstance(configuration, dict):
        raise CheckpointError(f"{path}: expected a mapping as configuration, got {type(configuration).__name__}")
    return configuration


def write_atomically(checkpoint: dict[str, Any], path: Path) -> None:
    """Write `checkpoint` to `path`; an existing file stays untouched if that fails."""
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    try:
        with atomic_path(path) as hidden:
            hidden.write_bytes(buffer.getbuffer())
    except OSError as error:
        raise TrainingError(
            f"{path}: the checkpoint cannot be written ({error.strerror}); the previous one is kept. Free "
            "some space and resume from it (`fit` with --ckpt_path)"
        ) from error
