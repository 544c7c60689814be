"""Read tables of numbers with a header, as spreadsheets and trackers write them."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
from jaxtyping import Float

from physvision.core.errors import FileError, InputError
from physvision.core.resources import StrPath


def read_table(path: StrPath) -> tuple[list[str], Float[np.ndarray, "rows columns"]]:
    """Read the column names and the values of a table; an empty field is NaN.

    Columns are separated by commas, semicolons or tabs; with the latter two the decimal sign may be a comma. The header
    is the first line that begins with a time column (`t`, `time`), or else the first line. Lines that begin with # are
    comments.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: cannot be read as a table ({error})") from error
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    start = next((at for at, line in enumerate(lines) if re.match(r'\s*"?t(ime)?\b|\s*"?t_', line.lower())), 0)
    header = lines[start] if lines else ""
    delimiter = max(";\t,", key=header.count)
    try:
        names, *rows = csv.reader(io.StringIO("\n".join(lines[start:])), delimiter=delimiter) if lines else [[]]
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as a table ({error})") from error
    values = np.full((len(rows), len(names)), np.nan)
    for at, row in enumerate(rows):
        for column, field in enumerate(row[: len(names)]):
            if field.strip():
                values[at, column] = _number(str(path), start + at + 2, field, delimiter)
    return names, values


def _number(source: str, line: int, field: str, delimiter: str) -> float:
    try:
        return float(field.replace(",", ".") if delimiter != "," else field)
    except ValueError:
        raise InputError(f"{source}: expected a number in row {line}, got {field.strip()!r}") from None
