"""Read tables of numbers with a header, as spreadsheets and trackers write them."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
from jaxtyping import Float

from physvision.core.errors import InputError
from physvision.core.files import read_text
from physvision.core.resources import StrPath

# Far above every table that a tracker writes; a field that is left empty takes as much memory as any other.
_MAX_BYTES, _MAX_COLUMNS = 2**26, 1_000


def read_table(path: StrPath) -> tuple[list[str], Float[np.ndarray, "rows columns"]]:
    """Read the column names and the values of a table; an empty field is NaN.

    Columns are separated by commas, semicolons or tabs; with the latter two the decimal sign may be a comma. The header
    is the first line that begins with a time column (`t`, `time`), or else the first line. Lines that begin with # are
    comments.
    """
    text = read_text(path, _MAX_BYTES)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    start = next((at for at, line in enumerate(lines) if re.match(r'\s*"?t(ime)?\b|\s*"?t_', line.lower())), 0)
    header = lines[start] if lines else ""
    delimiter = max(";\t,", key=header.count)
    try:
        names, *rows = csv.reader(io.StringIO("\n".join(lines[start:])), delimiter=delimiter) if lines else [[]]
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as a table ({error})") from error
    if len(names) > _MAX_COLUMNS:
        raise InputError(f"{path}: expected at most {_MAX_COLUMNS:,} columns, got {len(names):,}")
    values = np.full((len(rows), len(names)), np.nan)
    for at, row in enumerate(rows):
        # Decimal commas between columns that commas separate, too, make other numbers of other columns.
        if any(field.strip() for field in row[len(names) :]):
            text = f"{path}: expected {len(names)} fields in row {start + at + 2}, as the header has, got {len(row)}"
            raise InputError(f"{text}; separate columns by semicolons where the decimal sign is a comma")
        for column, field in enumerate(row[: len(names)]):
            if field.strip():
                values[at, column] = _number(str(path), start + at + 2, field, delimiter)
    return names, values


def _number(source: str, line: int, field: str, delimiter: str) -> float:
    try:
        return float(field.replace(",", ".") if delimiter != "," else field)
    except ValueError:
        raise InputError(f"{source}: expected a number in row {line}, got {field.strip()!r}") from None
