"""Checks name the argument, what was given and what was expected."""

import jaxtyping
import pytest
import torch

from physvision.core import DtypeError, InputError, PhysvisionError, ShapeError, checks


def test_tensors():
    value = torch.zeros(2, 3)
    assert checks.check_tensor("x", value) is value
    with pytest.raises(DtypeError, match="x: expected a torch tensor, got list"):
        checks.check_tensor("x", [1.0])
    with pytest.raises(DtypeError, match=r"x: expected float32 or float64, got torch.int64"):
        checks.check_tensor("x", torch.zeros(2, dtype=torch.long))
    with pytest.raises(ShapeError, match=r"x: expected shape \(any, 4\), got \(2, 3\)"):
        checks.check_shape("x", value, (None, 4))
    with pytest.raises(InputError, match=r"x: expected finite values, got inf at \(1,\)"):
        checks.check_finite("x", torch.tensor([0.0, float("inf")]))


def test_numbers():
    assert checks.check_count("n", 3) == 3
    for wrong in (0, -1, 1.5, True, "3"):
        with pytest.raises(InputError, match="n: expected an integer of at least 1"):
            checks.check_count("n", wrong)
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        for wrong in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(InputError, match="dt: expected a positive finite number"):
                checks.check_positive("dt", wrong)
        with pytest.raises(DtypeError, match="dt: expected a number, got str"):
            checks.check_positive("dt", "fast")
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_every_error_is_a_physvision_error():
    assert issubclass(ShapeError, InputError)
    assert issubclass(InputError, PhysvisionError)
    assert issubclass(InputError, ValueError)
