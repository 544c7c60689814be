"""States as CSV and NumPy archive, written row by row in constant memory and complete up to any interruption."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from physvision.core import FileError
from physvision.core.files import atomic_path, partial


class StateTables:
    """Tables states.csv and states.npz of a folder: a row per frame, in the CSV per frame and object.

    Rows are written to hidden files, which `finish` renames. So a table under its name is complete, and one of an
    earlier run remains until it is replaced.
    """

    def __init__(
        self,
        folder: Path,
        objects: Sequence[str],
        coordinates: Mapping[str, str],
        arrays: Sequence[tuple[Any, ...]],
        columns: Mapping[str, str] | None = None,
    ) -> None:
        """Start the tables in hidden files.

        Args:
            folder: Existing folder.
            objects: Names of the objects.
            coordinates: Units of each object's coordinates by name; each coordinate has a rate.
            arrays: NumPy field descriptions of further arrays in the archive, besides frame, time, position, velocity
                and confidence.
            columns: Those of these arrays, of the same shape as `position`, that the CSV shows too, by name, with the
                names of their columns as formats of `name` and `unit`.
        """
        self.folder, self.objects, self.coordinates = folder, list(objects), dict(coordinates)
        formats = {"position": "{name}_{unit}", "velocity": "{name}_rate_{unit}_per_s", **(columns or {})}
        self._shown = tuple(formats)
        head = [form.format(name=name, unit=unit) for form in formats.values() for name, unit in coordinates.items()]
        values = ("f4", (len(self.objects), len(coordinates)))
        fields = [("frame", "i8"), ("time", "f8"), ("position", *values), ("velocity", *values)]
        self.row = np.dtype([*fields, ("confidence", "f4", (len(self.objects),)), *arrays])
        self.rows = 0
        self._csv_path, self._row_path = partial(folder / "states.csv"), partial(folder / "states.rows")
        self._csv, self._row_file = self._open(self._csv_path), self._open(self._row_path)
        self._append(",".join(["time_s", "frame", "object", *head, "confidence\n"]).encode(), b"")

    def add(self, **values: Any) -> None:
        """Add rows, all of them or none, given as an array (rows, …) for each field.

        Raises:
            FileError: The rows cannot be written.
        """
        rows = np.zeros(len(values["frame"]), self.row)
        for name, value in values.items():
            rows[name] = value
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            for index, name in enumerate(self.objects):
                numbers = [f"{value:.6g}" for shown in self._shown for value in row[shown][index]]
                writer.writerow([f"{row['time']:.6f}", row["frame"], name, *numbers, f"{row['confidence'][index]:.4f}"])
        self._append(text.getvalue().encode(), rows.tobytes())
        self.rows += len(rows)

    def read(self) -> np.ndarray:
        """Map all rows without reading them into memory."""
        if not self.rows:
            return np.zeros(0, self.row)
        return np.memmap(self._row_path, self.row, "r", shape=(self.rows,))

    def finish(self) -> list[Path]:
        """Give the tables their names; return the paths of states.csv and states.npz.

        Raises:
            FileError: A table cannot be written.
        """
        paths = [self.folder / "states.csv", self.folder / "states.npz"]
        try:
            self._csv_path.replace(paths[0])
            with atomic_path(paths[1]) as archive:
                self._write_archive(archive)
        except OSError as error:
            raise self._failure(error) from error
        return paths

    def close(self) -> None:
        """Close and remove the hidden files."""
        for file in (self._csv, self._row_file):
            file.close()
        for path in (self._csv_path, self._row_path):
            path.unlink(missing_ok=True)

    def _write_archive(self, path: Path) -> None:
        """Write the fields as arrays of one archive for `numpy.load`."""
        rows = self.read()
        arrays: dict[str, Any] = {name: rows[name] for name in self.row.names or ()}
        units = [*self.coordinates.values()]
        np.savez_compressed(path, **arrays, objects=self.objects, coordinates=[*self.coordinates], units=units)

    def _open(self, path: Path) -> IO[bytes]:
        try:
            return path.open("wb", buffering=0)
        except OSError as error:
            raise self._failure(error) from error

    def _append(self, *blocks: bytes) -> None:
        """Write to both files, or to none."""
        files = (self._csv, self._row_file)
        offsets = [file.tell() for file in files]
        try:
            for file, block in zip(files, blocks, strict=True):
                # An unbuffered write may be partial.
                view = memoryview(block)
                while view:
                    view = view[file.write(view) :]
        except OSError as error:
            for file, offset in zip(files, offsets, strict=True):
                # Truncation frees space, so it succeeds on a full disk.
                os.ftruncate(file.fileno(), offset)
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> FileError:
        return FileError(
            f"{self.folder}: not everything could be written ({error.strerror}); what is there is complete up to its "
            "end. Make room, or choose another output folder, and run again"
        )
