"""Tables of values in three formats."""

import csv
import zipfile
from decimal import Decimal
from xml.etree import ElementTree

import pytest

from physvision.core import InputError
from physvision.report.spreadsheet import write_csv, write_latex, write_xlsx

HEAD = ("name", "value", "unit")
ROWS = [["a & b_1", Decimal("1.20"), "m/s²"], ["none", "", "a,b;c"], ["small", Decimal("2.5E-9"), ""]]
SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


@pytest.mark.parametrize(("decimal", "delimiter"), [(".", ","), (",", ";")])
def test_csv_has_the_decimal_separator_that_was_asked_for(tmp_path, decimal, delimiter):
    write_csv(tmp_path / "table.csv", HEAD, ROWS, decimal)
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    assert rows[0] == list(HEAD)
    assert [row[1] for row in rows[1:]] == [f"1{decimal}20", "", f"2{decimal}5E-9"]
    assert rows[2][2] == "a,b;c"


def test_another_separator_is_an_error(tmp_path):
    with pytest.raises(InputError, match="decimal: expected"):
        write_csv(tmp_path / "table.csv", HEAD, ROWS, ";")


def test_a_workbook_has_numbers_as_numbers_and_texts_as_texts(tmp_path):
    write_xlsx(tmp_path / "table.xlsx", HEAD, ROWS)
    with zipfile.ZipFile(tmp_path / "table.xlsx") as archive:
        assert archive.testzip() is None
        # Bytes do not tell when they were written.
        assert {part.date_time for part in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        parts = {name: ElementTree.fromstring(archive.read(name)) for name in archive.namelist()}
    # Every part is declared, and every relationship leads to a part.
    declared = {part.get("PartName") for part in parts["[Content_Types].xml"]} - {None}
    assert declared == {f"/{name}" for name in parts if name.endswith(".xml") and not name.startswith("[")}
    assert [part.get("Target") for part in parts["xl/_rels/workbook.xml.rels"]] == ["worksheets/sheet1.xml"]
    cells = {cell.get("r"): cell for cell in parts["xl/worksheets/sheet1.xml"].iter(f"{SHEET}c")}
    assert cells["A2"].get("t") == "inlineStr"
    assert "".join(cells["A2"].itertext()) == "a & b_1"
    assert cells["B2"].get("t") is None
    assert float(cells["B2"].find(f"{SHEET}v").text) == 1.2
    assert "B3" not in cells
    assert float(cells["B4"].find(f"{SHEET}v").text) == 2.5e-9


def test_columns_after_z_have_two_letters(tmp_path):
    write_xlsx(tmp_path / "wide.xlsx", [f"c{index}" for index in range(28)], [])
    with zipfile.ZipFile(tmp_path / "wide.xlsx") as archive:
        text = archive.read("xl/worksheets/sheet1.xml").decode()
    assert all(f'r="{name}1"' in text for name in ("Z", "AA", "AB"))


def test_latex_escapes_what_it_would_interpret(tmp_path):
    write_latex(tmp_path / "table.tex", HEAD, ROWS)
    lines = (tmp_path / "table.tex").read_text(encoding="utf-8").splitlines()
    assert lines[0] == r"\begin{tabular}{lrl}"
    assert lines[-1] == r"\end{tabular}"
    assert r"a \& b\_1 & $1.20$ & m/s$^2$ \\" in lines
    assert r"small & $2.5 \cdot 10^{-9}$ &  \\" in lines
