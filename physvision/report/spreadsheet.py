"""Tables of values as CSV, XLSX and LaTeX; numbers stay numbers in spreadsheets."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from xml.sax.saxutils import escape

from physvision.core import InputError

Cell = str | Decimal  # text, or a number with the digits that it is shown with
Rows = Sequence[Sequence[Cell]]

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEADER = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
# The parts of a workbook of one sheet besides that sheet (ECMA-376, part 1).
_WORKBOOK = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPES}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONSHIPS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONSHIPS}">'
    '<sheets><sheet name="results" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONSHIPS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}
_LATEX_SYMBOLS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "²": "$^2$", "³": "$^3$", "°": r"$^\circ$", "±": r"$\pm$",
    "·": r"$\cdot$", "–": "--",
}  # fmt: skip


def check_decimal(decimal: str) -> None:
    """Check a decimal separator, a point or a comma.

    Raises:
        InputError: It is neither.
    """
    if decimal not in (".", ","):
        raise InputError(f'decimal: expected "." or ",", got {decimal!r}')


def write_csv(path: Path, head: Sequence[str], rows: Rows, decimal: str = ".") -> None:
    """Write a table as CSV: columns separated by commas, or by semicolons where the decimal separator is a comma."""
    check_decimal(decimal)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";" if decimal == "," else ",")
        writer.writerow(head)
        writer.writerows([[_plain(cell).replace(".", decimal) if isinstance(cell, Decimal) else cell for cell in row]
                          for row in rows])  # fmt: skip


def write_xlsx(path: Path, head: Sequence[str], rows: Rows) -> None:
    """Write a table as a workbook of one sheet (Office Open XML); the same table has the same bytes."""
    lines = []
    for number, row in enumerate([head, *rows], start=1):
        cells = [_sheet_cell(f"{_column_name(index)}{number}", cell) for index, cell in enumerate(row) if cell != ""]
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**_WORKBOOK, "xl/worksheets/sheet1.xml": sheet}.items():
            # Without a time of its own a part has that of the writing.
            archive.writestr(zipfile.ZipInfo(name), _HEADER + content, zipfile.ZIP_DEFLATED)


def write_latex(path: Path, head: Sequence[str], rows: Rows) -> None:
    """Write a table as a LaTeX tabular, which needs no package; numbers are aligned to the right."""
    columns = "".join("r" if isinstance(cell, Decimal) else "l" for cell in rows[0]) if rows else "l" * len(head)
    lines = [" & ".join(_latex_cell(cell) for cell in row) + r" \\" for row in [head, *rows]]
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\hline",
        lines[0],
        r"\hline",
        *lines[1:],
        r"\hline",
        r"\end{tabular}",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _plain(number: Decimal) -> str:
    """Return a number with its digits, with an exponent only far from one."""
    return f"{number:f}" if -6 < number.adjusted() < 7 else str(number)


def _sheet_cell(reference: str, cell: Cell) -> str:
    if isinstance(cell, Decimal):
        return f'<c r="{reference}"><v>{cell}</v></c>'
    return f'<c r="{reference}" t="inlineStr"><is><t xml:space="preserve">{escape(cell)}</t></is></c>'


def _column_name(index: int) -> str:
    """Return the name of a column: A to Z, then AA and so on."""
    name = ""
    while index >= 0:
        name, index = chr(ord("A") + index % 26) + name, index // 26 - 1
    return name


def _latex_cell(cell: Cell) -> str:
    if not isinstance(cell, Decimal):
        return "".join(_LATEX_SYMBOLS.get(letter, letter) for letter in cell)
    mantissa, exponent, power = _plain(cell).partition("E")
    factor = rf" \cdot 10^{{{int(power)}}}" if exponent else ""
    return f"${mantissa}{factor}$"
