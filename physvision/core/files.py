"""Write files whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file all at once: flushed to the disk under a hidden name beside it, then renamed.

    Raises:
        OSError: The file cannot be written; an existing one stays untouched.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
