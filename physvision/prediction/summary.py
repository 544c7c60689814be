"""One screen that says what came of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from physvision.prediction.outcome import Outcome
from physvision.report import object_colors
from physvision.report.palette import css


def show(outcome: Outcome, files: Sequence[Path], console: Console | None = None) -> None:
    """Print the summary of `outcome` and the files that hold it."""
    console = console or Console()
    rows = outcome.rows
    first = Text(outcome.scene.title, style="bold")
    first.append(
        f" in {outcome.name}: {len(rows)} frames, {rows['time'][-1]:.2f} s, at {outcome.rate:.0f} frames a second",
        style="not bold",
    )
    parts = [first, "", _states(outcome, rows), "", _measures(outcome)]
    parts += [Text(f"! {note}", style="yellow") for note in outcome.notes()]
    console.print(Panel(Group(*parts), border_style="dim", padding=(1, 2), expand=False))
    for path in files:
        console.print(f"  {path}", highlight=False, soft_wrap=True)


def _states(outcome: Outcome, rows: np.ndarray) -> Table:
    """Where everything is at the end, and where it will be."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    coordinates = list(outcome.units.coordinates.items())
    units = {coordinates[index][0]: coordinates[index][1] for index in outcome.moving}
    table.add_column("")
    for name, unit in units.items():
        table.add_column(f"{name}, {unit}", justify="right")
        table.add_column(f"rate, {unit}/s", justify="right")
    for name, unit in units.items():
        table.add_column(f"{name} in {outcome.predictor.horizon:.3g} s, {unit}", justify="right")
    table.add_column("confidence", justify="right")
    last = rows[-1]
    ahead = outcome.units.positions(outcome.last.ahead.q[-1, -1].double().numpy())
    objects = outcome.scene.objects
    for index, (each, color) in enumerate(zip(objects, object_colors(objects), strict=True)):
        cells = []
        for column in outcome.moving:
            cells += [f"{last['position'][index][column]:.2f}", f"{last['velocity'][index][column]:.2f}"]
        cells += [f"{ahead[index][column]:.2f}" for column in outcome.moving]
        table.add_row(Text(each.name, style=css(color)), *cells, f"{last['confidence'][index]:.2f}")
    return table


def _measures(outcome: Outcome) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for each in outcome.parameters:
        table.add_row(Text(each.name, style="dim"), f"{each.text} ({each.origin})")
    ahead = f"{outcome.predictor.horizon:.3g} s ahead"
    for name, (mean, median, unit) in outcome.errors().items():
        table.add_row(
            Text(f"{name}, {ahead}", style="dim"), f"off by {mean:.3g} {unit} in the mean, median {median:.3g}"
        )
    psnr, ssim = outcome.quality()
    if np.isfinite(psnr):
        table.add_row(Text(f"frames, {ahead}", style="dim"), f"PSNR {psnr:.1f} dB, SSIM {ssim:.3f}")
    return table
