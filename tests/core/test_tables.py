"""Tables of numbers, and files that are none."""

import numpy as np
import pytest

from physvision.core import InputError
from physvision.core.tables import read_table


def test_a_field_of_any_length_is_a_number_or_an_error(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,x\n0," + "1" * 200_000 + "\n")
    with pytest.raises(InputError, match=r"a\.csv: cannot be read as a table \(field larger"):
        read_table(path)
    path.write_text("t;x\n0;1,5\n")
    names, values = read_table(path)
    assert names == ["t", "x"]
    np.testing.assert_array_equal(values, [[0, 1.5]])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("t" + ",a" * 100_000 + "\n" + "0\n" * 1000, "at most 1,000 columns, got 100,001"),
        ("t,x\n0,1,5\n", "expected 2 fields in row 2, as the header has, got 3; separate columns by semicolons"),
    ],
    ids=["wide", "decimal commas"],
)
def test_rows_and_columns_are_those_of_a_table(tmp_path, text, match):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        read_table(path)


def test_separators_at_the_end_of_rows_are_no_fields(tmp_path):
    (tmp_path / "a.csv").write_text("t,x\n0,1,,\n")
    np.testing.assert_array_equal(read_table(tmp_path / "a.csv")[1], [[0, 1]])
