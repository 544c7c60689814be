"""Write training checkpoints atomically: complete or not at all, also when the disk is full."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import torch

from physvision.core.errors import TrainingError


def write_atomically(checkpoint: dict[str, Any], path: Path) -> None:
    """Write `checkpoint` to `path`; an existing file stays untouched if that fails.

    The file is written beside its destination, flushed to the disk and renamed.
    """
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise TrainingError(
            f"{path}: the checkpoint cannot be written ({error.strerror}); the previous one is kept. Free "
            "some space and resume from it (`fit` with --ckpt_path)"
        ) from error
