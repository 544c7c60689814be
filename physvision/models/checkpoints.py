"""Modules as files: safetensors with the plain configuration that rebuilds the module, without pickles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import torch
from torch import Tensor, nn

from physvision.core import CheckpointError, InputError, serialization
from physvision.core.memory_limit import Budget
from physvision.core.resources import find, folder
from physvision.core.weights import describe_weights, read_configuration, read_saved, read_weights, write_weights
from physvision.models.autoencoder import PredictiveAutoencoder
from physvision.perception import flow  # noqa: F401  a configuration may name its parts
from physvision.physics import articulated, rigid2d  # noqa: F401  likewise

FORMAT = "physvision model 1"
# Smallest tensor that small files store in half precision, numbers.
_LARGE = 100_000
# Numbers that building may allocate beyond one a byte of the file: engine buffers, intermediate values.
_BUILD_BUDGET = 20_000_000
# Calls of Python's functions that building may take; those of physvision's models take up to 50,000.
_BUILD_CALLS = 1_000_000
# Largest count in the configuration of a checkpoint; seeds may be larger.
_MAX_COUNT = 1_000_000_000

Kind = TypeVar("Kind", bound=nn.Module)


def build(configuration: dict[str, Any], kind: type[Kind] = PredictiveAutoencoder) -> Kind:
    """Build a module from its configuration: names of registered parts and their plain arguments, as in trainers/.

    Raises:
        CheckpointError: it names what is not registered, or cannot be built.
    """
    try:
        return serialization.build(configuration, kind)
    except Exception as error:  # whatever a part makes of arguments that make no sense
        raise CheckpointError(f"the configuration builds no {kind.__name__}: {error}") from error


def save(path: str | os.PathLike[str], module: nn.Module, *, small: bool = False) -> Path:
    """Write the weights and the configuration of `module` to a file.

    Args:
        path: Output path, usually NAME.safetensors; the write is atomic.
        module: A model, encoder, decoder or engine whose class is registered, as all of physvision's are.
        small: If true, store large tensors in half precision.

    Raises:
        InputError: the module's class, or a part of it, is not registered; see `register`.
    """
    tensors = {
        name: value.to(torch.float16) if small and value.numel() >= _LARGE else value
        for name, value in module.state_dict().items()
    }
    return write_weights(path, tensors, stored_configuration(module), FORMAT)


def stored_configuration(module: nn.Module) -> dict[str, Any]:
    """Describe how to rebuild a module that is saved with its weights: files of initial weights are left out."""

    def without_weights(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: None if key == "weights" else without_weights(entry) for key, entry in value.items()}
        return [without_weights(entry) for entry in value] if isinstance(value, list) else value

    return without_weights(serialization.configuration_of(module))


def shipped() -> list[str]:
    """List the pretrained models of physvision that name the videos they were made for."""
    names = []
    for path in sorted(folder("models").glob("*.safetensors")):
        kind, configuration = describe_weights(path)
        if kind == FORMAT and configuration.get("init_args", {}).get("scene"):
            names.append(path.stem)
    return names


@overload
def load(name: str | os.PathLike[str]) -> PredictiveAutoencoder: ...
@overload
def load(name: str | os.PathLike[str], kind: type[Kind]) -> Kind: ...
def load(name: str | os.PathLike[str], kind: type[nn.Module] = PredictiveAutoencoder) -> nn.Module:
    """Load a module: a pretrained one ("pendulum"), a .safetensors file, or a training checkpoint (.ckpt).

    Weights come in float32, in evaluation mode, on the CPU.

    Args:
        name: Name of a shipped model, or path of a file.
        kind: Expected class: a model if not given, or any other, such as `Engine`.

    Raises:
        FileError: there is no such module.
        CheckpointError: the file is damaged, not safetensors, of another architecture or of another kind.
    """
    path = find(name, "models")
    tensors, configuration = _read_training(path) if path.suffix == ".ckpt" else read_weights(path, FORMAT)
    try:
        _check_counts(configuration)
        with Budget(_BUILD_BUDGET + path.stat().st_size, _BUILD_CALLS):
            module = build(configuration, kind)
        check_weights_match(str(path), module.state_dict(), tensors)
        check_weights_finite(module, tensors)
        module.load_state_dict({key: value.float() for key, value in tensors.items()})
    except (CheckpointError, InputError) as error:
        raise error if str(error).startswith(str(path)) else CheckpointError(f"{path}: {error}") from error
    return module.eval()


def _check_counts(configuration: Any) -> None:
    """Raise for integers that no count of a model needs."""
    stack = [("", configuration)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, int) and value > _MAX_COUNT and name != "seed":
            raise CheckpointError(f"{name}: expected an integer of at most {_MAX_COUNT:,}, got {value:.6g}")
        if isinstance(value, dict):
            stack += [(str(key), entry) for key, entry in value.items()]
        elif isinstance(value, list):
            stack += [(name, entry) for entry in value]


def _read_training(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    checkpoint = read_checkpoint(path)
    if "configuration" not in checkpoint:
        raise CheckpointError(
            f"{path}: does not say how its model is built; it is not one of `physvision fit`, or a class of the model "
            'was not registered: put @register("my.Name"), of physvision.models, above it, and resume the training for '
            "an update, with --import MODULE"
        )
    weights = {
        name.removeprefix("model."): value
        for name, value in checkpoint["state_dict"].items()
        if name.startswith("model.")
    }
    return weights, read_configuration(str(path), checkpoint["configuration"])


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a training checkpoint of tensors and plain values; any other content is rejected.

    Raises:
        CheckpointError: it is missing, damaged, or holds objects that would have to be unpickled.
    """
    checkpoint = read_saved(path)
    weights = checkpoint.get("state_dict") if isinstance(checkpoint, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(name, str) for name in weights):
        raise CheckpointError(f"{path}: is no checkpoint of a training")
    return checkpoint


def check_weights_match(source: str, expected: dict[str, Tensor], actual: dict[str, Tensor]) -> None:
    """Raise, naming the first difference, unless two state dicts have one architecture."""
    differences = [
        *(f"{key} is missing" for key in expected if key not in actual),
        *(f"{key} is not in the model" for key in actual if key not in expected),
        *(
            f"{key} {fault}"
            for key in expected
            if key in actual and (fault := _mismatch(actual[key], expected[key])) is not None
        ),
    ]
    if differences:
        more = f" and {len(differences) - 1} more differences" if len(differences) > 1 else ""
        raise CheckpointError(
            f"{source}: holds another architecture than the model: {differences[0]}{more}; "
            "use the configuration that it was trained with"
        )


def check_weights_finite(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raise, naming the first one, if a parameter is not finite or a buffer, which may have infinite limits, is NaN."""
    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    for name, value in weights.items():
        bad = ~torch.isfinite(value) if name in parameters else torch.isnan(value)
        if bool(bad.any()):
            raise CheckpointError(f"{name} holds {int(bad.sum())} values that are not finite; its training diverged")


def _mismatch(value: object, expected: Tensor) -> str | None:
    """Describe why a value cannot replace a tensor; None if it can."""
    if not isinstance(value, Tensor):
        return f"is a {type(value).__name__}, not a tensor"
    if value.shape != expected.shape:
        return f"has shape {tuple(value.shape)}, the model's {tuple(expected.shape)}"
    if value.layout != torch.strided or value.is_meta or value.is_quantized:
        return "is no dense tensor with numbers of its own"
    if value.is_floating_point() != expected.is_floating_point():
        return f"holds {value.dtype}, the model's {expected.dtype}"
    return None
