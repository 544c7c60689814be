"""Command `physvision predict`: a video and a checkpoint in; tables, a video, a page and a summary out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from physvision.core import InputError
from physvision.models import shipped
from physvision.prediction.predictor import Predictor
from physvision.prediction.report_page import ReportData
from physvision.prediction.saving import save
from physvision.report import object_colors
from physvision.report.palette import css
from physvision.video import Conversion

INTERRUPTED = 130  # exit status of a process that ended by SIGINT


@dataclass(frozen=True)
class ClipOptions:
    """Video of a prediction, and what of it is read, as the command line gives them.

    Attributes:
        video: Any video that FFmpeg decodes.
        fps: Frame rate to resample the video to, by the nearest frames.
        crop: Part of the image to use, as x,y,width,height in pixels.
        size: Side of the square, or width,height, to resize to; pixels.
        scale: Pixels of the video per meter, or a known length as "120px=0.5m"; without it, positions are in pixels.
    """

    video: str
    fps: float | None = None
    crop: str | None = None
    size: str | None = None
    scale: str | None = None


def predict(
    clip: ClipOptions,
    checkpoint: str | None = None,
    out: str | None = None,
    horizon: float = 1.0,
    device: str = "auto",
    batch: int = 32,
    film: bool = True,
    force: bool = False,
) -> int:
    """Estimate the states of the objects in a video, and predict their motion.

    Args:
        clip: Video and what of it is read.
        checkpoint: Name of a checkpoint that comes with physvision, or path of a file.
        out: Folder for states.csv, states.npz, prediction.mp4 and report.html; out/NAME of the video by default.
        horizon: Time to predict ahead, s.
        device: Device: cpu, cuda, or auto for a GPU if there is one.
        batch: Number of windows that are computed at a time.
        film: If true, render prediction.mp4, which the page shows; --no-film skips it.
        force: If true, continue although the video is outside the checkpoint's domain.
    """
    if checkpoint is None:
        raise InputError(f"checkpoint: expected a name or a path, --checkpoint NAME; there are {', '.join(shipped())}")
    predictor = Predictor.from_checkpoint(checkpoint, horizon=horizon, device=device, batch=batch)
    data = save(
        predictor,
        clip.video,
        Path(out) if out else Path("out") / Path(clip.video).stem,
        Conversion.parse(clip.fps, clip.crop, clip.size),
        scale=clip.scale,
        film=film,
        force=force,
        settings={"checkpoint": checkpoint, "command": shlex.join(["physvision", *sys.argv[1:]])},
        on_finish=print_summary,
    )
    return INTERRUPTED if data.interruption else 0


# Function of the command and the class whose fields are options beside its arguments.
COMMAND = (predict, ClipOptions)


def print_summary(data: ReportData, files: Sequence[Path]) -> None:
    """Print the summary of a run and the files of its results."""
    console = Console(markup=False)  # names of files and coordinates may have brackets
    head = Text(data.scene.title, style="bold")
    head.append(
        f" in {data.name}: {len(data.rows)} frames of {data.rows['time'][-1]:.2f} s, processed in {data.elapsed:.1f} s",
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
        if not np.isfinite(last["position"][index]).any():
            continue
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
