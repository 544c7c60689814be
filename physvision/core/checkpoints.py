"""Checkpoints that are whole or not there, also where the disk is full."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import torch

from physvision.core.errors import TrainingError


def write_whole(checkpoint: dict[str, Any], place: Path) -> None:
    """Write `checkpoint`; what was there before stays if that cannot be done.

    It is written beside its place, flushed to the disk and renamed.
    """
    buffer = io.BytesIO()
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
            "on from it (`fit` with --ckpt_path)"
        ) from error
