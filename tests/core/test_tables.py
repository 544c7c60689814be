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
