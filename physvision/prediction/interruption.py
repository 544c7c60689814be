"""Ctrl-C as a wish to end soon and well: the piece at work is finished, and so are the files."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interruption:
    """While entered, the first SIGINT or SIGTERM is only written down; a second SIGINT ends everything at once."""

    def __init__(self) -> None:
        self.reason = ""
        self._before: dict[int, signal.Handlers] = {}

    def __bool__(self) -> bool:
        return bool(self.reason)

    def __enter__(self) -> Interruption:
        # Signals are the main thread's alone.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)  # type: ignore[assignment]
        return self

    def __exit__(self, kind, error, traceback) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.reason and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.reason = "Interrupted by Ctrl-C" if number == signal.SIGINT else "Ended by SIGTERM"
