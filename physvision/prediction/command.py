"""Command `physvision predict`: a video and a checkpoint in; tables, a video, a page and a summary out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from physvision.core import InputError
from physvision.models import shipped
from physvision.prediction.predictor import Predictor
from physvision.prediction.saving import save
from physvision.prediction.summary import print_summary
from physvision.video import Conversion

INTERRUPTED = 130  # exit status of a process that ended by SIGINT


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
    """Estimate the states of the objects in a video, and predict their motion.

    Args:
        video: Any video that FFmpeg decodes.
        checkpoint: Name of a checkpoint that comes with physvision, or path of a file.
        out: Folder for states.csv, states.npz, prediction.mp4 and report.html; out/NAME of the video by default.
        horizon: Time to predict ahead, s.
        device: Device: cpu, cuda, or auto for a GPU if there is one.
        fps: Frame rate to resample the video to, by the nearest frames.
        crop: Part of the image to use, as x,y,width,height in pixels.
        size: Side of the square, or width,height, to resize to; pixels.
        scale: Pixels of the video per meter, or a known length as "120px=0.5m"; without it, positions are in pixels.
        batch: Number of windows that are computed at a time.
        film: If true, render prediction.mp4, which the page shows; --no-film skips it.
        force: If true, continue although the video is outside the checkpoint's domain.
    """
    if checkpoint is None:
        raise InputError(f"checkpoint: expected a name or a path, --checkpoint NAME; there are {', '.join(shipped())}")
    predictor = Predictor.from_checkpoint(checkpoint, horizon=horizon, device=device, batch=batch)
    data = save(
        predictor,
        video,
        Path(out) if out else Path("out") / Path(video).stem,
        Conversion.parse(fps, crop, size),
        scale=scale,
        film=film,
        force=force,
        settings={"checkpoint": checkpoint, "command": shlex.join(["physvision", *sys.argv[1:]])},
        on_finish=print_summary,
    )
    return INTERRUPTED if data.interruption else 0
