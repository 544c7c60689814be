"""Checks of arguments at the boundary; errors name the argument, the given and the expected value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from physvision.core.errors import DeviceError, DtypeError, InputError, ShapeError

Number = TypeVar("Number")
REAL = (torch.float32, torch.float64)
MAX_STEPS = 1_000_000  # of a command's simulation, whose states and film would otherwise fill memory and disk


def check_tensor(name: str, value: object) -> Tensor:
    """Return `value` if it is a float32 or float64 tensor; raise DtypeError otherwise."""
    if not isinstance(value, Tensor):
        raise DtypeError(f"{name}: expected a torch tensor, got {type(value).__name__}")
    if value.dtype not in REAL:
        raise DtypeError(f"{name}: expected float32 or float64, got {value.dtype}; convert with .float() or .double()")
    return value


def check_shape(name: str, value: Tensor, shape: Sequence[int | None]) -> Tensor:
    """Return `value` if it has this shape, in which None matches any size; raise ShapeError otherwise."""
    sizes = value.shape
    if sizes == shape:  # fast path: the comparison below takes ten times as long
        return value
    if len(sizes) != len(shape) or any(
        want is not None and have != want for have, want in zip(sizes, shape, strict=True)
    ):
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise ShapeError(f"{name}: expected shape ({expected}), got {tuple(sizes)}")
    return value


def check_like(name: str, value: Tensor, reference_name: str, reference: Tensor) -> Tensor:
    """Return `value` if it has the dtype and device of `reference`; raise DtypeError or DeviceError otherwise."""
    if value.dtype != reference.dtype:
        raise DtypeError(f"{name}: expected {reference.dtype} as {reference_name} has, got {value.dtype}")
    if value.device != reference.device:
        raise DeviceError(f"{name}: expected device {reference.device} as {reference_name} has, got {value.device}")
    return value


def check_finite(name: str, value: Tensor) -> Tensor:
    """Return `value` if all its entries are finite; raise InputError otherwise."""
    finite = torch.isfinite(value)
    if not bool(finite.all()):
        where = tuple(torch.nonzero(~finite)[0].tolist())
        raise InputError(f"{name}: expected finite values, got {value[where].item()} at {where}")
    return value


def check_count(name: str, value: object, minimum: int = 1, maximum: float = math.inf) -> int:
    """Return `value` if it is an integer from `minimum` to `maximum`; raise InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        bounds = f"of at least {minimum}" if math.isinf(maximum) else f"from {minimum} to {maximum:,}"
        raise InputError(f"{name}: expected an integer {bounds}, got {value!r}")
    return value


def check_color(name: str, *colors: Sequence[float]) -> None:
    """Raise InputError unless all channels of some colors are from 0 to 1."""
    for color in colors:
        if not all(0.0 <= channel <= 1.0 for channel in color):
            raise InputError(f"{name}: expected channels from 0 to 1, got {tuple(color)}")


def check_positive(name: str, value: float | int) -> float:
    """Return `value` as a float if it is positive and finite; raise InputError otherwise."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DtypeError(f"{name}: expected a number, got {type(value).__name__}") from None
    if not 0.0 < number < float("inf"):
        raise InputError(f"{name}: expected a positive finite number, got {value!r}")
    return number


def count_steps(name: str, seconds: float, dt: float) -> int:
    """Return the number of steps that cover a duration; raise InputError if they are more than a command may take."""
    steps = check_positive(name, seconds) / dt
    if steps > MAX_STEPS:
        raise InputError(
            f"{name}: expected at most {MAX_STEPS * dt:g} s, {MAX_STEPS:,} steps of {dt:g} s, got {seconds:g} s"
        )
    return math.ceil(steps - 1e-9)


def parse_numbers(
    name: str, text: str, number: Callable[[str], Number], expected: str, *counts: int
) -> tuple[Number, ...]:
    """Parse numbers such as "80,0,480,480", with optional brackets and spaces.

    Args:
        name: Name of the option in messages.
        text: Numbers, separated by commas.
        number: Type of the numbers.
        expected: Description of the numbers in messages.
        counts: Allowed numbers of numbers.
    """
    try:
        numbers = tuple(number(part) for part in text.strip(" []()").split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in counts:
        raise InputError(f"{name}: expected {expected}, got {text!r}")
    return numbers
