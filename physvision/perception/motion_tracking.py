"""Tracks of what moves in a clip, found without training."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from physvision.core import Clip, InputError
from physvision.core.checks import check_count
from physvision.perception import hand_occlusion
from physvision.perception.association import TrackletBuilder
from physvision.perception.background import Alignment, Background, BackgroundSurvey, survey_background
from physvision.perception.blobs import detect_blobs
from physvision.perception.frame_source import Box, FrameSource
from physvision.perception.merging import merge_targets
from physvision.perception.refinement import Detection, Target, detect_target, direction
from physvision.perception.timestamps import repair_timestamps
from physvision.perception.track import Track, estimate_noise
from physvision.perception.track_selection import filter_tracklets, select_tracklets

_FLOOR = 0.03  # px: systematic errors below which noise does not matter
_PARTLY = 0.1  # share of a thing that is missing, or too much, from which on its middle is not where it seems
_SCATTERS = 4.0  # deviations by which noise alone makes a thing seem larger or smaller
_FEWEST = 5  # clear detections of a thing
_AROUND = 2  # detections before and after, that tell how much of a thing is seen
_CHANGED = 0.5  # change of the logarithm of what is seen of a thing from which on some of it is missing, or too much
_SLOW = 0.25  # share of the frames, the slowest ones, that tell how large a thing is
_LEAST = 1.4  # the same below which it may be something else


def find_tracks(
    clip: Clip | str | os.PathLike[str],
    objects: int | None = None,
    object: Box | str | tuple[float, float, float] | None = None,
    crop: Box | None = None,
    start: float | None = None,
    stop: float | None = None,
    least: int = 1,
) -> list[Track]:
    """Follow what moves before a still background; the clearest first.

    Background by median, what differs from it linked over time, and each thing measured again with what was learned
    of its colour and size. Memory does not grow with the clip's length when it is given as a path.

    Args:
        clip: in memory, or the path of a video.
        objects: how many things are meant; every one that clearly moves if not given.
        object: points at one where others move too: a box that it comes through (left, top, right, bottom, pixels) or
            its colour (a name, "#rrggbb", or red, green, blue of 0 to 1).
        crop: left, top, right, bottom of the part that is looked at, pixels. Positions are those in the whole picture.
        start: s; frames before are left out.
        stop: s; frames from there on are left out.
        least: so many things are expected, where `objects` is not given: those that move less clearly count too.

    Raises:
        InputError: nothing moves, or another number of things than expected; the message says what was seen.
        VideoError: the camera moves, or the file cannot be read.
    """
    if objects is not None:
        check_count("objects", objects)
    footage = FrameSource(clip, crop, start, stop)
    shrink, corner = footage.placing(footage.first_shape())
    look = survey_background(footage)
    background = Background(look.samples)
    repeats = look.repeats
    linker = TrackletBuilder(0.3 * max(look.samples.shape[1:3]))
    alignments: list[Alignment] = []
    for number, (moment, frame) in enumerate(footage):
        alignments.append(background.alignment(frame, alignments[-1] if alignments else None))
        if repeats[number]:
            continue
        aligned = background.aligned(frame, alignments[-1])
        blobs = detect_blobs(aligned, background.change(aligned), background.threshold, background.bytes)
        linker.add(number, moment, blobs)
    tracklets = linker.tracklets()
    if object is not None:
        tracklets = filter_tracklets(tracklets, _within(object, shrink, corner), footage.name)
        objects = objects or 1
    chosen, notes = select_tracklets(tracklets, len(look.times), objects, footage.name, least)
    targets = [Target.of(tracklet) for tracklet in chosen]
    detections: list[list[Detection | None]] = [[] for _ in targets]
    for number, (_, frame) in enumerate(footage):
        aligned = background.aligned(frame, alignments[number])
        for index, target in enumerate(targets):
            others = [other for other in targets if other is not target and other.there(number)]
            detections[index].append(
                detect_target(aligned, background.picture, background.threshold, target, number, others)
            )
    targets, detections = merge_targets(targets, detections)
    detections, emerges = _out_of_hands(footage, background, alignments, detections)
    notes += _remarks(look, background)
    every = zip(targets, detections, emerges, strict=True)
    clear = [each for each in every if _whole(each[1]).sum() >= _FEWEST]
    # A hand, say, seems to move like something whole until it is looked at closely.
    if len(clear) < (objects or 1):
        raise InputError("what moves is lost when it is looked at closely; point at it with object, or cut with crop")
    return repair_timestamps(
        [
            replace(_track(look, target, found, index, shrink, corner, tuple(notes)), static_before_visible=alone)
            for index, (target, found, alone) in enumerate(clear)
        ]
    )


def _out_of_hands(
    footage: FrameSource, background: Background, alignments: list[Alignment], detections: list[list[Detection | None]]
) -> tuple[list[list[Detection | None]], list[bool]]:
    """Detections with what is seen of things that a hand still holds; and whether each came out of something still."""
    ranges = [hand_occlusion.wanted(found) for found in detections]
    numbers = {number for each in ranges for number in each}
    frames: dict[int, np.ndarray] = {}
    for number, (_, frame) in enumerate(footage):
        if number > max(numbers, default=-1):
            break
        if number in numbers:
            frames[number] = background.aligned(frame, alignments[number])
    followed, emerges = [], []
    for each, found in zip(ranges, detections, strict=True):
        near = {number: frames[number] for number in each}
        back = hand_occlusion.followed_back(near, background.picture, background.threshold, found) if near else found
        followed.append(back)
        emerges.append(hand_occlusion.emerges(near, background.picture, background.threshold, back))
    return followed, emerges


def _within(pointer, shrink: int, corner: np.ndarray):
    if isinstance(pointer, str) or len(pointer) != 4:
        return pointer
    return tuple((np.asarray(pointer, float) - np.tile(corner, 2)) / shrink)


def _track(
    look: BackgroundSurvey,
    target: Target,
    found: list[Detection | None],
    index: int,
    shrink: int,
    corner: np.ndarray,
    notes: tuple[str, ...],
) -> Track:
    faint = np.array([detection is not None and detection.faint for detection in found])
    masses, clear = _masses(found), _whole(found)
    places = np.array([s.place if s is not None else [np.nan, np.nan] for s in found])
    clear &= ~_repeated(places, clear, look.changes)
    near = np.convolve(clear, [1, 1, 1], "same") > 0
    seen = clear | (faint & near)
    positions = places * shrink + corner
    frames = np.arange(len(found))
    for axis in (0, 1):
        positions[:, axis] = np.interp(frames, frames[seen], positions[seen, axis], np.nan, np.nan)
    noise = np.hypot([s.sigma for s, ok in zip(found, seen, strict=True) if ok and s is not None], _FLOOR) * shrink
    mass = float(np.median(masses[clear]))
    radius = shrink * _radius(masses[clear], places[clear], look.times[clear])
    sigma = np.full(len(found), np.inf)
    sigma[seen] = noise * max(1.0, estimate_noise(positions[clear]) / float(np.median(noise)))
    # What is missing of it, or too much, lies to one side.
    wrong = np.abs(1 - np.where(seen, np.nan_to_num(masses), mass) / mass)
    scatter = 1.4826 * float(np.median(np.abs(np.diff(masses[clear])))) / math.sqrt(2) / mass
    sigma = np.hypot(sigma, np.where(wrong > max(_PARTLY, _SCATTERS * scatter), 0.5 * radius * wrong, 0.0))
    whole = [s for s, ok in zip(found, clear, strict=True) if ok and s is not None]
    angle = direction(np.array([s.angle for s in whole]), np.array([s.axes for s in whole]))
    if angle is not None:
        angle = np.interp(frames, frames[clear], angle, np.nan, np.nan)
    red, green, blue = (float(value) / 255 for value in target.color)
    return Track(
        times=look.times,
        positions=positions,
        sigma=sigma,
        observed=seen,
        angle=angle,
        radius=radius,
        color=(red, green, blue),
        name=f"object {index + 1}",
        notes=notes,
    )


def _radius(masses: np.ndarray, places: np.ndarray, times: np.ndarray) -> float:
    """Of the circle with a thing's area, pixels, by the frames in which it is slowest: the blur of others widens it."""
    speed = np.linalg.norm(np.gradient(places, times, axis=0), axis=1)
    slow = speed <= np.quantile(speed, max(_SLOW, min(1.0, _FEWEST / len(speed))))
    return float(np.sqrt(np.median(masses[slow]) / np.pi))


