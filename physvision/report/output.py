"""Output folder, created when there is something to write, without partial files."""

from __future__ import annotations

from pathlib import Path

from physvision.core import FileError, StrPath
from physvision.core.files import partial, remove_stale_partials


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
        remove_stale_partials(self.path)
        return self.path

    def __exit__(self, kind, error, traceback) -> None:
        if error is not None:
            for path in self._created:
                if path.is_dir() and not any(path.iterdir()):
                    path.rmdir()
