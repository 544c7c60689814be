"""Tasks of the worker: frames of a clip, tracks, identification, sliders, files, and saved analyses."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from physvision import video
from physvision.app.own_scene import keep_scene, own_motion, scene_path
from physvision.app.predicting import PREDICTION_FILES, checkpoint_cards, predict_clip, predict_command
from physvision.app.results import describe_paths, describe_result, describe_tracks, future_times, to_list
from physvision.app.schema import (
    VERSION,
    ExportRequest,
    IdentifyRequest,
    PredictRequest,
    SavedAnalysis,
    SavedTrack,
    SavedTracks,
    SimulateRequest,
    TrackRequest,
    read_request,
    to_json,
)
from physvision.app.settings import DEFAULT_SETTINGS, AppSettings
from physvision.app.what_if import WhatIf
from physvision.core import InputError, PhysvisionError
from physvision.datasets.clips import Filming, draw
from physvision.identification import Identification, identify
from physvision.identification.kinds import KINDS, KNOWN_NAMES
from physvision.identification.motion_table import Axes
from physvision.identification.output import save_results
from physvision.identification.units import units_of
from physvision.perception import Track, find_tracks
from physvision.report.spreadsheet import check_decimal

Progress = Callable[..., None]
# A bob on a string, filmed by a phone: the clip of `physvision demo`.
SAMPLE = ("pendulum", 3, Filming(size=(320, 240), fps=30, exposure=0.3, noise=2, shake=0.2))
_CLICK_FRACTION = 0.03  # half the side of the box around a click, of the picture's longer side


@dataclass
class Session:
    """Results of one analysis that later tasks need.

    Attributes:
        folder: Folder of the analysis.
        size: Width and height of the picture, px.
        tracks: Tracks that were found.
        first: Number of the frame that is their first sample.
        crop: Part of the picture that was tracked, px.
        request: Last request of an identification.
        what_if: Simulation of the last result.
    """

    folder: Path
    size: tuple[float, float]
    tracks: list[Track]
    first: int = 0
    crop: tuple[float, float, float, float] | None = None
    request: IdentifyRequest | None = None
    what_if: WhatIf | None = None


class Tasks:
    """Tasks by name, and the sessions of the last analyses."""

    def __init__(self, settings: AppSettings = DEFAULT_SETTINGS) -> None:
        self._settings = settings
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def choices(self) -> dict[str, Any]:
        """Return what the page offers: kinds of motion with their known values, units, and checkpoints."""
        kinds = {name: list(kind.known_names) for name, kind in KINDS.items()}
        units = {name: dict(units_of(name)) for name in KNOWN_NAMES}
        return {"kinds": kinds, "units": units, "checkpoints": checkpoint_cards()}

    def run(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Run the task of a job, and return its result.

        Args:
            job: Kind, paths and request of the job.
            progress: Function that is called with what there is so far.
        """
        task = {
            "frames": self._show_frames,
            "sample": self._draw_sample,
            "track": self._track,
            "identify": self._identify,
            "simulate": self._simulate,
            "export": self._export,
            "predict": self._predict,
            "scene": self._read_scene,
            "restore": self._restore,
        }[job["kind"]]
        return task(job, progress)

    def _begin(self, job: Mapping[str, Any], session: Session) -> None:
        """Remember a session, and save its tracks for a worker that goes on after this one."""
        self._remember(job, session)
        tracks = tuple(map(SavedTrack.of, session.tracks))
        saved = SavedTracks(session.size, tracks, session.first, session.crop)
        _tracks_path(job).write_text(to_json(saved), encoding="utf-8")
        _remove_results(job)

    def _remember(self, job: Mapping[str, Any], session: Session) -> None:
        self._sessions[job["analysis"]] = session
        self._sessions.move_to_end(job["analysis"])
        while len(self._sessions) > self._settings.sessions:
            self._sessions.popitem(last=False)

    def _session(self, job: Mapping[str, Any]) -> Session:
        """Return the session of an analysis; that of a worker that has ended is read from its file."""
        session = self._sessions.get(job["analysis"])
        if session is None:
            if not (path := _tracks_path(job)).is_file():
                raise InputError("nothing was tracked yet")
            saved = read_request(SavedTracks, path.read_text(encoding="utf-8"), "tracks")
            session = Session(_folder(job), saved.size, _read_tracks(saved.tracks), saved.first, saved.crop)
        self._remember(job, session)
        return session

    def _identified(self, job: Mapping[str, Any]) -> tuple[Session, IdentifyRequest, WhatIf]:
        """Return the session of an analysis with its last result; that of a worker that has ended is fitted again."""
        session = self._session(job)
        if session.what_if is None or session.request is None:
            if not (path := Path(job["files"]) / "analysis.json").is_file():
                raise InputError("identify the motion first")
            saved = SavedAnalysis.read(path.read_text(encoding="utf-8"))
            result, _, _ = _fit(session, replace(saved.request, motion=saved.motion), lambda **data: None)
            session.request = saved.request
            session.what_if = _what_if(replace(result, odds=dict(saved.odds), rejected=dict(saved.rejected)))
        return session, session.request, session.what_if

    def _show_frames(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Write the frames of a clip as pictures for the page."""
        settings, folder = self._settings, Path(job["folder"])
        folder.mkdir(exist_ok=True)
        info = video.read_info(job["clip"])
        if info.width * info.height > settings.max_pixels:
            raise InputError(f"frames of {info.width} × {info.height} pixels are too large")
        side = settings.long_frame_side if info.frames > settings.long_frames else settings.frame_side
        shrink = min(1.0, side / max(info.width, info.height))
        size = (max(1, round(shrink * info.width)), max(1, round(shrink * info.height)))
        # Areas take five times as long, and do no more where a pixel has less than two by two.
        interpolation = cv2.INTER_LINEAR if shrink > 0.5 else cv2.INTER_AREA
        due = 0  # frame at which the page is told again
        clip = {"width": info.width, "height": info.height, "times": [], "count": info.frames, "notes": []}
        for number, (time, frame) in enumerate(
            video.stream(job["clip"], "rgb", on_truncation=lambda message: clip["notes"].append(message))
        ):
            if number >= settings.max_frames:
                clip["notes"].append(f"Only the first {settings.max_frames} frames are shown.")
                break
            picture = cv2.resize(frame, size, interpolation=interpolation) if shrink < 1 else frame
            picture = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
            _, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, settings.frame_quality])
            (folder / f"{number:06d}.jpg").write_bytes(data.tobytes())
            clip["times"].append(round(time, 6))
            if number >= due:
                due = max(15, 2 * number)
                progress(**clip)
        return clip

    def _draw_sample(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Draw the sample clip."""
        progress(stage="drawing the sample", fraction=0.0)
        draw(*SAMPLE).write(job["clip"])
        return {}

    def _track(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Track what moves in a clip, or one more object that was clicked."""
        request = read_request(TrackRequest, job["request"])
        if job["clip"] is None:
            raise InputError("this analysis has no clip; add it first")
        progress(stage="tracking", fraction=0.0)
        info = video.read_info(job["clip"])
        half = _CLICK_FRACTION * max(info.width, info.height)
        box = None if request.click is None else (request.click[0] - half, request.click[1] - half, 2 * half, 2 * half)

        def report(fraction: float, paths: list[np.ndarray]) -> None:
            preview = {} if box is not None else {"preview": describe_paths(paths)}
            progress(stage="tracking", fraction=fraction, **preview)

        # A moving object is missed on a click unless tracks have the same frames.
        tracks = find_tracks(
            job["clip"], object=box, crop=request.crop, start=request.start, stop=request.stop, on_progress=report
        )
        times = video.read_timestamps(job["clip"])
        first = int(np.searchsorted(times, (request.start or 0.0) - 1e-9))
        if box is not None and _tracks_path(job).is_file():
            tracks = _add_track(self._session(job).tracks, tracks[0])
        self._begin(job, Session(_folder(job), (float(info.width), float(info.height)), tracks, first, request.crop))
        return {"tracks": describe_tracks(tracks, first), "result": None, "files": []}

    def _read_scene(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Take in the person's own scene."""
        progress(stage="reading the scene", fraction=0.0)
        return {"scene": keep_scene(_folder(job), job["request"])}

    def _identify(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Identify the motion of the tracks that were chosen."""
        request, session = read_request(IdentifyRequest, job["request"]), self._session(job)
        result, window, indices = _fit(session, request, progress)
        session.request, session.what_if = request, _what_if(result)
        return self._present(job, session, result, window, indices)

    def _present(
        self, job: Mapping[str, Any], session: Session, result: Identification, window: slice, indices: Sequence[int]
    ) -> dict[str, Any]:
        """Save an analysis, and return its result for the page."""
        assert session.request is not None
        command = session.request.command(job["name"], session.crop, len(session.tracks))
        folder = _remove_results(job)
        values = {name: entry.value for name, entry in result.parameters.items() if entry.value is not None}
        saved = SavedAnalysis(
            VERSION, job["name"], session.size, tuple(map(SavedTrack.of, session.tracks)), session.request,
            result.motion, session.crop, dict(result.odds), dict(result.rejected), values,
            scene.read_text(encoding="utf-8") if (scene := scene_path(session.folder)).is_file() else None,
        )  # fmt: skip
        (folder / "analysis.json").write_text(to_json(saved), encoding="utf-8")
        shown = describe_result(result, session.first + (window.start or 0), indices, command)
        return {"result": shown, "files": ["analysis.json"]}

    def _simulate(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Simulate the motion with other values."""
        request = read_request(SimulateRequest, job["request"])
        _, _, what_if = self._identified(job)
        result = what_if.result
        times = np.concatenate([result.evidence.times.numpy(), future_times(result)])
        positions, values = what_if.simulate(request.values, times)
        return {"positions": to_list(positions, 2), "values": values}

    def _export(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Write the files of a result, the film among them where it is wanted."""
        request = read_request(ExportRequest, job["request"])
        session, identify_request, what_if = self._identified(job)
        check_decimal(request.decimal)
        result, folder = what_if.result, Path(job["files"])
        progress(stage="writing the files", fraction=0.1)
        source = job["clip"] if request.film and job["clip"] is not None else session.tracks
        start = float(result.evidence.times[0]) / _slow_motion(session, result)
        axes = Axes(identify_request.origin, identify_request.turn)
        paths = save_results(result, folder, source, request.film, start, request.decimal, axes)
        return {"files": sorted({"analysis.json", *(path.name for path in paths)})}

    def _predict(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Predict the clip by a checkpoint."""
        progress(stage="predicting", fraction=0.0)
        request = read_request(PredictRequest, job["request"])
        return {"prediction": {"files": predict_clip(job), "command": predict_command(request, job["name"])}}

    def _restore(self, job: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Open a saved analysis: its kind is fitted again to its tracks, the other kinds are as they were."""
        saved = SavedAnalysis.read(job["request"])
        tracks = _read_tracks(saved.tracks)
        session = Session(_folder(job), saved.size, tracks, request=saved.request, crop=saved.crop)
        self._begin(job, session)
        scene = {} if saved.scene is None else {"scene": keep_scene(session.folder, saved.scene)}
        result, window, indices = _fit(session, replace(saved.request, motion=saved.motion), progress)
        if saved.odds:
            result = replace(result, odds=dict(saved.odds), rejected=dict(saved.rejected))
        session.what_if = _what_if(result)
        shown = self._present({**job, "name": saved.name}, session, result, window, indices)
        size = {"width": saved.size[0], "height": saved.size[1]}
        return {"name": saved.name, "size": size, "tracks": describe_tracks(tracks, 0), **scene, **shown}


def _folder(job: Mapping[str, Any]) -> Path:
    return Path(job["files"]).parent


def _tracks_path(job: Mapping[str, Any]) -> Path:
    """Return the path of an analysis' tracks, which is not among the files that are served."""
    return _folder(job) / "tracks.json"


def _read_tracks(saved: Sequence[SavedTrack]) -> list[Track]:
    return [entry.track(f"tracks[{index}]") for index, entry in enumerate(saved)]


def _remove_results(job: Mapping[str, Any]) -> Path:
    """Remove the files of an earlier result, and return their folder; those of a prediction stay."""
    folder = Path(job["files"])
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in PREDICTION_FILES.values():
            path.unlink()
    return folder


def _fit(session: Session, request: IdentifyRequest, progress: Progress) -> tuple[Identification, slice, Sequence[int]]:
    """Identify the motion of chosen tracks; also return the window of their samples and the indices of its objects."""
    indices = range(len(session.tracks)) if request.objects is None else sorted(set(request.objects))
    if not indices or not all(0 <= index < len(session.tracks) for index in indices):
        raise InputError(f"objects: expected some of {len(session.tracks)} objects; choose at least one")
    times = session.tracks[0].times
    low = 0 if request.start is None else int(np.searchsorted(times, request.start - 1e-9))
    high = len(times) if request.stop is None else int(np.searchsorted(times, request.stop))
    if high - low < 3:
        raise InputError("the trimmed part has fewer than three frames; move the handles apart")
    windows = [session.tracks[index].window(low, high) for index in indices]
    visible = [(index, track) for index, track in zip(indices, windows, strict=True) if track.observed.any()]
    if not visible:
        raise InputError("no chosen object is observed in the trimmed part")
    result = identify(
        [track for _, track in visible],
        own_motion(request, session.folder),
        request.known_values(),
        fps=request.fps,
        size=session.size if visible[0][1].unit == "px" else None,
        progress=lambda stage, fraction: progress(stage=stage, fraction=fraction),
    )
    names = {track.name: index for index, track in visible}
    return result, slice(low, high), [names.get(track.name, 0) for track in result.evidence.tracks]


def _what_if(result: Identification) -> WhatIf:
    """Return the simulation for the sliders, ready to answer at once."""
    what_if = WhatIf(result)
    with suppress(PhysvisionError):  # a slider that fails says so when it is moved; the result stands
        what_if.warm_up()
    return what_if


def _slow_motion(session: Session, result: Identification) -> float:
    """Return the ratio of the result's times to those of the film."""
    times = result.evidence.times.numpy()
    return float(times[-1] - times[0]) / float(session.tracks[0].times[len(times) - 1] - session.tracks[0].times[0])


def _add_track(tracks: list[Track], added: Track) -> list[Track]:
    """Return the tracks with one more, unless it is one of them.

    Raises:
        InputError: It cannot be compared with the others.
    """
    if len(added.times) != len(tracks[0].times):
        raise InputError("track the whole clip again before clicking an object: its frames have changed")
    for track in tracks:
        shared = track.observed & added.observed
        if shared.any():
            distance = np.linalg.norm(track.positions[shared] - added.positions[shared], axis=1)
            if float(np.median(distance)) < max(track.radius or 0.0, 3.0):
                raise InputError(f"that is {track.name}, which is tracked already")
    return [*tracks, replace(added, times=tracks[0].times, name=f"object {len(tracks) + 1}")]
