"""Identification pipeline: track a clip, prepare the tracks, fit candidate kinds of motion, compare and report them."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from physvision import video
from physvision.core import Clip, InputError, StrPath, VideoError
from physvision.core.checks import check_positive
from physvision.identification import track_preparation as preparation
from physvision.identification.camera_parameters import estimate_camera
from physvision.identification.candidates import (
    FITTING_END,
    Candidates,
    compare_cameras,
    fit_candidates,
    indistinguishable_kinds,
    kind_odds,
    kind_scores,
    reject_unpredicted,
)
from physvision.identification.custom_scene import CustomScene
from physvision.identification.diagnostics import (
    describe_prediction_gap,
    evaluate_holdout,
    plausibility_warnings,
    span_warnings,
)
from physvision.identification.kinds import KINDS, KNOWN_NAMES, MotionKind
from physvision.identification.model import Evidence, KnownValue
from physvision.identification.parameters import estimate_parameters
from physvision.identification.result import FrameRate, Identification
from physvision.identification.settings import DEFAULT_SETTINGS, IdentificationSettings, ViewSettings
from physvision.identification.signatures import contradiction
from physvision.identification.track_preparation import limit_samples
from physvision.identification.view import View
from physvision.perception import Track, detect_onsets, find_tracks

Source = Clip | StrPath | Sequence[Track]
Motion = str | CustomScene | None
KnownNumber = float | tuple[float, float] | KnownValue
Progress = Callable[[str, float], None]


def identify(
    source: Source,
    motion: Motion = None,
    known_values: Mapping[str, KnownNumber] | None = None,
    *,
    object: tuple | str | None = None,
    crop: tuple[float, float, float, float] | None = None,
    time_range: tuple[float | None, float | None] = (None, None),
    fps: float | None = None,
    size: tuple[float, float] | None = None,
    settings: IdentificationSettings = DEFAULT_SETTINGS,
    progress: Progress = lambda stage, fraction: None,
) -> Identification:
    """Identify the kind of motion in a clip and its physical parameters, with intervals.

    Args:
        source: Clip, path of a video, or tracks.
        motion: Name of a kind (see `kinds.KINDS`), or a custom scene; None tries all kinds.
        known_values: Values known beforehand, SI units: numbers, or pairs of a number and its standard deviation.
            `scale` is in pixels a meter; in a custom scene, properties have names such as "mass:cart".
        object: One of several moving objects: a box that it passes through, (x, y, width, height) in pixels, or its
            color, see `find_tracks`; for tracks, the name of one.
        crop: Part of the picture to look at, (x, y, width, height), pixels. Not for tracks.
        time_range: Times of the file at which to begin and to end, s, as a player shows them, also with `fps`; None
            for its own beginning and end.
        fps: Frame rate of filming, frames a second, where it differs from the file's. The times of the result are
            then those of the motion.
        size: Width and height of the picture in which given tracks were found, pixels.
        settings: Tuning numbers.
        progress: Function that is called with the name of each stage and the fraction of the work before it.

    Returns:
        The best kind with its parameters, and the kinds that cannot be distinguished from it.

    Raises:
        InputError: An argument is invalid, nothing moves, or no kind of motion explains the tracks.
    """
    if fps is not None:
        check_positive("fps", fps)
    priors = _check_known_values(known_values or {}, motion)
    start, stop = time_range
    min_tracks = KINDS[motion].objects if isinstance(motion, str) else 1
    if isinstance(source, Clip | str | os.PathLike):
        progress("tracking", 0.0)
        tracks = find_tracks(source, object=object, crop=crop, start=start, stop=stop, min_objects=min_tracks)
        picture = source if isinstance(source, Clip) else video.read_info(source)
        view = View(float(picture.width), float(picture.height), settings=settings.view)
    else:
        if crop is not None:
            raise InputError("crop: applies to videos, but tracks were given; leave out rows, or use time_range")
        tracks = preparation.select_tracks(source, object, start, stop, settings.tracks)
        view = _view_of_tracks(tracks, size, settings.view)
    file_times = tracks[0].times
    if fps is not None:
        slow_motion_factors = [fps * preparation.frame_interval(track.times, settings.tracks) for track in tracks]
        tracks = [
            replace(track, times=track.times / factor)
            for track, factor in zip(tracks, slow_motion_factors, strict=True)
        ]
    if any(track.unit == "m" for track in tracks):
        priors.setdefault("scale", KnownValue(1.0))
    tracks, notes = _prepare_tracks(tracks, motion, min_tracks, settings)
    file_fps = 1 / preparation.frame_interval(file_times, settings.tracks)
    frame_rate = FrameRate(fps or file_fps, file_fps)
    kinds, max_objects = _candidate_kinds(motion, len(tracks), settings)
    evidence = Evidence(tracks[:max_objects], view, priors, _audio_onsets(source, kinds, fps), settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # steps of a search may lead where simulations fail
        candidates = reject_unpredicted(fit_candidates(evidence, kinds, progress))
        if not candidates.fits:
            trimmed, rest_notes = preparation.trim_final_rest(tracks, settings.tracks)
            if rest_notes:
                tracks, notes = trimmed, notes + rest_notes
                candidates = reject_unpredicted(
                    fit_candidates(replace(evidence, tracks=tracks[:max_objects]), kinds, progress)
                )
        if not candidates.fits:
            reasons = "; ".join(f"{kind}: {reason}" for kind, reason in candidates.rejected.items())
            track_notes = dict.fromkeys(note for track in tracks for note in track.notes)
            message = f"no kind of motion explains the tracks ({_describe(tracks)}). {reasons}"
            raise InputError(" ".join([f"{message}.", *track_notes]) if track_notes else message)
        progress("intervals", FITTING_END)
        return _build_result(candidates, tracks, notes, frame_rate)


def _view_of_tracks(tracks: Sequence[Track], size: tuple[float, float] | None, settings: ViewSettings) -> View:
    """Return the view of the tracks' picture, whose size is given, or is that of the calibration."""
    calibration = settings.calibration
    if calibration is None:
        return View(*size, settings=settings) if size else View.around(tracks, settings)
    size = size or calibration.size
    if size is None or any(track.unit != "px" for track in tracks):
        raise InputError(
            "camera: a calibration applies to tracks in pixels of a picture of known size; give image_width and "
            "image_height in its file, or the size of the picture"
        )
    return View(*size, settings=settings)


