"""Write files completely or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def partial(path: Path) -> Path:
    """Hidden name of a file until it is complete, with the number of the writing process."""
    return path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a hidden path to write a file at, which is flushed to the disk and renamed, or removed after an error.

    Raises:
        OSError: The file cannot be written; an existing one stays untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = partial(path)
    try:
        yield hidden
        with hidden.open("rb") as file:
            os.fsync(file.fileno())
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def remove_stale_partials(folder: Path) -> None:
    """Remove the files that killed processes left under hidden names."""
    for path in folder.glob(".*.partial*"):
        if writer := re.search(r"\.(\d+)\.partial", path.name):
            try:
                os.kill(int(writer[1]), 0)
            except ProcessLookupError:
                path.unlink(missing_ok=True)
            except PermissionError:
                pass  # it runs, as another user
