"""`physvision predict`: a video and a checkpoint in; tables, a film, a report and a summary out."""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeVar

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from physvision.core import FileError, InputError, PhysvisionError
from physvision.models import shipped
from physvision.predict.film import Film
from physvision.predict.interruption import Interruption
from physvision.predict.outcome import Outcome
from physvision.predict.predictor import Piece, Predictor
from physvision.predict.report import write_page
from physvision.predict.summary import show
from physvision.predict.tables import Tables
from physvision.predict.units import Units, pixels_per_metre
from physvision.video import Conversion, SceneStream, scene_stream

# What a process that ended by SIGINT returns.
INTERRUPTED = 130

Result = TypeVar("Result")


def predict(
    video: str,
    checkpoint: str | None = None,
    out: str | None = None,
    horizon: float = 1.0,
    device: str = "auto",
    fps: float | None = None,
    crop: tuple[int, int, int, int] | None = None,
    size: int | tuple[int, int] | None = None,
    scale: float | str | None = None,
    batch: int = 32,
    film: bool = True,
    anyway: bool = False,
) -> int:
    """What moves in a video, how, and what happens next.

    Args:
        video: any video that FFmpeg reads.
        checkpoint: one that comes with physvision, by name, or the path of a file.
        out: folder for states.csv, states.npz, prediction.mp4 and report.html; out/NAME of the video if not given.
        horizon: how far ahead to predict, s.
        device: cpu, cuda, or auto for a GPU where there is one.
        fps: bring the video to this frame rate, by the nearest frames in time.
        crop: part that is used, as [x, y, width, height] in pixels.
        size: side of the square, or [width, height], that it is brought to; pixels.
        scale: pixels of the video a metre, or a length in the picture as "120px=0.5m"; pixels stay pixels if not given.
        batch: windows that are computed together.
        film: make prediction.mp4, which the report shows.
        anyway: go on though the video does not look like what the checkpoint was made for.
    """
    if checkpoint is None:
        raise InputError(f"checkpoint: name one, --checkpoint NAME or a path; there are {', '.join(shipped())}")
    predictor = Predictor.from_checkpoint(checkpoint, horizon=horizon, device=device, batch=batch)
    stream = scene_stream(video, predictor.scene, Conversion(fps, crop, size))
    units = Units(predictor.scene, stream.crop, pixels_per_metre(scale, predictor.scene))
    folder = _made(Path(out) if out else Path("out") / Path(video).stem)
    _try_writing(folder)
    given = {"checkpoint": checkpoint, "command": shlex.join(["physvision", *sys.argv[1:]])}
    settings = {**given, "horizon": f"{predictor.steps / predictor.scene.fps:.4g} s", "device": str(predictor.device)}
    return run(predictor, stream, units, folder, settings, film=film, anyway=anyway)


def run(
    predictor: Predictor,
    stream: SceneStream,
    units: Units,
    folder: Path,
    settings: dict[str, str],
    *,
    film: bool = True,
    anyway: bool = False,
) -> int:
    """Look at `stream` and leave everything in `folder`; the exit status.

    Raises:
        PhysvisionError: the video broke off, or something could not be written; what came before is kept.
    """
    with Interruption() as interruption, warnings.catch_warnings(), _cores_left():
        # The notes say how often this happened.
        warnings.filterwarnings("ignore", ".*worlds failed", RuntimeWarning)
        began = time.perf_counter()
        pieces = predictor.look(stream, anyway=anyway)
        # Raises, before anything is written, where a video does not fit.
        first = next(pieces)
        tables = Tables(folder, units)
        drawing = Film(folder / "prediction.mp4", predictor) if film else None
        last, failure = first, None
        try:
            try:
                for piece in _followed(chain([first], pieces), stream, interruption):
                    tables.add(piece)
                    last = piece
                    if drawing:
                        drawing.add(piece)
            except PhysvisionError as error:
                failure = error
            if not tables.rows:
                raise failure or FileError(f"{folder}: nothing was written")
            # Closed before the tables are finished: a film that failed gives back its room on the disk.
            drawn, failure = _attempt(drawing.close, failure) if drawing else (None, failure)
            seconds = time.perf_counter() - began
            why = interruption.reason or (f"Broken off ({failure})" if failure else "")
            outcome = Outcome(predictor, stream, units, tables, last, seconds, why, settings)
            written, failure = _attempt(tables.finish, failure)
            page, failure = _attempt(lambda: write_page(outcome, drawn, folder / "report.html"), failure)
            show(outcome, [path for path in (*(written or ()), drawn, page) if path])
        finally:
            if drawing:
                drawing.abandon()
            tables.close()
    if failure:
        raise failure
    return INTERRUPTED if interruption else 0


@contextmanager
def _cores_left() -> Iterator[None]:
    """Leave half of the cores to reading, drawing and coding: torch's threads wait for each other, and busily."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before // 2))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _attempt(
    action: Callable[[], Result], failure: PhysvisionError | None
) -> tuple[Result | None, PhysvisionError | None]:
    """What `action` gives, or None; and the first failure there was."""
    try:
        return action(), failure
    except PhysvisionError as error:
        return None, failure or error


def _followed(pieces: Iterable[Piece], stream: SceneStream, interruption: Interruption) -> Iterator[Piece]:
    """The pieces under a progress bar, until they end or a person ends them."""
    total = stream.length - stream.scene.frames_in + 1 if stream.length else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("frames", total=total)
        for piece in pieces:
            yield piece
            bar.advance(task, len(piece.frames))
            if interruption:
                return


def _made(folder: Path) -> Path:
    """The folder, made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made a folder ({error.strerror}); choose another with --out") from error
    return folder


def _try_writing(folder: Path) -> None:
    """Raise, before any work is done, unless files can be written to `folder`."""
    probe = folder / ".physvision.partial"
    try:
        probe.write_bytes(b"?")
        probe.unlink()
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be written to ({error.strerror}); choose another folder with --out"
        ) from error
