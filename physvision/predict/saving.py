"""A prediction as files: tables, a film and a page, whole up to wherever it ended."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeVar

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from physvision.core import PhysvisionError
from physvision.predict.film import PredictionFrames
from physvision.predict.interruption import Interruption
from physvision.predict.judgement import MismatchError
from physvision.predict.mechanics import parameters
from physvision.predict.outcome import Outcome
from physvision.predict.page import prediction_page
from physvision.predict.prediction import Segment
from physvision.predict.predictor import Predictor, Video
from physvision.report import Film, OutputFolder, StateTables, Units, pixels_per_metre
from physvision.video import Conversion, SceneStream

Result = TypeVar("Result")


def save(
    predictor: Predictor,
    video: Video,
    folder: str | os.PathLike[str],
    conversion: Conversion | None = None,
    *,
    scale: float | str | None = None,
    film: bool = True,
    force: bool = False,
    settings: Mapping[str, str] | None = None,
    finished: Callable[[Outcome, list[Path]], None] | None = None,
) -> Outcome:
    """Look at `video` in constant memory and leave states.csv, states.npz, prediction.mp4 and report.html in `folder`.

    Ctrl-C ends it after the segment at work; what was seen until then is written, and `Outcome.interrupted` says so.

    Args:
        predictor: what looks.
        video: as for the predictor itself.
        folder: made where it is missing.
        conversion: how a file is brought to what the model takes.
        scale: pixels of the video a metre, or a length in the picture as "120px=0.5m"; pixels stay pixels if not given.
        film: make prediction.mp4, which the page shows.
        force: go on though the video does not look like what the model was made for.
        settings: what the page says of how it was made.
        finished: called with the outcome and the files there are, also where a `PhysvisionError` follows.

    Raises:
        InputError: the video does not fit; nothing is written.
        PhysvisionError: the video broke off, or something could not be written; what came before is kept.
    """
    stream = predictor.open(video, conversion)
    units = Units(predictor.scene, stream.crop, pixels_per_metre(scale, predictor.scene))
    with OutputFolder(folder) as made, Interruption() as interruption, warnings.catch_warnings(), _cores_left():
        # The notes say how often this happened.
        warnings.filterwarnings("ignore", ".*worlds failed", RuntimeWarning)
        began, judge = time.perf_counter(), predictor.judge(stream, force=force)
        segments = predictor.look(stream, judge)
        # Raises, before anything is written, where a video does not fit.
        first = last = next(segments)
        tables = _tables(made, units)
        drawing = Film(made / "prediction.mp4", predictor.scene.fps) if film else None
        frames, failure = PredictionFrames(predictor), None
        try:
            try:
                for last in _followed(chain([first], segments), stream, interruption):
                    _add(tables, last, units)
                    if drawing:
                        drawing.add(frames.draw(last))
            except MismatchError:
                raise
            except PhysvisionError as error:
                failure = error
            if failure and not tables.rows:
                raise failure
            # Closed before the tables are finished: a film that failed gives back its room on the disk.
            drawn, failure = _attempt(drawing.close, failure) if drawing else (None, failure)
            reason = interruption.reason or (f"Broken off ({failure})" if failure else "")
            seconds, found = time.perf_counter() - began, judge.findings()
            known = parameters(predictor.model, predictor.scene, units)
            outcome = Outcome(
                predictor, stream, units, tables.read(), last, seconds, reason, found, known, settings or {}
            )
            written, failure = _attempt(tables.finish, failure)
            page = prediction_page(outcome, drawn)
            report, failure = _attempt(lambda: page.write(made / "report.html"), failure)
            if drawn is None and report:
                # The page is of this run; a film of an earlier one is not.
                (made / "prediction.mp4").unlink(missing_ok=True)
            if finished:
                finished(outcome, [path for path in (*(written or ()), drawn, report) if path])
        finally:
            if drawing:
                drawing.abandon()
            tables.close()
        if failure:
            raise failure
    return outcome


def _tables(folder: Path, units: Units) -> StateTables:
    objects, positions = units.scene.objects, units.scene.positions
    each = ("f4", (len(objects), len(units.scene.coordinates)))
    arrays = [
        ("agreement", "f4"),
        ("sound", "?"),
        ("expected_position", *each),
        ("expected_velocity", *each),
        ("psnr", "f4"),
        ("ssim", "f4"),
        ("q", "f4", (positions,)),
        ("v", "f4", (positions,)),
    ]
    return StateTables(folder, [each.name for each in objects], units.coordinates, arrays)


def _add(tables: StateTables, segment: Segment, units: Units) -> None:
    states = {}
    for prefix, state in (("", segment.states), ("expected_", segment.expected)):
        states[f"{prefix}position"] = units.positions(state.q.double().numpy())
        states[f"{prefix}velocity"] = units.velocities(state.v.double().numpy())
    tables.add(
        frame=range(segment.first, segment.first + len(segment.frames)),
        time=[each.time for each in segment.frames],
        q=segment.states.q,
        v=segment.states.v,
        **states,
        **{name: getattr(segment, name) for name in ("confidence", "agreement", "sound", "psnr", "ssim")},
    )


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


def _followed(segments: Iterable[Segment], stream: SceneStream, interruption: Interruption) -> Iterator[Segment]:
    """The segments under a progress bar, until they end or a person ends them."""
    total = stream.length - stream.scene.frames_in + 1 if stream.length else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("frames", total=total)
        for segment in segments:
            yield segment
            bar.advance(task, len(segment.frames))
            if interruption:
                return
