"""Read files of a limited size, and write files completely or not at all."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from physvision.core.errors import FileError, InputError
from physvision.core.resources import StrPath

_HOST = re.sub(r"[^\w-]", "-", socket.gethostname())


def read_content(path: StrPath, max_bytes: int) -> bytes:
    """Read all of a file; a device, which never ends, and a pipe, which waits for a writer, are refused.

    Raises:
        FileError: There is no such file, or it cannot be read.
        InputError: It has more than `max_bytes` bytes.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise FileError(f"{path}: cannot be read, expected a file and not a folder, a pipe or a device")
        with Path(path).open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:  # ValueError is that of a name that no file can have
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if len(content) > max_bytes:
        raise InputError(f"{path}: expected a file of at most {max_bytes:,} bytes, this one has more")
    return content


def read_text(path: StrPath, max_bytes: int) -> str:
    """Read all of a file of text, as `read_content` does; a mark of the byte order is left out.

    Raises:
        FileError: There is no such file, or it cannot be read.
        InputError: It is too large, or is not in UTF-8.
    """
    content = read_content(path, max_bytes)
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        byte = f"the byte {content[error.start]} at {error.start}"
        raise InputError(f"{path}: expected text in UTF-8, got {byte}; save it as UTF-8") from error


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
