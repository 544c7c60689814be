"""The folder that results go to: made when there is something to write, and nothing half-written stays in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from physvision.core import FileError


def partial(path: Path) -> Path:
    """The hidden name that a file has until it is whole; it tells the process that writes it."""
    return path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")


class OutputFolder:
    """A context manager that gives the folder; where it fails with nothing written, what it made is removed again."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._made: list[Path] = []

    def __enter__(self) -> Path:
        """Make the folder, see that files can be written, and remove what killed processes left half-written.

        Raises:
            FileError: it cannot be made or written to.
        """
        self._made = [each for each in (self.path, *self.path.parents) if not each.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"{self.path}: cannot be made a folder ({error.strerror}); choose another output folder"
            ) from error
        probe = partial(self.path / "physvision")
        try:
            probe.write_bytes(b"?")
            probe.unlink()
        except OSError as error:
            raise FileError(
                f"{self.path}: cannot be written to ({error.strerror}); choose another output folder"
            ) from error
        for each in self.path.glob(".*.partial*"):
            writer = re.search(r"\.(\d+)\.partial", each.name)
            if writer and not _runs(int(writer[1])):
                each.unlink(missing_ok=True)
        return self.path

    def __exit__(self, kind, error, traceback) -> None:
        if error is not None:
            for each in self._made:
                if each.is_dir() and not any(each.iterdir()):
                    each.rmdir()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
