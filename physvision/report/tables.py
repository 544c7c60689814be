"""States as a table that people read and as arrays, row by row in constant memory, whole up to wherever it ended."""

from __future__ import annotations

import csv
import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from physvision.core import FileError
from physvision.report.output import partial

# Rows that are copied at once into the archive.
_ROWS = 4096


class StateTables:
    """states.csv and states.npz of a folder: a row a frame, in the CSV a row a frame and object.

    Rows go to hidden files beside them; `finish` gives those their names. So a table under its name is always whole,
    and one from an earlier run stays until there is a better one.
    """

    def __init__(
        self,
        folder: Path,
        objects: Sequence[str],
        coordinates: Mapping[str, str],
        arrays: Sequence[tuple[Any, ...]] = (),
    ) -> None:
        """Begin the tables.

        Args:
            folder: that exists.
            objects: their names.
            coordinates: of each object: name and unit; every one has a rate.
            arrays: what the archive holds besides frame, time, position, velocity and confidence: NumPy's
                descriptions of fields.
        """
        self.folder, self.objects, self.coordinates = folder, list(objects), dict(coordinates)
        columns = [f"{name}_{unit}" for name, unit in coordinates.items()]
        columns += [f"{name}_rate_{unit}_per_s" for name, unit in coordinates.items()]
        each = ("f4", (len(self.objects), len(coordinates)))
        known = [("frame", "i8"), ("time", "f8"), ("position", *each), ("velocity", *each)]
        self.row = np.dtype([*known, ("confidence", "f4", (len(self.objects),)), *arrays])
        self.rows = 0
        self._csv_path, self._row_path = partial(folder / "states.csv"), partial(folder / "states.rows")
        self._csv, self._spool = self._open(self._csv_path), self._open(self._row_path)
        self._append(",".join(["time_s", "frame", "object", *columns, "confidence\n"]).encode(), b"")

    def add(self, **values: Any) -> None:
        """Take in some rows, all of them or none; a value (rows, …) for each field.

        Raises:
            FileError: there is no room.
        """
        rows = np.zeros(len(values["frame"]), self.row)
        for name, value in values.items():
            rows[name] = value
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            for index, name in enumerate(self.objects):
                numbers = [f"{value:.6g}" for value in (*row["position"][index], *row["velocity"][index])]
                writer.writerow([f"{row['time']:.6f}", row["frame"], name, *numbers, f"{row['confidence'][index]:.4f}"])
        self._append(text.getvalue().encode(), rows.tobytes())
        self.rows += len(rows)

    def read(self, most: int | None = None) -> np.ndarray:
        """All rows, or about `most` of them at equal steps; all of them mapped, not in memory."""
        if not self.rows:
            return np.zeros(0, self.row)
        rows = np.memmap(self._row_path, self.row, "r", shape=(self.rows,))
        return rows if most is None else np.array(rows[:: -(-self.rows // most)])

    def finish(self) -> list[Path]:
        """Put what was added under its names: states.csv and states.npz."""
        done = [self.folder / "states.csv", self.folder / "states.npz"]
        archive = partial(done[1])
        try:
            self._csv_path.replace(done[0])
            self._archive(archive)
            archive.replace(done[1])
        except OSError as error:
            archive.unlink(missing_ok=True)
            raise self._failure(error) from error
        return done

    def close(self) -> None:
        """Let go of the hidden files."""
        for file in (self._csv, self._spool):
            file.close()
        for path in (self._csv_path, self._row_path):
            path.unlink(missing_ok=True)

    def _archive(self, path: Path) -> None:
        """The rows' fields as arrays of one archive, which `numpy.load` reads."""
        rows = self.read()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in self.row.names or ():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    kind, shape = self.row[name].base, (len(rows), *self.row[name].shape)
                    header = {"descr": kind.str, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_2_0(file, header)
                    for start in range(0, len(rows), _ROWS):
                        file.write(np.ascontiguousarray(rows[name][start : start + _ROWS]).tobytes())
            texts = {"objects": self.objects, "coordinates": [*self.coordinates], "units": [*self.coordinates.values()]}
            for name, values in texts.items():
                with archive.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(file, np.array(values))

    def _open(self, path: Path) -> IO[bytes]:
        try:
            return path.open("wb", buffering=0)
        except OSError as error:
            raise self._failure(error) from error

    def _append(self, *data: bytes) -> None:
        """Write to both files, or to none."""
        files = (self._csv, self._spool)
        places = [file.tell() for file in files]
        try:
            for file, each in zip(files, data, strict=True):
                # Unbuffered, a write may take a part.
                view = memoryview(each)
                while view:
                    view = view[file.write(view) :]
        except OSError as error:
            for file, place in zip(files, places, strict=True):
                # Room is given back, so this works on a full disk.
                os.ftruncate(file.fileno(), place)
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> FileError:
        return FileError(
            f"{self.folder}: not everything could be written ({error.strerror}); what is there is whole up to where it "
            "ends. Make room, or choose another output folder, and run again"
        )
