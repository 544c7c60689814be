"""Models as files: safetensors with the plain configuration that rebuilds the model. Nothing is unpickled."""

from __future__ import annotations

import json
import os
import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentError, ArgumentParser
from torch import Tensor

from physvision.core import CheckpointError, FileError
from physvision.core.resources import folder
from physvision.core.weights import describe_weights, read_weights, write_weights
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
    tensors = {
        name: value.to(torch.float16) if small and value.numel() >= _LARGE else value
        for name, value in model.state_dict().items()
    }
    return write_weights(path, tensors, configuration, FORMAT)


def shipped() -> list[str]:
    """Names of the models that come with physvision and say what videos they were made for."""
    names = []
    for path in sorted(folder("models").glob("*.safetensors")):
        kind, configuration = describe_weights(path)
        if kind == FORMAT and configuration.get("init_args", {}).get("scene"):
            names.append(path.stem)
    return names


def load(name: str | os.PathLike[str]) -> PredictiveAutoencoder:
    """The model `name`: one that comes with physvision ("pendulum"), or a .safetensors file or a .ckpt of a training.

    Weights come in float32, in evaluation mode, on the CPU.

    Raises:
        FileError: there is no such model.
        CheckpointError: the file is damaged, not safetensors, or of another architecture.
    """
    return load_with_configuration(name)[0]


def load_with_configuration(name: str | os.PathLike[str]) -> tuple[PredictiveAutoencoder, dict[str, Any]]:
    """The same, and the plain configuration that it was built from."""
    path = _find(str(name))
    tensors, configuration = _read_training(path) if path.suffix == ".ckpt" else read_weights(path, FORMAT)
    try:
        model = build(configuration)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    check_same(str(path), model.state_dict(), tensors)
    model.load_state_dict({key: value.float() for key, value in tensors.items()})
    return model.eval(), configuration


def _find(name: str) -> Path:
    if Path(name).is_file():
        return Path(name)
    if Path(name).suffix == "" and (folder("models") / f"{name}.safetensors").is_file():
        return folder("models") / f"{name}.safetensors"
    raise FileError(
        f"{name!r} is neither a file nor one of the models that come with physvision ({', '.join(shipped())}); name "
        "one of these, a .safetensors file, or a .ckpt of `physvision fit`"
    )


def _read_training(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    checkpoint = read_checkpoint(path)
    if "configuration" not in checkpoint:
        raise CheckpointError(f"{path}: does not say how its model is built; it is not one of `physvision fit`")
    weights = {
        name.removeprefix("model."): value
        for name, value in checkpoint["state_dict"].items()
        if name.startswith("model.")
    }
    return weights, json.loads(checkpoint["configuration"])


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """A training checkpoint: tensors and plain values; whatever else it holds is refused.

    Raises:
        CheckpointError: it is missing, damaged, or holds objects that would have to be unpickled.
    """
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path}: refused, for it is damaged or holds more than tensors and plain values; loading it could run "
            f"foreign code ({str(error).splitlines()[0]})"
        ) from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path}: cannot be read; it is damaged or cut short ({error})") from error
    if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
        raise CheckpointError(f"{path}: is no checkpoint of a training")
    return checkpoint


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
