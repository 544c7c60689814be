"""Prediction of a clip by a checkpoint that comes with physvision: files and a page, as `physvision predict` leaves."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from physvision.app.schema import PredictRequest, read_request
from physvision.core import InputError
from physvision.core.resources import folder
from physvision.core.weights import describe_weights

# Files of `physvision predict`, with their names in an analysis.
PREDICTION_FILES = {
    "report.html": "predicted_report.html",
    "prediction.mp4": "predicted_film.mp4",
    "states.csv": "predicted_states.csv",
    "states.npz": "predicted_states.npz",
}


def checkpoint_cards() -> dict[str, str]:
    """Return the first paragraph of the card of each checkpoint that describes its videos.

    Importing `physvision.models`, which lists them too, would take the worker another three seconds before it starts.
    """
    cards = {}
    for path in sorted(folder("models").glob("*.safetensors")):
        _, configuration = describe_weights(path)
        card = path.with_suffix(".md")
        if configuration.get("init_args", {}).get("scene") and card.is_file():
            _, text, *_ = card.read_text(encoding="utf-8").split("\n\n")
            cards[path.stem] = " ".join(text.split())
    return cards


def predict_clip(job: Mapping[str, Any]) -> list[str]:
    """Predict the clip of a job, and return the names of the files that it left among those of the analysis."""
    request = read_request(PredictRequest, job["request"])
    # A request of the page names no path.
    if request.checkpoint not in (cards := checkpoint_cards()):
        raise InputError(f"checkpoint: expected one of {', '.join(cards)}, got {request.checkpoint!r}")
    if job["clip"] is None:
        raise InputError("this analysis has no clip; add it first")
    if not 0 < request.horizon <= 30:
        raise InputError(f"horizon: expected more than 0 and at most 30 s, got {request.horizon:g}")
    from physvision.prediction.command import INTERRUPTED, ClipOptions, predict

    target, output = Path(job["files"]), Path(job["files"]).with_name("predict")
    target.mkdir(exist_ok=True)
    clip = ClipOptions(job["clip"], request.fps, _crop(request), request.size, request.scale)
    try:
        status = predict(clip, request.checkpoint, str(output), request.horizon, film=request.film, force=request.force)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        names = []
        for name, shown in PREDICTION_FILES.items():
            (target / shown).unlink(missing_ok=True)
            if (output / name).is_file():
                (output / name).rename(target / shown)
                names.append(shown)
        return names
    finally:
        shutil.rmtree(output, ignore_errors=True)


def predict_command(request: PredictRequest, clip: str) -> str:
    """Return the command line that does the same."""
    words = ["physvision", "predict", clip, "--checkpoint", request.checkpoint, "--horizon", f"{request.horizon:g}"]
    options = {"--fps": request.fps, "--size": request.size, "--crop": _crop(request), "--scale": request.scale}
    for option, value in options.items():
        words += [] if value is None else [option, f"{value:g}" if isinstance(value, float) else value]
    return shlex.join([*words, *(["--force"] if request.force else [])])


def _crop(request: PredictRequest) -> str | None:
    return None if request.crop is None else ",".join(f"{value:.0f}" for value in request.crop)
