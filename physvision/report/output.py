"""Output folder, created when there is something to write, without partial files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from physvision.core import FileError, StrPath


def partial(path: Path) -> Path:
    """Hidden name of a file until it is complete, with the number of the writing process."""
    return path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a hidden name to write a file under, which gets its own name at the end and is removed after an error."""
    hidden = partial(path)
    try:
        yield hidden
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


class OutputFolder:
    """Context manager that creates a folder, and removes what it created if nothing was written before an error."""

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        self._created: list[Path] = []

    def __enter__(self) -> Path:
        """Create the folder, check that it is writable, and remove partial files of killed processes.

        Raises:
            FileError: The folder cannot be created or written to.
        """
        self._created = [path for path in (self.path, *self.path.parents) if not path.exists()]
        probe, action = partial(self.path / "physvision"), "be made a folder"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            action = "be written to"
            probe.write_bytes(b"?")
            probe.unlink()
        except OSError as error:
            raise FileError(f"{self.path}: cannot {action} ({error.strerror}); choose another output folder") from error
        for path in self.path.glob(".*.partial*"):
            writer = re.search(r"\.(\d+)\.partial", path.name)
            if writer and not _is_running(int(writer[1])):
                path.unlink(missing_ok=True)
        return self.path

    def __exit__(self, kind, error, traceback) -> None:
        if error is not None:
            for path in self._created:
                if path.is_dir() and not any(path.iterdir()):
                    path.rmdir()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
