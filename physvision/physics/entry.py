"""Entry of engines, at which `torch.compile` and `torch.autocast` stop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from physvision.core import State

Method = TypeVar("Method", bound=Callable[..., Any])
_REDUCED = (torch.float16, torch.bfloat16)


def engine_entry(method: Method) -> Method:
    """Run a method of an engine as it is inside compiled models, and in single precision at least under autocast.

    Kernels are no torch operations, so that a compiler gains nothing there: its graph breaks at the method.
    """

    @wraps(method)
    def call(self: Any, state: State, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            # Not where the package is imported: this imports the compiler, which takes seconds.
            uncompiled: Any = torch.compiler.disable(call)
            return uncompiled(self, state, *args, **kwargs)
        device = state.q.device.type
        if not torch.is_autocast_enabled(device):
            return method(self, state, *args, **kwargs)
        given = [_full_precision(value) for value in (state, *args)]
        named = {name: _full_precision(value) for name, value in kwargs.items()}
        if state.q.dtype in _REDUCED:
            warnings.warn(
                f"engines compute in single precision: the state, {state.q.dtype}, is converted", stacklevel=2
            )
        with torch.autocast(device, enabled=False):
            return method(self, *given, **named)

    return cast(Method, call)


def _full_precision(value: Any) -> Any:
    """Convert half-precision numbers to single precision, also those of a state or of properties."""
    if isinstance(value, Tensor):
        return value.float() if value.dtype in _REDUCED else value
    if isinstance(value, State):
        return State(_full_precision(value.q), _full_precision(value.v))
    if isinstance(value, Mapping):
        return {name: _full_precision(part) for name, part in value.items()}
    return value