def _masses(found: Sequence[Detection | None]) -> np.ndarray:
    """How many pixels a thing covers; NaN where it is not seen, or only a trace of it."""
    return np.array([np.nan if detection is None or detection.faint else detection.mass for detection in found])


def _whole(found: Sequence[Detection | None]) -> np.ndarray:
    """Where what is seen of a thing is as much as in the frames around: it is neither cut off nor joined to another.

    Before something that looks like a part of it, a thing may show less for a while and still be followed.
    """
    masses = _masses(found)
    seen = np.flatnonzero(np.isfinite(masses))
    steady = np.zeros(len(masses), bool)
    logs = np.log(masses[seen])
    for at, frame in enumerate(seen):
        around = logs[max(0, at - _AROUND) : at + _AROUND + 1]
        steady[frame] = abs(logs[at] - np.median(around)) < _CHANGED
    away = np.log(masses / np.median(masses[seen])) if len(seen) else masses
    return steady & (away > -_LEAST) & (away < _CHANGED)


def _repeated(places: np.ndarray, seen: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Frames that show the one before again, while the thing moves on around them."""
    repeated = np.zeros(len(seen), bool)
    usual = np.quantile(changes[1:], 0.75)
    for frame in np.flatnonzero(changes < 0.5 * usual):
        if frame < 2 or not seen[frame] or not seen[frame - 1]:
            continue
        earlier = places[max(0, frame - 4) : frame - 1][seen[max(0, frame - 4) : frame - 1]]
        later = places[frame + 1 : frame + 5][seen[frame + 1 : frame + 5]]
        moving = [np.linalg.norm(around - places[frame], axis=1).max(initial=0.0) for around in (earlier, later)]
        repeated[frame] = np.linalg.norm(places[frame] - places[frame - 1]) < 0.2 * min(1.0, *moving)
    return repeated


def _remarks(look: BackgroundSurvey, background: Background) -> list[str]:
    remarks = []
    if background.shaky:
        remarks.append(f"The camera shakes by {background.shift_deviation:.1f} pixels; that was taken out.")
    steps = np.diff(look.times)
    missing = int((np.round(steps / np.median(steps)) - 1).clip(0).sum())
    if missing:
        remarks.append(f"Frames that are missing by the file's time stamps: {missing}.")
    return remarks
