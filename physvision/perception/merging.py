"""Targets that turn out to be one thing, put together once each has been looked at closely."""

from __future__ import annotations

import numpy as np

from physvision.perception.refinement import Detection, Target

Detections = list[Detection | None]
_ALONE = 10  # frames: one or two detections that are further from all others are chance
_GAP = 8  # frames without a detection at most where one piece goes on as the next


def merge_targets(targets: list[Target], detections: list[Detections]) -> tuple[list[Target], list[Detections]]:
    """The things themselves: pieces side by side, or one after the other, belong to one."""
    seen = [_without_strays(found) for found in detections]
    kept: list[int] = []
    for mine in range(len(targets)):
        for its in kept:
            size = targets[its].size
            if _together(seen[mine], seen[its], size) or _goes_on(seen[mine], seen[its], size):
                seen[its] = [_clearer(b, a) for a, b in zip(seen[mine], seen[its], strict=True)]
                break
        else:
            kept.append(mine)
    return [targets[number] for number in kept], [seen[number] for number in kept]


def _clearer(one: Detection | None, other: Detection | None) -> Detection | None:
    """The first of both, unless it is a trace and the other is there."""
    return other if one is None or (one.faint and other is not None) else one


def _frames(found: Detections) -> np.ndarray:
    return np.flatnonzero([one is not None for one in found])


def _without_strays(found: Detections) -> Detections:
    frames = _frames(found)
    if len(frames) < 6:
        return found
    runs = np.split(frames, np.flatnonzero(np.diff(frames) > _ALONE) + 1)
    strays = {int(frame) for run in runs if len(run) <= 2 for frame in run}
    return [None if number in strays else one for number, one in enumerate(found)]


def _together(one: Detections, other: Detections, size: float) -> bool:
    """Whether both were found at the same places at the same time."""
    pairs = [(a.place, b.place) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    near = sum(np.linalg.norm(a - b) < 0.3 * size for a, b in pairs)
    return bool(near > 0.3 * min(len(_frames(one)), len(_frames(other))))


def _goes_on(one: Detections, other: Detections, size: float) -> bool:
    """Whether one begins where and when the other ends; traces of a thing, where its path leads, do not count."""
    one, other = ([None if each is None or each.faint else each for each in found] for found in (one, other))
    if not len(_frames(one)) or not len(_frames(other)):
        return False
    early, late = sorted((one, other), key=lambda found: int(_frames(found)[0]))
    end, begin = int(_frames(early)[-1]), int(_frames(late)[0])
    if not -2 <= begin - end <= _GAP:
        return False
    near = _frames(early)[-4:]
    places = np.array([detection.place for number in near if (detection := early[number]) is not None])
    speed = float((np.linalg.norm(np.diff(places, axis=0), axis=1) / np.diff(near)).max(initial=0.0))
    last, first = early[end], late[begin]
    if last is None or first is None:
        return False
    alike = abs(np.log(last.mass / first.mass)) < 0.6
    return bool(alike and np.linalg.norm(last.place - first.place) < 1.5 * speed * max(begin - end, 1) + size)