def _check_known_values(known_values: Mapping[str, KnownNumber], motion: Motion) -> dict[str, KnownValue]:
    """Return the known values with their standard deviations, checked for the kind of motion."""
    if motion is not None and not isinstance(motion, CustomScene) and motion not in KINDS:
        raise InputError(f"motion: expected one of {', '.join(KINDS)}, or a custom scene, got {motion!r}")
    priors = {}
    for name, value in known_values.items():
        if not isinstance(value, KnownValue):
            number, std = value if isinstance(value, tuple) else (value, 0.0)
            value = KnownValue(float(number), float(std))
        if not math.isfinite(value.value) or not 0 <= value.std < math.inf:
            raise InputError(
                f"known: {name}: expected a finite number and a finite standard deviation of at least zero, got "
                f"{value.value:g} ± {value.std:g}"
            )
        priors[name] = value
        if isinstance(motion, CustomScene):
            continue
        if name not in KNOWN_NAMES:
            raise InputError(f"known: expected some of {', '.join(KNOWN_NAMES)}, got {name!r}")
        if name in ("damping", "drag") and value.value < 0:
            raise InputError(f"known: {name}: expected a number of at least zero, got {value.value:g}")
        if name not in ("angle", "damping", "drag") and value.value <= 0:
            raise InputError(f"known: {name}: expected a number above zero, got {value.value:g}")
        if motion is not None and name not in (*KINDS[motion].known_names, "scale"):
            users = ", ".join(kind for kind in KINDS if name in KINDS[kind].known_names)
            raise InputError(f"known: {motion} cannot use {name}; leave it out, or choose a kind that uses it: {users}")
    return priors


def _prepare_tracks(
    tracks: Sequence[Track], motion: Motion, min_tracks: int, settings: IdentificationSettings
) -> tuple[list[Track], list[str]]:
    """Merge and trim tracks; those of the moving objects, the best observed first, and warnings."""
    preparation.check_moving(tracks, settings.tracks)
    notes: list[str] = []
    merged = preparation.merge_fragments(tracks, settings.tracks)
    tracks = [preparation.project_to_hinge_circle(track, settings.tracks) for track in merged]
    if not (isinstance(motion, str) and KINDS[motion].detects_release):
        tracks, notes = preparation.trim_initial_rest(tracks, settings.tracks)
    tracks = preparation.moving_tracks(tracks, min_tracks, settings.tracks)
    tracks, thinning_notes = limit_samples(preparation.shorten_final_rest(tracks, settings.tracks), settings.tracks)
    return tracks, notes + thinning_notes


