"""Saving of a prediction as tables, a video and a page, complete up to any interruption."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import TypeVar

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from physvision import report
from physvision.core import FileError, PhysvisionError, State, StrPath
from physvision.core.files import atomic_path
from physvision.prediction.confidence import confidence, limit_by_frames
from physvision.prediction.domain_check import MismatchError
from physvision.prediction.mechanics import outlines, parameter_rows
from physvision.prediction.prediction import Segment
from physvision.prediction.predictor import Predictor, Video
from physvision.prediction.report_page import ReportData, prediction_page
from physvision.report.spreadsheet import write_csv
from physvision.video import Conversion, SceneStream

MAX_DOTS = 10  # of a predicted path


class PredictionPanels:
    """Draws the observations and predictions of a predictor, segment by segment."""

    def __init__(self, predictor: Predictor) -> None:
        scene, ahead = predictor.scene, f"predicted {predictor.horizon:.3g} s before"
        self._predictor = predictor
        titles = ("video and observed state", ahead, "difference")
        self._canvas = report.Canvas(scene.size, titles, scene.fps, f"error of the frame {ahead}, % of full brightness")

    def draw(self, segment: Segment) -> Iterator[np.ndarray]:
        """Draw the frames of a segment; the engine is evaluated at once, images are drawn on iteration."""
        return self._frames(segment, *self._marks(segment))

    def _marks(self, segment: Segment) -> tuple[list[list[report.Mark]], list[list[report.Mark]]]:
        """Compute the marks of each observed and each predicted frame."""
        scene, steps = self._predictor.scene, self._predictor.steps
        dots = np.unique(np.linspace(0, steps, min(MAX_DOTS, steps) + 1).round().astype(int))[1:].tolist()
        states, rollout, predicted = segment.states, segment.rollout, segment.predicted
        q = torch.cat([states.q[:, None], rollout.q[:, dots], predicted.q[:, None].nan_to_num()], 1).flatten(0, 1)
        v = torch.cat([states.v[:, None], rollout.v[:, dots], predicted.v[:, None].nan_to_num()], 1).flatten(0, 1)
        points = outlines(self._predictor.model, scene, State(q, v).to(self._predictor.device))
        observed_marks: list[list[report.Mark]] = [[] for _ in segment.frames]
        predicted_marks: list[list[report.Mark]] = [[] for _ in segment.frames]
        colors, radius = report.object_colors(scene.objects), segment.properties.get("radius")
        for number, (item, color, outline) in enumerate(zip(scene.objects, colors, points, strict=False)):
            outline = outline.reshape(len(segment.frames), len(dots) + 2, *outline.shape[1:])
            size = (item.radius or 2.0) if radius is None else float(radius[-1, number])
            for index, lines in enumerate(outline):
                if segment.present[index, number]:
                    confidence = float(segment.confidence[index, number])
                    mark = report.Mark(color, lines[0], size, dots=lines[1:-1, -1], confidence=confidence)
                    observed_marks[index].append(mark)
                if segment.predicted_present[index, number]:
                    # Uncertain predictions are drawn faintly.
                    confidence = float(segment.predicted_confidence[index, number].nan_to_num(1.0))
                    mark = report.Mark(color, lines[-1], size, confidence=confidence, dimmed=True)
                    predicted_marks[index].append(mark)
        return observed_marks, predicted_marks

    def _frames(
        self, segment: Segment, observed: list[list[report.Mark]], predicted: list[list[report.Mark]]
    ) -> Iterator[np.ndarray]:
        for index, timed_frame in enumerate(segment.frames):
            panels: list[report.Panel | str] = [report.Panel(timed_frame.original, observed[index])]
            error = float("nan")
            if bool(segment.has_prediction[index]):
                frame = segment.predicted_frames[index].movedim(0, -1).numpy()
                difference = frame - timed_frame.frame.astype(np.float32) / 255
                error = float(np.sqrt(np.square(difference).mean()))
                levels = np.rint(frame * 255).astype(np.uint8)
                heatmap = report.difference_heatmap(np.abs(difference).mean(-1))
                panels += [report.Panel(levels, predicted[index]), report.Panel(heatmap)]
            else:
                panels.append("no prediction yet")
            yield self._canvas.draw(panels, timed_frame.time, error)


Result = TypeVar("Result")
_SEGMENT_FIELDS = ("confidence", "predicted_confidence", "reprojection_score", "valid", "psnr", "ssim")


def save(
    predictor: Predictor,
    video: Video,
    folder: StrPath,
    conversion: Conversion | None = None,
    *,
    scale: float | str | None = None,
    film: bool = True,
    force: bool = False,
    settings: Mapping[str, str] | None = None,
    on_finish: Callable[[ReportData, list[Path]], None] | None = None,
) -> ReportData:
    """Predict a video in constant memory; write states.csv, states.npz, prediction.mp4 and report.html.

    Ctrl-C ends the run after the current segment; the results so far are written, and `ReportData.interruption` is set.

    Args:
        predictor: Predictor of the video.
        video: Video, as for the predictor itself.
        folder: Output folder, which is created if needed.
        conversion: Conversion of a file to what the model expects.
        scale: Pixels of the video per meter, or a known length as "120px=0.5m"; without it, positions are in pixels.
        film: If true, prediction.mp4 is rendered.
        force: If true, a video outside the model's domain is processed with warnings.
        settings: Options of the run, which the page lists.
        on_finish: Function of the results and the written files, called before a `PhysvisionError` is raised, too.

    Raises:
        InputError: The video does not fit; nothing is written.
        PhysvisionError: The video is damaged, or a file could not be written; earlier results are kept.
    """
    stream = predictor.open_stream(video, conversion)
    units = report.Units(predictor.scene, stream.crop, report.pixels_per_meter(scale, predictor.scene))
    with (
        report.OutputFolder(folder) as output,
        InterruptHandler() as interrupt,
        warnings.catch_warnings(),
        _half_of_cores(),
    ):
        # The notes state how often this happened.
        warnings.filterwarnings("ignore", ".*worlds failed", RuntimeWarning)
        start, check = time.perf_counter(), predictor.domain_check(stream, force=force)
        segments = predictor.run(stream, check)
        # The first segment raises before anything is written if the video does not fit.
        first = next(segments)
        with _OutputFiles(output, predictor, units, film) as files:
            last = files.write(_with_progress(chain([first], segments), stream, interrupt))
            data = ReportData(
                predictor=predictor,
                stream=stream,
                units=units,
                rows=files.tables.read(),
                last_segment=last,
                elapsed=time.perf_counter() - start,
                interruption=interrupt.reason or (f"Interrupted ({files.failure})" if files.failure else ""),
                warnings=check.warnings(),
                parameters=parameter_rows(predictor.model, units, last.properties, last.fit),
                settings=settings or {},
            )
            paths = files.finish(data)
            if on_finish:
                on_finish(data, paths)
        if files.failure:
            raise files.failure
    return data


class _OutputFiles:
    """Files of a prediction: tables and a video during the run, a page at its end.

    Attributes:
        tables: Tables of the states.
        video_path: Path of the video, once it is complete.
        failure: First error after something was written.
    """

    def __init__(self, folder: Path, predictor: Predictor, units: report.Units, film: bool) -> None:
        self.folder, self.units, self.panels = folder, units, PredictionPanels(predictor)
        self.tables = _make_tables(folder, units)
        self.video = report.VideoFigure(folder / "prediction.mp4", predictor.scene.fps) if film else None
        self.video_path: Path | None = None
        self.failure: PhysvisionError | None = None

    def __enter__(self) -> _OutputFiles:
        return self

    def __exit__(self, *_: object) -> None:
        if self.video:
            self.video.abort()
        self.tables.close()

    def write(self, segments: Iterator[Segment]) -> Segment:
        """Write the segments until they end or an error occurs; return the last one."""
        segment = None
        try:
            for segment in segments:
                _add_rows(self.tables, segment, self.units)
                if self.video:
                    self.video.add(self.panels.draw(segment))
        except MismatchError:
            raise
        except PhysvisionError as error:
            if not self.tables.rows:
                raise
            self.failure = error
        assert segment is not None
        # Closed before the tables are finished: a failed video frees its space on the disk.
        self.video_path = self._attempt(self.video.close) if self.video else None
        return segment

    def finish(self, data: ReportData) -> list[Path]:
        """Finish the tables and write the page; return the paths of all files."""
        tables = self._attempt(self.tables.finish)
        future = self._attempt(lambda: _write_future(self.folder / "future.csv", data))
        page = prediction_page(data, self.video_path)
        page_path = self._attempt(lambda: page.write(self.folder / "report.html"))
        if self.video_path is None and page_path:
            # The page is of this run; the video of an earlier one is not.
            (self.folder / "prediction.mp4").unlink(missing_ok=True)
        return [path for path in (*(tables or ()), future, self.video_path, page_path) if path]

    def _attempt(self, action: Callable[[], Result]) -> Result | None:
        """Return the result of an action; None if it fails, which is stored as the first failure."""
        try:
            return action()
        except PhysvisionError as error:
            self.failure = self.failure or error
            return None


def _make_tables(folder: Path, units: report.Units) -> report.StateTables:
    objects, positions = units.scene.objects, units.scene.positions
    per_object, scalars = ("f4", (len(objects), len(units.scene.coordinates))), ("f4", (len(objects),))
    arrays = [("reprojection_score", "f4"), ("valid", "?")]
    arrays += [(f"predicted_{name}", *per_object) for name in ("position", "velocity")]
    arrays += [(f"{name}_std", *per_object) for name in ("position", "velocity")]
    arrays += [(f"predicted_{name}_std", *per_object) for name in ("position", "velocity")]
    arrays += [("observed_position", *per_object), ("predicted_confidence", *scalars)]
    arrays += [("psnr", "f4"), ("ssim", "f4"), ("q", "f4", (positions,)), ("v", "f4", (positions,))]
    columns = {
        "position_std": "{name}_std_{unit}",
        "predicted_position": "predicted_{name}_{unit}",
        "predicted_position_std": "predicted_{name}_std_{unit}",
    }
    return report.StateTables(folder, [item.name for item in objects], units.coordinates, arrays, columns)


def _write_future(path: Path, data: ReportData) -> Path:
    """Write the motion after the last frame as a table, a row for each time and object that is present."""
    segment, units = data.last_segment, data.units
    future, std = segment.future, segment.future_std
    numbers = [
        units.positions(future.q[0].double().numpy()),
        units.velocities(std.q[0].double().numpy()),
        units.velocities(future.v[0].double().numpy()),
        units.velocities(std.v[0].double().numpy()),
    ]
    confidence_values = confidence(std.q[0], units.scene)
    confidence_values = limit_by_frames(
        confidence_values, segment.reprojection_score[-1:].expand(len(confidence_values)), units.scene
    )
    names = units.coordinates.items()
    head_formats = ("{}_{}", "{}_std_{}", "{}_rate_{}_per_s", "{}_rate_std_{}_per_s")
    head = [
        "time_s",
        "object",
        *(head_format.format(*name) for head_format in head_formats for name in names),
        "confidence",
    ]
    start = float(segment.frames[-1].time)
    rows = [
        (
            f"{start + step / units.scene.fps:.6f}",
            units.scene.objects[index].name,
            *(f"{value:.6g}" for part in numbers for value in part[step, index]),
            f"{confidence_values[step, index]:.4f}",
        )
        for step in range(len(future))
        for index in np.flatnonzero(segment.present[-1].numpy()).tolist()
    ]
    try:
        with atomic_path(path) as hidden:
            write_csv(hidden, head, rows)
        return path
    except OSError as error:
        raise FileError(f"{path}: could not be written ({error.strerror})") from error


def _add_rows(tables: report.StateTables, segment: Segment, units: report.Units) -> None:
    values = {name: getattr(segment, name) for name in _SEGMENT_FIELDS}
    parts = ("", segment.states, segment.present), ("predicted_", segment.predicted, segment.predicted_present)
    for prefix, state, present in parts:
        mask = present.numpy()[..., None]
        values[f"{prefix}position"] = np.where(mask, units.positions(state.q.double().numpy()), np.nan)
        values[f"{prefix}velocity"] = np.where(mask, units.velocities(state.v.double().numpy()), np.nan)
    # Standard deviations scale as rates do, without the offset of the crop.
    values["position_std"] = units.velocities(segment.state_std.q.double().numpy())
    values["velocity_std"] = units.velocities(segment.state_std.v.double().numpy())
    values["predicted_position_std"] = units.velocities(segment.predicted_std.q.double().numpy())
    values["predicted_velocity_std"] = units.velocities(segment.predicted_std.v.double().numpy())
    observed = np.where(
        segment.present.numpy()[..., None], units.positions(segment.observed.q.double().numpy()), np.nan
    )
    values["observed_position"] = observed
    tables.add(
        frame=range(segment.first_frame, segment.first_frame + len(segment.frames)),
        time=[frame.time for frame in segment.frames],
        q=segment.states.q,
        v=segment.states.v,
        **values,
    )


@contextmanager
def _half_of_cores() -> Iterator[None]:
    """Leave half of the cores to decoding, drawing and encoding, since torch's threads wait busily."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // 2))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _with_progress(segments: Iterable[Segment], stream: SceneStream, interrupt: InterruptHandler) -> Iterator[Segment]:
    """Yield the segments under a progress bar, until they end or the run is interrupted."""
    total = stream.length - stream.scene.frames_in + 1 if stream.length else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("frames", total=total)
        for segment in segments:
            yield segment
            bar.advance(task, len(segment.frames))
            if interrupt:
                return


class InterruptHandler:
    """Context manager that records the first SIGINT or SIGTERM; a second SIGINT raises KeyboardInterrupt.

    Attributes:
        reason: Description of the signal; empty if there was none.
    """

    def __init__(self) -> None:
        self.reason = ""
        self._handlers: dict[int, signal.Handlers] = {}

    def __bool__(self) -> bool:
        return bool(self.reason)

    def __enter__(self) -> InterruptHandler:
        # Only the main thread may set signal handlers.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._record)  # type: ignore[assignment]
        return self

    def __exit__(self, kind, error, traceback) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _record(self, number: int, frame: FrameType | None) -> None:
        if self.reason and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.reason = "Interrupted by Ctrl-C" if number == signal.SIGINT else "Ended by SIGTERM"
