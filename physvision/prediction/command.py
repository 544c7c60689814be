"""`physvision predict`: a video and a checkpoint in; tables, a film, a page and a summary out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from physvision.core import InputError
from physvision.models import shipped
from physvision.prediction.predictor import Predictor
from physvision.prediction.saving import save
from physvision.prediction.summary import show
from physvision.video import Conversion

# What a process that ended by SIGINT returns.
INTERRUPTED = 130


def predict(
    video: str,
    checkpoint: str | None = None,
    out: str | None = None,
    horizon: float = 1.0,
    device: str = "auto",
    fps: float | None = None,
    crop: str | None = None,
    size: str | None = None,
    scale: str | None = None,
    batch: int = 32,
    film: bool = True,
    force: bool = False,
) -> int:
    """See what moves in a video and how, and predict what happens next.

    Args:
        video: any video that FFmpeg reads.
        checkpoint: one that comes with physvision, by name, or the path of a file.
        out: folder for states.csv, states.npz, prediction.mp4 and report.html; out/NAME of the video if not given.
        horizon: how far ahead to predict, s.
        device: cpu, cuda, or auto for a GPU where there is one.
        fps: bring the video to this frame rate, by the nearest frames in time.
        crop: part that is used, as x,y,width,height in pixels.
        size: side of the square, or width,height, that it is brought to; pixels.
        scale: pixels of the video a metre, or a length in the picture as "120px=0.5m"; pixels stay pixels if not given.
        batch: windows that are computed together.
        film: make prediction.mp4, which the page shows; --no-film goes without.
        force: go on though the video does not look like what the checkpoint was made for.
    """
    if checkpoint is None:
        raise InputError(f"checkpoint: name one, --checkpoint NAME or a path; there are {', '.join(shipped())}")
    predictor = Predictor.from_checkpoint(checkpoint, horizon=horizon, device=device, batch=batch)
    part = None if crop is None else _numbers("crop", crop, "x,y,width,height", 4)
    sides = None if size is None else _numbers("size", size, "a side, or width,height", 1, 2)
    data = save(
        predictor,
        video,
        Path(out) if out else Path("out") / Path(video).stem,
        Conversion(fps, part, sides[0] if sides and len(sides) == 1 else sides),  # pyright: ignore[reportArgumentType]
        scale=scale,
        film=film,
        force=force,
        settings={"checkpoint": checkpoint, "command": shlex.join(["physvision", *sys.argv[1:]])},
        finished=show,
    )
    return INTERRUPTED if data.interrupted else 0


def _numbers(name: str, text: str, wanted: str, *counts: int) -> tuple[int, ...]:
    """Whole numbers of a text such as "80,0,480,480", brackets and spaces allowed."""
    try:
        numbers = tuple(int(part) for part in text.strip(" []()").split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in counts:
        raise InputError(f"{name}: expected {wanted} in whole pixels, got {text!r}")
    return numbers
