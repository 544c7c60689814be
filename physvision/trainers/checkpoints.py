"""Checkpoints of a training that are whole or not there, also where the disk is full."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import torch
from lightning import Trainer
from lightning.fabric.plugins.io import TorchCheckpointIO

from physvision.core import TrainingError


class WholeCheckpoints(TorchCheckpointIO):
    """Writes a checkpoint beside its place, flushes it to the disk and renames it."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write `checkpoint`; what was there before stays if that cannot be done."""
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        buffer, place = io.BytesIO(), Path(path)
        torch.save(checkpoint, buffer)
        partial = place.with_name(f".{place.name}.partial")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            partial.replace(place)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise TrainingError(
                f"{place}: the checkpoint cannot be written ({error.strerror}); the last one is kept. Make room and go "
                "on from it with --ckpt_path"
            ) from error


def keep_checkpoints_whole(trainer: Trainer) -> None:
    """Have `trainer` write its checkpoints so, unless it was given a way of its own."""
    if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
        trainer.strategy.checkpoint_io = WholeCheckpoints()
