"""Checkpoints that are whole or not there, also where the disk is full, and weights that a training starts from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightning import Trainer
from lightning.fabric.plugins.io import TorchCheckpointIO
from torch import nn

from physvision.core import InputError
from physvision.core.registry import look_up
from physvision.core.serialization import CLASS
from physvision.core.weights import write_atomically
from physvision.models.checkpoints import check_weights_match, load, read_checkpoint, stored_configuration


class WholeCheckpoints(TorchCheckpointIO):
    """Writes a checkpoint beside its place, flushes it to the disk and renames it."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write `checkpoint`; what was there before stays if that cannot be done."""
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        write_atomically(checkpoint, Path(path))

    def load_checkpoint(self, path: str | Path, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Read a local checkpoint of tensors and plain values, whatever the trainer was told about unpickling."""
        return read_checkpoint(path)


def keep_checkpoints_whole(trainer: Trainer) -> None:
    """Have `trainer` write its checkpoints so, unless it was given a way of its own."""
    if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
        trainer.strategy.checkpoint_io = WholeCheckpoints()


def fault_of_loading(model: nn.Module) -> str | None:
    """Say why a checkpoint of `model` could not be loaded by another program, and how to mend it; None if it could."""
    try:
        configuration = stored_configuration(model)
    except InputError as error:
        return str(error)
    for name in _class_names(configuration):
        if look_up(name).__module__ == "__main__":
            return f"{name} is of the script that runs; move it to a module, and name that by --import MODULE"
    return None


def _class_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get(CLASS), str):
            yield value[CLASS]
        value = list(value.values())
    for entry in value if isinstance(value, list) else ():
        yield from _class_names(entry)


def load_weights(model: nn.Module, name: str) -> None:
    """Give `model` the weights of a model of the same architecture, a shipped one or a file."""
    weights = load(name, type(model)).state_dict()
    check_weights_match(name, model.state_dict(), weights)
    model.load_state_dict(weights)
