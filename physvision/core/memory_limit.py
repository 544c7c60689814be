"""A limit to the memory that building something may take, judged before it is taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from physvision.core.errors import InputError


class Budget(TorchDispatchMode):
    """While it is entered, tensors of at most so many numbers together can be made.

    A file of two kilobytes can ask for networks of ten gigabytes: what they would take is known from their shapes.
    """

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.whole = self.left = numbers

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count what a function that is given a shape will take, then call it."""
        shape: Any = next((given for given in args[:2] if isinstance(given, list | tuple)), ())
        if func.__name__.startswith("eye"):
            shape = 2 * args[:1]
        if shape and all(isinstance(side, int) for side in shape):
            self.left -= math.prod(shape)
            if self.left < 0:
                raise InputError(f"needs tensors of more than {self.whole:,} numbers, far more than its weights are")
        return func(*args, **(kwargs or {}))
