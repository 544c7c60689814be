"""Limit the memory that building a model may take, before it is allocated."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from physvision.core.errors import InputError


class Budget(TorchDispatchMode):
    """Context manager within which tensors of at most `numbers` elements in total can be created.

    A file of two kilobytes can ask for networks of ten gigabytes; their shapes tell before memory is allocated.
    """

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.limit = self.remaining = numbers

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count the elements that a tensor factory will allocate, then call it."""
        shape: Any = next((argument for argument in args[:2] if isinstance(argument, list | tuple)), ())
        if func.__name__.startswith("eye"):
            shape = 2 * args[:1]
        if shape and all(isinstance(side, int) for side in shape):
            self.remaining -= math.prod(shape)
            if self.remaining < 0:
                raise InputError(f"needs tensors of more than {self.limit:,} numbers, far more than its weights are")
        return func(*args, **(kwargs or {}))
