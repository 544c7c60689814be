"""Entry of engines, at which `torch.compile` and `torch.autocast` stop."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from physvision.core import State
from physvision.physics.properties import Properties

Method = TypeVar("Method", bound=Callable[..., Any])
_REDUCED = (torch.float16, torch.bfloat16)


def engine_entry(method: Method) -> Method:
    """Run a method of an engine as it is inside compiled models, and in single precision at least under autocast.

    Kernels are no torch operations, so that a compiler gains nothing there: its graph breaks at the method.
    """
    names = list(inspect.signature(method).parameters)[2:]

    @wraps(method)
    def call(self: Any, state: State, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            # Not where the package is imported: this imports the compiler, which takes seconds.
            uncompiled: Any = torch.compiler.disable(call)
            return uncompiled(self, state, *args, **kwargs)
        device = state.q.device.type
        if not torch.is_autocast_enabled(device):
            return method(self, state, *args, **kwargs)
        reduced = _reduced_tensors("", state)
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            reduced |= _reduced_tensors(name, value)
        if reduced:
            kinds = ", ".join(sorted({str(value.dtype) for value in reduced.values()}))
            warnings.warn(
                f"engines compute in single precision at least: {', '.join(reduced)} ({kinds}) is converted; give it "
                "by .float() if it was not meant to be rounded",
                stacklevel=2,
            )
        with torch.autocast(device, enabled=False):
            named = {name: _full_precision(value) for name, value in kwargs.items()}
            return method(self, *map(_full_precision, (state, *args)), **named)

    return cast(Method, call)


def _parts(value: Any) -> dict[str, Any]:
    """Tensors of a state or of properties by name; empty for anything else."""
    if isinstance(value, State):
        return {"q": value.q, "v": value.v}
    return dict(value.items()) if isinstance(value, Mapping | Properties) else {}


def _reduced_tensors(name: str, value: Any) -> dict[str, Tensor]:
    """Half-precision tensors in an argument, by their names."""
    if isinstance(value, Tensor):
        return {name: value} if value.dtype in _REDUCED else {}
    parts = {f"{name}.{key}".strip("."): part for key, part in _parts(value).items()}
    return {key: tensor for inner, part in parts.items() for key, tensor in _reduced_tensors(inner, part).items()}


def _full_precision(value: Any) -> Any:
    """Convert half-precision numbers to single precision, also those of a state or of properties."""
    if not _reduced_tensors("", value):
        return value
    if isinstance(value, Tensor):
        return value.float()
    parts = {name: _full_precision(part) for name, part in _parts(value).items()}
    return State(**parts) if isinstance(value, State) else parts
