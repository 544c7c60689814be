"""Models as files: safetensors with the plain configuration that rebuilds the model. Nothing is unpickled."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentError, ArgumentParser
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from physvision.core import CheckpointError, FileError
from physvision.core.resources import find
from physvision.models.autoencoder import PredictiveAutoencoder

FORMAT = "physvision model 1"
# Tensors of at least so many numbers are kept in half precision if the file is to be small.
_LARGE = 100_000


def build(configuration: dict[str, Any]) -> PredictiveAutoencoder:
    """The model that a configuration describes: class paths and their plain arguments, as in trainers/.

    Raises:
        CheckpointError: it names code from outside physvision, or cannot be built.
    """
    foreign = [name for name in _names(configuration) if not name.startswith("physvision.")]
    if foreign:
        raise CheckpointError(f"the configuration names {foreign[0]!r}; a checkpoint may only name parts of physvision")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(PredictiveAutoencoder, "model", required=True)
    try:
        # The parser writes into what it is given.
        return parser.instantiate(parser.parse_object({"model": deepcopy(configuration)})).model
    except (ArgumentError, TypeError, KeyError, ValueError) as error:
        raise CheckpointError(f"the configuration builds no model: {error}") from error


def _names(configuration: Any) -> list[str]:
    """The strings of a configuration that could name code to import."""
    if isinstance(configuration, dict):
        return [name for value in configuration.values() for name in _names(value)]
    if isinstance(configuration, list | tuple):
        return [name for value in configuration for name in _names(value)]
    return [configuration] if isinstance(configuration, str) and "." in configuration else []


def save(
    path: str | os.PathLike[str],
    model: PredictiveAutoencoder,
    configuration: dict[str, Any],
    *,
    small: bool = False,
) -> Path:
    """Write `model` and the configuration that rebuilds it.

    Args:
        path: where to, usually NAME.safetensors; replaced at once or not at all.
        model: whose weights are kept.
        configuration: `build` makes a model of the same architecture of it.
        small: keep large tensors in half precision.
    """
    path = Path(path)
    tensors = {
        name: value.detach().to("cpu", torch.float16 if small and value.numel() >= _LARGE else None).contiguous()
        for name, value in model.state_dict().items()
    }
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, partial, metadata={"format": FORMAT, "configuration": json.dumps(configuration)})
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise FileError(f"{path}: cannot be written ({error.strerror or error})") from error
    return path


def load(name: str | os.PathLike[str]) -> PredictiveAutoencoder:
    """The model `name`: one that comes with physvision ("pendulum"), or the path of a .safetensors file.

    Weights come in float32, in evaluation mode, on the CPU.

    Raises:
        FileError: there is no such model.
        CheckpointError: the file is damaged, not safetensors, or of another architecture.
    """
    shipped = Path(name).suffix == ""
    path = find(f"{name}.safetensors" if shipped else str(name), "models")
    tensors, configuration = _read(path)
    try:
        model = build(configuration)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    check_same(str(path), model.state_dict(), tensors)
    model.load_state_dict({key: value.float() for key, value in tensors.items()})
    return model.eval()


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        # A memory map that is dropped while tensors live would be read after its end; the tensors are copies.
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118  not a mapping
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path}: cannot be read as safetensors ({error}); it is damaged, cut short, or another kind of file"
        ) from error
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{path}: expected the format {FORMAT!r}, got {metadata.get('format')!r}")
    try:
        return tensors, json.loads(metadata["configuration"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path}: its configuration cannot be read ({error})") from error


def check_same(source: str, expected: dict[str, Tensor], found: dict[str, Tensor]) -> None:
    """Raise, naming the first difference, unless two sets of weights are of one architecture."""
    differences = [
        *(f"{key} is missing" for key in expected if key not in found),
        *(f"{key} is not in the model" for key in found if key not in expected),
        *(
            f"{key} has shape {tuple(found[key].shape)}, the model's {tuple(expected[key].shape)}"
            for key in expected
            if key in found and found[key].shape != expected[key].shape
        ),
    ]
    if differences:
        more = f" and {len(differences) - 1} more differences" if len(differences) > 1 else ""
        raise CheckpointError(
            f"{source}: holds another architecture than the model: {differences[0]}{more}; "
            "use the configuration that it was trained with"
        )
