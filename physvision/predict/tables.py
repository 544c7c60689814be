"""States as a table that people read and as arrays, row by row in constant memory, whole up to wherever it ended."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from physvision.core import FileError
from physvision.predict.predictor import Piece
from physvision.predict.units import Units

# Rows that are copied at once into the archive.
_ROWS = 4096


class Tables:
    """states.csv and states.npz of a folder.

    Rows go to hidden files beside them; `finish` gives those their names. So a table under its name is always whole,
    and one from an earlier run stays until there is a better one.
    """

    def __init__(self, folder: Path, units: Units) -> None:
        """Begin the tables in `folder`."""
        self.folder, self.units = folder, units
        scene = units.scene
        rates = {name: f"{unit}/s" for name, unit in units.coordinates.items()}
        self._columns = [f"{name}_{unit}" for name, unit in units.coordinates.items()]
        self._columns += [f"{name}_rate_{unit.replace('/', '_per_')}" for name, unit in rates.items()]
        objects, numbers = len(scene.objects), len(scene.coordinates)
        each = ("f4", (objects, numbers))
        self.row = np.dtype(
            [
                ("frame", "i8"),
                ("time", "f8"),
                ("position", *each),
                ("velocity", *each),
                ("confidence", "f4", (objects,)),
                ("agreement", "f4"),
                ("sound", "?"),
                ("expected_position", *each),
                ("expected_velocity", *each),
                ("psnr", "f4"),
                ("ssim", "f4"),
                ("q", "f4", (objects * numbers,)),
                ("v", "f4", (objects * numbers,)),
            ]
        )
        self.rows = 0
        self._csv_path, self._row_path = folder / ".states.csv.partial", folder / ".states.rows.partial"
        self._csv, self._spool = _open(self._csv_path), _open(self._row_path)
        try:
            self._append(self._csv, ",".join(["time_s", "frame", "object", *self._columns, "confidence\n"]).encode())
        except OSError as error:
            raise _failure(folder, error) from error

    def add(self, piece: Piece) -> None:
        """Take in the states of `piece`, all of them or none."""
        rows = np.zeros(len(piece.frames), self.row)
        rows["frame"] = piece.first + np.arange(len(rows))
        rows["time"] = [each.time for each in piece.frames]
        for name, state in (("", piece.states), ("expected_", piece.expected)):
            rows[f"{name}position"] = self.units.positions(state.q.double().numpy())
            rows[f"{name}velocity"] = self.units.velocities(state.v.double().numpy())
        rows["q"], rows["v"] = piece.states.q.numpy(), piece.states.v.numpy()
        for name in ("confidence", "agreement", "sound", "psnr", "ssim"):
            rows[name] = getattr(piece, name).numpy()
        places = self._csv.tell(), self._spool.tell()
        try:
            self._append(self._csv, "".join(map(self._text, rows)).encode())
            self._append(self._spool, rows.tobytes())
        except OSError as error:
            for file, place in zip((self._csv, self._spool), places, strict=True):
                # Room is given back, so this works on a full disk.
                os.ftruncate(file.fileno(), place)
            raise _failure(self.folder, error) from error
        self.rows += len(rows)

    def _text(self, row: np.void) -> str:
        lines = []
        for index, each in enumerate(self.units.scene.objects):
            numbers = [*row["position"][index], *row["velocity"][index]]
            values = ",".join(f"{value:.6g}" for value in numbers)
            name = each.name if "," not in each.name else f'"{each.name}"'
            lines.append(f"{row['time']:.6f},{row['frame']},{name},{values},{row['confidence'][index]:.4f}\n")
        return "".join(lines)

    @staticmethod
    def _append(file: IO[bytes], data: bytes) -> None:
        # Unbuffered, a write may take a part.
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]

    def read(self, most: int | None = None) -> np.ndarray:
        """All rows, or about `most` of them at equal steps; all of them mapped, not in memory."""
        if not self.rows:
            return np.zeros(0, self.row)
        rows = np.memmap(self._row_path, self.row, "r", shape=(self.rows,))
        return rows if most is None else np.array(rows[:: -(-self.rows // most)])

    def finish(self) -> list[Path]:
        """Put what was added under its names: states.csv and states.npz."""
        done = [self.folder / "states.csv", self.folder / "states.npz"]
        archive = self.folder / ".states.npz.partial"
        try:
            self._csv_path.replace(done[0])
            self._archive(archive)
            archive.replace(done[1])
        except OSError as error:
            archive.unlink(missing_ok=True)
            raise _failure(self.folder, error) from error
        return done

    def _archive(self, path: Path) -> None:
        """The rows' fields as arrays of one archive, which `numpy.load` reads."""
        rows, scene = self.read(), self.units.scene
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in self.row.names or ():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    kind, shape = self.row[name].base, (len(rows), *self.row[name].shape)
                    header = {"descr": kind.str, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_2_0(file, header)
                    for start in range(0, len(rows), _ROWS):
                        file.write(np.ascontiguousarray(rows[name][start : start + _ROWS]).tobytes())
            texts = {
                "objects": [each.name for each in scene.objects],
                "coordinates": list(self.units.coordinates),
                "units": list(self.units.coordinates.values()),
            }
            for name, values in texts.items():
                with archive.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(file, np.array(values))

    def close(self) -> None:
        """Let go of the hidden files."""
        for file in (self._csv, self._spool):
            file.close()
        for path in (self._csv_path, self._row_path):
            path.unlink(missing_ok=True)


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("wb", buffering=0)
    except OSError as error:
        raise FileError(
            f"{path.parent}: cannot be written to ({error.strerror}); choose another folder with --out"
        ) from error


def _failure(folder: Path, error: OSError) -> FileError:
    return FileError(
        f"{folder}: not everything could be written ({error.strerror}); what is there is whole up to where it ends. "
        "Make room, or choose another folder with --out, and run the same command again"
    )
