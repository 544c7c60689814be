"""Checks at the boundary: each names the argument, what was given and what was expected."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from physvision.core.errors import DeviceError, DtypeError, InputError, ShapeError

REAL = (torch.float32, torch.float64)


def check_tensor(name: str, value: object) -> Tensor:
    """`value`, which must be a float32 or float64 tensor."""
    if not isinstance(value, Tensor):
        raise DtypeError(f"{name}: expected a torch tensor, got {type(value).__name__}")
    if value.dtype not in REAL:
        raise DtypeError(
            f"{name}: expected float32 or float64, got {value.dtype}; convert it with .float() or .double()"
        )
    return value


def check_shape(name: str, value: Tensor, shape: Sequence[int | None]) -> Tensor:
    """`value`, whose shape must be `shape`; None stands for any size."""
    sizes = value.shape
    if sizes == shape:  # of most calls, in a tenth of the time of what follows
        return value
    if len(sizes) != len(shape) or any(
        want is not None and have != want for have, want in zip(sizes, shape, strict=True)
    ):
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise ShapeError(f"{name}: expected shape ({expected}), got {tuple(sizes)}")
    return value


def check_like(name: str, value: Tensor, reference_name: str, reference: Tensor) -> Tensor:
    """`value`, which must have the dtype and device of `reference`."""
    if value.dtype != reference.dtype:
        raise DtypeError(f"{name}: expected {reference.dtype} as {reference_name} has, got {value.dtype}")
    if value.device != reference.device:
        raise DeviceError(f"{name}: expected device {reference.device} as {reference_name} has, got {value.device}")
    return value


def check_finite(name: str, value: Tensor) -> Tensor:
    """`value`, which must hold no NaN and no infinity."""
    finite = torch.isfinite(value)
    if not bool(finite.all()):
        where = tuple(torch.nonzero(~finite)[0].tolist())
        raise InputError(f"{name}: expected finite values, got {value[where].item()} at {where}")
    return value


def check_count(name: str, value: object, least: int = 1) -> int:
    """`value`, which must be a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return value


def check_positive(name: str, value: float | int) -> float:
    """`value`, which must be a finite number above zero."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DtypeError(f"{name}: expected a number, got {type(value).__name__}") from None
    if not 0.0 < number < float("inf"):
        raise InputError(f"{name}: expected a positive finite number, got {value!r}")
    return number
