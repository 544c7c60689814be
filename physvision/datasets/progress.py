"""Progress bar that counts frames: number, rate and remaining time."""

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
    """Progress bar on the error output; nothing is drawn unless `shown`."""
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