def _candidate_kinds(motion: Motion, count: int, settings: IdentificationSettings) -> tuple[dict[str, MotionKind], int]:
    """Return the kinds to fit, and the number of moving objects to fit them to."""
    if isinstance(motion, CustomScene):
        objects = motion.count_objects(count, settings.custom)
        return {motion.name: MotionKind(motion.candidate_models, objects=objects)}, count
    names = KINDS if motion is None else [motion]
    return {name: KINDS[name] for name in names}, settings.selection.max_objects


def _audio_onsets(source: Source, kinds: Collection[str], fps: float | None) -> np.ndarray:
    """Return the onsets in a file's sound track for kinds that use them; slow motion has no sound of its own."""
    if "bounce" not in kinds or fps is not None or not isinstance(source, str | os.PathLike):
        return np.zeros(0)
    try:
        sound = video.read_audio(source)
    except VideoError:  # a damaged sound track is as good as none
        sound = None
    return np.zeros(0) if sound is None else detect_onsets(sound)


def _build_result(
    candidates: Candidates, tracks: Sequence[Track], notes: Sequence[str], frame_rate: FrameRate
) -> Identification:
    """Return the best kind with parameters, rivals, holdout test and warnings."""
    fits, settings = candidates.fits, candidates.evidence.settings.selection
    scores = kind_scores(candidates)
    odds = kind_odds(scores)
    motion, *ties = indistinguishable_kinds(scores, settings.tie_margin)
    fit = fits[motion]
    indistinguishable = {kind: fit.model.alternatives.get(kind, "a longer clip, or another view") for kind in ties}
    holdout = evaluate_holdout(fit)
    cameras = compare_cameras(fit)
    parameters = estimate_parameters(fit, cameras)
    # A custom scene has the scale among its unknowns.
    scale = parameters.get("scale") if "scale" in fit.model.units else parameters.pop("scale", None)
    ignored = [track for track in tracks if not any(track is fitted_track for fitted_track in fit.evidence.tracks)]
    notes = list(notes)
    if ignored:
        notes.append(
            f"Analyzed: {_describe(fit.evidence.tracks)}. Something else moves too, and is ignored "
            f"({_describe(ignored)}); --object selects an object."
        )
    notes += [note for track in fit.evidence.tracks for note in track.notes]
    notes += _unused_known_values(fit.evidence.known_values, motion, ties)
    notes += [*span_warnings(fit), *fit.model.notes, *plausibility_warnings(fit, parameters)]
    if (reason := contradiction(fit)) is not None:
        notes.append(f"The motion contradicts the law of a {motion.replace('_', ' ')}: {reason}.")
    if holdout is not None and holdout.relative_error > settings.max_holdout_error:
        notes.append(describe_prediction_gap(fit, holdout.error))
    unique_notes = tuple(dict.fromkeys(notes))
    return Identification(
        motion, indistinguishable, odds, scores, candidates.rejected, parameters, unique_notes, fit, frame_rate,
        holdout, estimate_camera(cameras), None if scale is None else scale.interval_95,
    )  # fmt: skip


def _unused_known_values(known_values: Collection[str], motion: str, ties: Sequence[str]) -> list[str]:
    """Return warnings of known values that only a kind that cannot be distinguished from the best one can use.

    Raises:
        InputError: A known value can be used by none of them.
    """
    if motion not in KINDS:
        return []
    unused = [name for name in known_values if name not in (*KINDS[motion].known_names, "scale")]
    motions = " or ".join(kind.replace("_", " ") for kind in (motion, *ties))
    for name in unused:
        if not any(name in KINDS[kind].known_names for kind in ties):
            users = ", ".join(kind for kind in KINDS if name in KINDS[kind].known_names)
            raise InputError(
                f"known: {name} is given, but the clip shows a {motions}, which cannot use it; leave it out, or name a "
                f"kind that uses it by motion: {users}"
            )
    return [f"{name} is given, but a {motion.replace('_', ' ')} cannot use it." for name in unused]


def _describe(tracks: Sequence[Track]) -> str:
    return ", ".join(
        f"{track.name}: {int(track.observed.sum())} positions over {np.ptp(track.times[track.observed]):.2g} s, "
        f"{track.extent:.0f} {track.unit} across"
        for track in tracks
    )
