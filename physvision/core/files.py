"""Write files completely or not at all."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HOST = re.sub(r"[^\w-]", "-", socket.gethostname())


def partial(path: Path) -> Path:
    """Hidden name of a file until it is complete, with the machine and the number of the writing process."""
    return path.with_name(f".{path.stem}.{_HOST}-{os.getpid()}.partial{path.suffix}")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a hidden path to write a file at, which is flushed to the disk and renamed, or removed after an error.

    Files that killed processes left in its folder are removed first.

    Raises:
        OSError: The file cannot be written; an existing one stays untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_partials(path.parent)
    hidden = partial(path)
    try:
        yield hidden
        with hidden.open("rb") as file:
            os.fsync(file.fileno())
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def remove_stale_partials(folder: Path) -> None:
    """Remove the files that killed processes of this machine left under hidden names."""
    for path in folder.glob(".*.partial*"):
        if writer := re.search(rf"\.{_HOST}-(\d+)\.partial", path.name):
            try:
                os.kill(int(writer[1]), 0)
            except ProcessLookupError:
                path.unlink(missing_ok=True)
            except PermissionError:
                pass  # it runs, as another user
