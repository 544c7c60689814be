"""From a clip, or tracks, to the law that what moves in it follows."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from physvision import video
from physvision.core import Clip, InputError
from physvision.core.checks import check_positive
from physvision.identification import comparison
from physvision.identification.attempts import attempts, expected_error, held_out
from physvision.identification.fitting import Fit
from physvision.identification.hinges import hinged
from physvision.identification.identification import Identification
from physvision.identification.kinds import KINDS, KNOWN, LET_GO, OBJECTS
from physvision.identification.model import Case, Known
from physvision.identification.own_motion import OwnMotion, Sought
from physvision.identification.parameters import derived
from physvision.identification.preparing import begun, check_moves, chosen, ended, joined, moving_ones, usual_step
from physvision.identification.remarks import remarks, surprise
from physvision.identification.view import View
from physvision.perception import Track, detect_onsets, find_tracks
from physvision.physics.engine import MechanicalEngine

_ELSE = 0.1  # of the extent: a last third that is predicted worse is something else
_MOST = 2  # things that a kind may be about

Source = Clip | str | os.PathLike[str] | Sequence[Track]


def identify(
    source: Source,
    motion: str | MechanicalEngine | OwnMotion | None = None,
    known: Mapping[str, float | tuple[float, float] | Known] | None = None,
    *,
    fps: float | None = None,
    objects: int | None = None,
    object: tuple | str | None = None,
    crop: tuple[float, float, float, float] | None = None,
    start: float | None = None,
    stop: float | None = None,
    size: tuple[float, float] | None = None,
    unknown: Sought | None = None,
) -> Identification:
    """Find the law of a motion and its parameters, with intervals.

    Args:
        source: a clip, the path of a video, or tracks.
        motion: one of `kinds.KINDS`, all of which are tried if not given; or a scene of one's own: an engine, or an
            `OwnMotion`, which says more.
        known: what is known beforehand, SI units: a number, or a number and its standard deviation. `scale` is pixels
            a metre; of a scene of one's own, leaves of its properties have names such as "mass:cart".
        fps: frames a second that were really taken, where the file says otherwise.
        objects: how many things are meant; as the motion has it if not given.
        object: points at one of several things that move, see `find_tracks`; of tracks, the name of the one.
        crop: the part of the picture that is looked at: left, top, right, bottom; pixels. Not for tracks.
        start: s of the clip to begin at.
        stop: s of the clip to end at.
        size: width and height of the picture that tracks were found in, if tracks are given.
        unknown: of an engine of one's own, what is sought: bounds, or None, by the names of its properties.

    Raises:
        InputError: nothing moves, or no kind of motion explains what does; the message says what was seen.
    """
    if isinstance(motion, MechanicalEngine):
        motion = OwnMotion(motion, unknown or {})
    elif unknown is not None:
        raise InputError("unknown: goes with an engine as the motion; the kinds know what is unknown of them")
    if isinstance(motion, str) and motion not in KINDS:
        raise InputError(f"motion: expected one of {', '.join(KINDS)}, or a scene of your own, got {motion!r}")
    if fps is not None:
        check_positive("fps", fps)
    told = {name: _known(name, value) for name, value in (known or {}).items()}
    if not isinstance(motion, OwnMotion):
        _check_known(told)
    least = OBJECTS.get(motion, 1) if isinstance(motion, str) else 1
    tracks, view = _tracks(source, fps, object, crop, start, stop, size, least)
    check_moves(tracks)
    if any(track.unit == "m" for track in tracks):
        told.setdefault("scale", Known(1.0))
    tracks = [hinged(track) for track in joined(tracks)]
    tracks, notes = (tracks, []) if motion in LET_GO else begun(tracks)
    moving = everything = moving_ones(tracks, least)
    if isinstance(motion, OwnMotion):
        proposals = {motion.name: (motion.propose, objects or motion.counts(len(moving)))}
    else:
        proposals = {kind: (KINDS[kind], OBJECTS.get(kind, 1)) for kind in ([motion] if motion else KINDS)}
        moving = moving[: objects or _MOST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # steps of a search may lead where worlds fail
        knocks = _knocks(source, proposals, fps)
        fits, refused = attempts(moving, view, told, proposals, knocks)
        if not fits:
            everything, stopped = ended(everything)
            if stopped:
                moving, notes = everything[: len(moving)], notes + stopped
                fits, refused = attempts(moving, view, told, proposals, knocks)
    if not fits:
        reasons = "; ".join(f"{kind}: {reason}" for kind, reason in refused.items())
        raise InputError(f"no kind of motion explains what was seen ({_seen(tracks)}). {reasons}")
    return _named(fits, refused, told, everything, notes)


def _named(
    fits: Mapping[str, tuple[Case, Fit]],
    refused: Mapping[str, str],
    told: Mapping[str, Known],
    everything: Sequence[Track],
    notes: Sequence[str],
) -> Identification:
    """What the best of the fits tells, with the kinds that nobody could tell from it and what is to be said of it."""
    # The more of what moves a kind explains, the better: kinds of two objects are compared with those of one on both.
    scores = {kind: comparison.score(case, found) for kind, (case, found) in fits.items()}
    most = max(len(case.tracks) for case, _ in fits.values())
    names = comparison.group({kind: scores[kind] for kind in fits if len(fits[kind][0].tracks) == most})
    best = names[0]
    case, found = fits[best]
    alike = {name: found.model.also.get(name, "a longer clip, or another view") for name in names[1:]}
    parameters = derived(case, found)
    others = [track for track in everything if not any(track is one for one in case.tracks)]
    notes = list(notes)
    if others:
        notes.append(f"Something else moves too, and is left out ({_seen(others)}); --object says what is meant.")
    notes += [note for track in case.tracks for note in track.notes]
    notes += [*found.model.notes, *remarks(case, found, parameters)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        held = held_out(case, found)
        if held is not None and held.share > _ELSE:
            notes.append(surprise(held.error, expected_error(found), comparison.extent(case), case.unit))
    return Identification(
        best, alike, scores, refused, parameters, told, tuple(dict.fromkeys(notes)), found, case, held
    )


def _known(name: str, value: float | tuple[float, float] | Known) -> Known:
    if not isinstance(value, Known):
        number, deviation = value if isinstance(value, tuple) else (value, 0.0)
        value = Known(float(number), float(deviation))
    if not math.isfinite(value.value) or not 0 <= value.deviation < math.inf:
        raise InputError(
            f"known: {name}: expected a finite number and perhaps its deviation, at least zero, got {value.value:g} "
            f"± {value.deviation:g}"
        )
    return value


def _check_known(told: Mapping[str, Known]) -> None:
    for name, each in told.items():
        if name not in KNOWN:
            raise InputError(f"known: expected some of {', '.join(KNOWN)}, got {name!r}")
        if name != "angle" and each.value <= 0:
            raise InputError(f"known: {name}: expected a number above zero, got {each.value:g}")


def _tracks(source: Source, fps, object, crop, start, stop, size, least) -> tuple[list[Track], View]:
    if isinstance(source, Clip | str | os.PathLike):
        tracks = find_tracks(source, object=object, crop=crop, start=start, stop=stop, least=least)
        if isinstance(source, Clip):
            height, width = source.frames.shape[1:3]
        else:
            described = video.read_info(source)
            height, width = described.height, described.width
        view = View(float(width), float(height))
    else:
        tracks = chosen(source, object, crop, start, stop)
        view = View(*size) if size else View.around(tracks)
    if fps is not None:
        tracks = [replace(track, times=track.times / (fps * usual_step(track.times))) for track in tracks]
    return tracks, view


def _knocks(source: Source, kinds: Collection[str], fps: float | None) -> np.ndarray:
    """When the sound track of a file knocks, for kinds that listen; slow motion has no sound of its own."""
    if "bounce" not in kinds or fps is not None or not isinstance(source, str | os.PathLike):
        return np.zeros(0)
    sound = video.read_audio(source)
    return np.zeros(0) if sound is None else detect_onsets(sound)


def _seen(tracks: Sequence[Track]) -> str:
    return ", ".join(
        f"{track.name}: {int(track.observed.sum())} places over {np.ptp(track.times[track.observed]):.2g} s, "
        f"{track.extent:.0f} {track.unit} across"
        for track in tracks
    )
