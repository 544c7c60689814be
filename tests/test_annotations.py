"""The tests check types of all functions of physvision, and dimensions where annotations name them."""

# pyright: reportCallIssue=false, reportReturnType=false

import pytest
import torch
from annotations import begin_test, check, jaxtyped
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from physvision.core import checks


@jaxtyped(typechecker=check)
def product(
    first_case: Float[Tensor, "rows inner"], second_case: Float[Tensor, "inner columns"]
) -> Float[Tensor, "rows columns"]:
    return first_case @ second_case


@jaxtyped(typechecker=check)
def half(number: float) -> float:
    return number if number < 0 else f"{number / 2}"


def test_dimensions_are_those_of_the_whole_call():
    assert product(torch.zeros(2, 3), torch.zeros(3, 4)).shape == (2, 4)
    with pytest.raises(TypeCheckError):
        product(torch.zeros(2, 3), torch.zeros(2, 4))


def test_types_are_checked_where_no_dimensions_are_named():
    assert half(-1) == -1  # an integer is a number too
    for wrong in ("1", 3.0):
        with pytest.raises(BeartypeCallHintViolation):
            half(wrong)
    with pytest.raises(BeartypeCallHintViolation):
        checks.check_positive("dt", "fast")


def test_the_first_calls_of_each_test_are_checked_and_inner_functions_once():
    for _ in range(20):
        half(-1)
    assert half(3.0) == "1.5"  # no longer checked
    begin_test()
    with pytest.raises(BeartypeCallHintViolation):
        half(3.0)

    def make_inner():
        def inner(number: float) -> float:
            return f"{number}"

        return jaxtyped(inner, typechecker=check)

    with pytest.raises(BeartypeCallHintViolation):
        make_inner()(1.0)
    assert make_inner()(1.0) == "1.0"
