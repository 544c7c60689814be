"""Tracks made ready to be explained: pieces joined, a hand's time left out, what goes nowhere left aside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from physvision.core import InputError
from physvision.perception import Track

_HELD = 0.15  # of the places: so many at rest at the beginning are a hand's doing
_STILL = 0.01  # of the extent, within which it is at rest
_FEWEST = 5  # places of which a motion can be told at all


def chosen(tracks: Sequence[Track], name: object, crop: object, start: float | None, stop: float | None) -> list[Track]:
    """Those of tracks that are meant: the one of this name, from `start` to `stop`, seconds; all if not told."""
    if not tracks:
        raise InputError("source: expected at least one track")
    if crop is not None:
        raise InputError(
            "crop: cuts pictures, and these are tracks; leave out rows of the table, or use start and stop"
        )
    if start is not None and stop is not None and stop <= start:
        raise InputError(f"stop: expected more than start = {start:g} s, got {stop:g} s")
    names = ", ".join(track.name for track in tracks)
    meant = [track for track in tracks if name is None or track.name == name]
    if not meant:
        raise InputError(f"object: of tracks, expected the name of one, {names}, got {name!r}")
    low, high = -math.inf if start is None else start, math.inf if stop is None else stop
    first, last = np.searchsorted(meant[0].times, [low, high]).tolist()
    cut = [track.window(first, last) for track in meant]
    whole = [track for track in cut if track.observed.sum() >= _FEWEST]
    if not whole:
        counts = ", ".join(f"{track.name}: {int(track.observed.sum())}" for track in cut)
        raise InputError(f"expected at least {_FEWEST} places of something that moves, got {counts}")
    return whole


def check_moves(tracks: Sequence[Track]) -> None:
    """Refuse tracks of which none leaves the place where it is first seen."""
    if all(_rest(track) == track.observed.sum() for track in tracks):
        names = ", ".join(track.name for track in tracks)
        raise InputError(f"nothing moves: of {names}, none leaves the place where it is first seen")


def joined(tracks: Sequence[Track]) -> list[Track]:
    """Tracks of which one begins where and when another ends, made one: a thing that was lost and found again."""
    rest = sorted(tracks, key=lambda track: int(np.flatnonzero(track.observed)[0]))
    whole: list[Track] = []
    for track in rest:
        begin = int(np.flatnonzero(track.observed)[0])
        for number, other in enumerate(whole):
            end = int(np.flatnonzero(other.observed)[-1])
            if not -2 <= begin - end <= 6 or len(other) != len(track):
                continue
            apart = float(np.linalg.norm(track.positions[begin] - other.positions[end]))
            near = np.flatnonzero(other.observed)[-4:]
            speed = float(np.linalg.norm(np.diff(other.positions[near], axis=0), axis=1).max(initial=0.0))
            if apart <= 1.5 * speed * max(begin - end, 1) + 2 * (other.radius or 1.0):
                whole[number] = _one(other, track, end)
                break
        else:
            whole.append(track)
    return whole


def _one(before: Track, after: Track, end: int) -> Track:
    late = np.arange(len(before)) > end
    return replace(
        before,
        positions=np.where(late[:, None], after.positions, before.positions),
        sigma=np.where(late, after.sigma, before.sigma),
        observed=np.where(late, after.observed, before.observed),
        angle=None,
    )


def moving_ones(tracks: list[Track], least: int) -> list[Track]:
    """Those that go somewhere, the one whose motion is seen best first; so many at least."""
    moving = sorted(tracks, key=lambda track: -_told(track))
    far = [track for track in moving if track.extent > 0.15 * max(track.extent for track in tracks)]
    return far if len(far) >= least else moving[:least]


def _told(track: Track) -> float:
    """How much a track tells of a motion: its extent in deviations, of all its places together."""
    return track.extent / float(np.median(track.sigma[track.observed])) * math.sqrt(float(track.observed.sum()))


def begun(tracks: Sequence[Track]) -> tuple[list[Track], list[str]]:
    """Tracks without the time before anything moves, and what is to be said of it: no law tells how long a hand holds.

    Places of that time count as not seen.
    """
    rests = min(_rest(track) for track in tracks)
    if rests < _HELD * min(int(track.observed.sum()) for track in tracks):
        return list(tracks), []
    found = []
    for track in tracks:
        seen = track.observed & (np.arange(len(track)) >= np.flatnonzero(track.observed)[rests])
        found.append(replace(track, observed=seen, sigma=np.where(seen, track.sigma, np.inf)))
    moment = found[0].times[found[0].observed][0] - tracks[0].times[0]
    return found, [f"Nothing moves in the first {moment:.2g} s; they are left out."]


def _rest(track: Track, backwards: bool = False) -> int:
    """How many of the first (or last) places that were seen lie where the very first (last) ones do."""
    places = track.positions[track.observed][:: -1 if backwards else 1]
    near = max(5 * float(np.median(track.sigma[track.observed])), _STILL * track.extent)
    gone = np.linalg.norm(places - np.median(places[:5], axis=0), axis=1) > near
    return int(gone.argmax()) if gone.any() else len(places)


def ended(tracks: Sequence[Track]) -> tuple[list[Track], list[str]]:
    """Tracks without the time in which something stands still at the end, and what is to be said of it."""
    found, notes = [], []
    for track in tracks:
        count = _rest(track, backwards=True)
        if count >= _HELD * int(track.observed.sum()):
            moment = float(track.times[track.observed][-count])
            track = replace(track, observed=track.observed & (track.times < moment))
            track = replace(track, sigma=np.where(track.observed, track.sigma, np.inf))
            notes.append(
                f"{track.name} stands still from {moment:.2f} s on, and no law explains how it came to rest: that is "
                f"left out, as by --to {moment:.2f}."
            )
        found.append(track)
    return found, notes


def usual_step(times: np.ndarray) -> float:
    """The time from a frame to the next where none is missing: stamps may be rounded, so the mean of those."""
    steps = np.diff(times)
    return float(steps[steps < 1.5 * np.median(steps)].mean())
