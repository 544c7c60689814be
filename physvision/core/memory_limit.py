"""Limit the memory and the work that building a model may take, before they are spent."""

from __future__ import annotations

import cProfile
import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from physvision.core.errors import InputError


class _LimitExceededError(BaseException):
    """End of what exceeds a budget; no handler of wrong input takes it for one and goes on, without a limit."""


class Budget(TorchDispatchMode):
    """Context manager within which tensors of at most `numbers` elements in total can be created, by so many calls.

    A file of two kilobytes can ask for networks of ten gigabytes; their shapes tell before memory is allocated. It can
    ask for a million bodies, too, each of which takes hundreds of calls of Python's functions.
    """

    def __init__(self, numbers: int, calls: int) -> None:
        super().__init__()
        self.limit = self.remaining = numbers
        self.max_calls = self.remaining_calls = calls
        self._profiler: Any = None

    def __enter__(self) -> Budget:
        self._profiler = sys.getprofile()
        super().__enter__()
        sys.setprofile(self._count_call)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        # That of cProfile is no function, and sets itself.
        if isinstance(self._profiler, cProfile.Profile):
            self._profiler.enable()
        else:
            sys.setprofile(self._profiler)
        super().__exit__(kind, error, trace)
        if isinstance(error, _LimitExceededError):
            raise InputError(str(error)) from None

    def _count_call(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count a call of a function of Python, of this thread."""
        self.remaining_calls -= event == "call"
        if self.remaining_calls < 0:
            text = f"needs more than {self.max_calls:,} calls to be built, the most that is allowed"
            raise _LimitExceededError(text)

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
                text = f"needs tensors of more than {self.limit:,} numbers to be built, the most that is allowed"
                raise _LimitExceededError(text)
        return func(*args, **(kwargs or {}))
