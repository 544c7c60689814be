"""One screen that says what came of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from physvision.prediction.report_data import ReportData
from physvision.report import object_colors
from physvision.report.palette import css


def show(data: ReportData, files: Sequence[Path], console: Console | None = None) -> None:
    """Print the summary of `data` and the files that hold it."""
    console = console or Console()
    rows = data.rows
    first = Text(data.scene.title, style="bold")
    first.append(
        f" in {data.name}: {len(rows)} frames, {rows['time'][-1]:.2f} s, at {data.rate:.0f} frames a second",
        style="not bold",
    )
    parts = [first, "", _states(data, rows), "", _measures(data)]
    parts += [Text(f"! {note}", style="yellow") for note in data.notes()]
    console.print(Panel(Group(*parts), border_style="dim", padding=(1, 2), expand=False))
    for path in files:
        console.print(f"  {path}", highlight=False, soft_wrap=True)


def _states(data: ReportData, rows: np.ndarray) -> Table:
    """Where everything is at the end, and where it will be."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    coordinates = list(data.units.coordinates.items())
    units = {coordinates[index][0]: coordinates[index][1] for index in data.moving}
    table.add_column("")
    for name, unit in units.items():
        table.add_column(f"{name}, {unit}", justify="right")
        table.add_column(f"rate, {unit}/s", justify="right")
    for name, unit in units.items():
        table.add_column(f"{name} in {data.predictor.horizon:.3g} s, {unit}", justify="right")
    table.add_column("confidence", justify="right")
    last = rows[-1]
    ahead = data.units.positions(data.last.ahead.q[-1, -1].double().numpy())
    objects = data.scene.objects
    for index, (each, color) in enumerate(zip(objects, object_colors(objects), strict=True)):
        cells = []
        for column in data.moving:
            cells += [f"{last['position'][index][column]:.2f}", f"{last['velocity'][index][column]:.2f}"]
        cells += [f"{ahead[index][column]:.2f}" for column in data.moving]
        table.add_row(Text(each.name, style=css(color)), *cells, f"{last['confidence'][index]:.2f}")
    return table


def _measures(data: ReportData) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for each in data.parameters:
        table.add_row(Text(each.name, style="dim"), f"{each.text} ({each.origin})")
    ahead = f"{data.predictor.horizon:.3g} s ahead"
    for name, (mean, median, unit) in data.errors().items():
        table.add_row(
            Text(f"{name}, {ahead}", style="dim"), f"off by {mean:.3g} {unit} in the mean, median {median:.3g}"
        )
    psnr, ssim = data.quality()
    if np.isfinite(psnr):
        table.add_row(Text(f"frames, {ahead}", style="dim"), f"PSNR {psnr:.1f} dB, SSIM {ssim:.3f}")
    return table
