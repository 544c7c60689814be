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
from physvision.prediction.domain_check import MismatchError
from physvision.prediction.interruption import Interruption
from physvision.prediction.mechanics import parameters
from physvision.prediction.prediction import Segment
from physvision.prediction.predictor import Predictor, Video
from physvision.prediction.report_data import ReportData
from physvision.prediction.report_page import prediction_page
from physvision.prediction.video_panels import PredictionFrames
from physvision.report import OutputFolder, StateTables, Units, VideoFigure, pixels_per_meter
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
    finished: Callable[[ReportData, list[Path]], None] | None = None,
) -> ReportData:
    """Look at `video` in constant memory and leave states.csv, states.npz, prediction.mp4 and report.html in `folder`.

    Ctrl-C ends it after the segment at work; what was seen until then is written, and `ReportData.interrupted` says so.

    Args:
        predictor: what looks.
        video: as for the predictor itself.
        folder: made where it is missing.
        conversion: how a file is brought to what the model takes.
        scale: pixels of the video a metre, or a length in the picture as "120px=0.5m"; pixels stay pixels if not given.
        film: make prediction.mp4, which the page shows.
        force: go on though the video does not look like what the model was made for.
        settings: what the page says of how it was made.
        finished: called with the data and the files there are, also where a `PhysvisionError` follows.

    Raises:
        InputError: the video does not fit; nothing is written.
        PhysvisionError: the video broke off, or something could not be written; what came before is kept.
    """
    stream = predictor.open(video, conversion)
    units = Units(predictor.scene, stream.crop, pixels_per_meter(scale, predictor.scene))
    with OutputFolder(folder) as made, Interruption() as interruption, warnings.catch_warnings(), _cores_left():
        # The notes say how often this happened.
        warnings.filterwarnings("ignore", ".*worlds failed", RuntimeWarning)
        began, judge = time.perf_counter(), predictor.judge(stream, force=force)
        segments = predictor.look(stream, judge)
        # Raises, before anything is written, where a video does not fit.
        first = next(segments)
        with _Files(made, predictor, units, film) as files:
            last = files.follow(_followed(chain([first], segments), stream, interruption))
            reason = interruption.reason or (f"Broken off ({files.failure})" if files.failure else "")
            seconds, found = time.perf_counter() - began, judge.findings()
            known = parameters(predictor.model, predictor.scene, units)
            states = files.tables.read()
            data = ReportData(predictor, stream, units, states, last, seconds, reason, found, known, settings or {})
            written = files.finish(data)
            if finished:
                finished(data, written)
        if files.failure:
            raise files.failure
    return data


class _Files:
    """The files of a prediction: tables and a film while it goes on, a page at its end.

    Attributes:
        tables: of the states.
        drawn: the film, once it is whole.
        failure: the first that there was after something had been written.
    """

    def __init__(self, folder: Path, predictor: Predictor, units: Units, film: bool) -> None:
        self.folder, self.units, self.frames = folder, units, PredictionFrames(predictor)
        self.tables = _tables(folder, units)
        self.film = VideoFigure(folder / "prediction.mp4", predictor.scene.fps) if film else None
        self.drawn: Path | None = None
        self.failure: PhysvisionError | None = None

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        if self.film:
            self.film.abandon()
        self.tables.close()

    def follow(self, segments: Iterator[Segment]) -> Segment:
        """Write the segments until they end or something fails; the last of them."""
        last = None
        try:
            for last in segments:
                _add(self.tables, last, self.units)
                if self.film:
                    self.film.add(self.frames.draw(last))
        except MismatchError:
            raise
        except PhysvisionError as error:
            if not self.tables.rows:
                raise
            self.failure = error
        assert last is not None
        # Closed before the tables are finished: a film that failed gives back its room on the disk.
        self.drawn = self._attempt(self.film.close) if self.film else None
        return last

    def finish(self, data: ReportData) -> list[Path]:
        """Finish the tables and write the page; the files there are then."""
        written = self._attempt(self.tables.finish)
        page = prediction_page(data, self.drawn)
        report = self._attempt(lambda: page.write(self.folder / "report.html"))
        if self.drawn is None and report:
            # The page is of this run; a film of an earlier one is not.
            (self.folder / "prediction.mp4").unlink(missing_ok=True)
        return [path for path in (*(written or ()), self.drawn, report) if path]

    def _attempt(self, action: Callable[[], Result]) -> Result | None:
        """What `action` gives; None where it fails, which is kept if it is the first failure."""
        try:
            return action()
        except PhysvisionError as error:
            self.failure = self.failure or error
            return None


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
