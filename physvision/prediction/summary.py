"""Summary of a run in the terminal."""

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


def print_summary(data: ReportData, files: Sequence[Path], console: Console | None = None) -> None:
    """Print the summary of a run and the files of its results."""
    console = console or Console()
    head = Text(data.scene.title, style="bold")
    head.append(
        f" in {data.name}: {len(data.rows)} frames, {data.rows['time'][-1]:.2f} s, "
        f"at {data.frames_per_second:.0f} frames per second",
        style="not bold",
    )
    parts = [head, "", _state_table(data), "", _metrics_table(data)]
    parts += [Text(f"! {note}", style="yellow") for note in data.notes()]
    console.print(Panel(Group(*parts), border_style="dim", padding=(1, 2), expand=False))
    for path in files:
        console.print(f"  {path}", highlight=False, soft_wrap=True)


def _state_table(data: ReportData) -> Table:
    """Last observed and predicted states of all objects."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    coordinates = list(data.units.coordinates.items())
    units = dict(coordinates[index] for index in data.moving_coordinates)
    table.add_column("")
    for name, unit in units.items():
        table.add_column(f"{name}, {unit}", justify="right")
        table.add_column(f"rate, {unit}/s", justify="right")
    for name, unit in units.items():
        table.add_column(f"{name} in {data.predictor.horizon:.3g} s, {unit}", justify="right")
    table.add_column("confidence", justify="right")
    last = data.rows[-1]
    predicted = data.units.positions(data.last_segment.rollout.q[-1, -1].double().numpy())
    objects = data.scene.objects
    for index, (item, color) in enumerate(zip(objects, object_colors(objects), strict=True)):
        cells = []
        for column in data.moving_coordinates:
            cells += [f"{last['position'][index][column]:.2f}", f"{last['velocity'][index][column]:.2f}"]
        cells += [f"{predicted[index][column]:.2f}" for column in data.moving_coordinates]
        table.add_row(Text(item.name, style=css(color)), *cells, f"{last['confidence'][index]:.2f}")
    return table


def _metrics_table(data: ReportData) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in data.parameters:
        table.add_row(Text(row.name, style="dim"), f"{row.text} ({row.origin})")
    ahead = f"{data.predictor.horizon:.3g} s ahead"
    for name, (mean, median, unit) in data.errors().items():
        table.add_row(Text(f"{name}, {ahead}", style="dim"), f"mean error {mean:.3g} {unit}, median {median:.3g}")
    psnr, ssim = data.quality()
    if np.isfinite(psnr):
        table.add_row(Text(f"frames, {ahead}", style="dim"), f"PSNR {psnr:.1f} dB, SSIM {ssim:.3f}")
    return table
