"""A progress bar that counts frames: how many, how fast, how long still."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        # A task that takes one step only has no speed, but a duration.
        speed = task.finished_speed or task.speed or task.completed / (task.elapsed or float("inf"))
        return Text(f"{speed:,.0f} frames/s")


def frames_bar(shown: bool) -> Progress:
    """The bar, drawn to the error output; not drawn if not `shown`."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not shown,
    )
