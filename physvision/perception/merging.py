"""Merge targets that turn out to be one object after refinement."""

from __future__ import annotations

import numpy as np

from physvision.perception.refinement import Detection, Target
from physvision.perception.settings import DEFAULT_SETTINGS, TrackSettings

Detections = list[Detection | None]


def merge_targets(
    targets: list[Target], detections: list[Detections], settings: TrackSettings = DEFAULT_SETTINGS.track
) -> tuple[list[Target], list[Detections]]:
    """Merge targets at the same positions, and targets of which one continues another.

    Args:
        targets: Targets in order of priority.
        detections: Detections of each target in all frames.
        settings: Gaps that count as an interruption.
    """
    detections = [_remove_outliers(track, settings.max_split_gap) for track in detections]
    retained: list[int] = []
    for number in range(len(targets)):
        for target in retained:
            pair, size = (detections[number], detections[target]), targets[target].size
            if _coincide(*pair, size) or _continues(*pair, size, settings.max_merge_gap):
                detections[target] = [_prefer_strong(b, a) for a, b in zip(*pair, strict=True)]
                break
        else:
            retained.append(number)
    return [targets[number] for number in retained], [detections[number] for number in retained]


def _prefer_strong(first: Detection | None, second: Detection | None) -> Detection | None:
    """Return the first detection, or the second where the first is missing or weak."""
    return second if first is None or (first.weak and second is not None) else first


def _frames(detections: Detections) -> np.ndarray:
    return np.flatnonzero([detection is not None for detection in detections])


def _remove_outliers(detections: Detections, max_gap: int) -> Detections:
    """Remove single detections and pairs that are separated by long gaps."""
    frames = _frames(detections)
    if len(frames) < 6:
        return detections
    runs = np.split(frames, np.flatnonzero(np.diff(frames) > max_gap) + 1)
    outliers = {int(frame) for run in runs if len(run) <= 2 for frame in run}
    return [None if number in outliers else detection for number, detection in enumerate(detections)]


def _coincide(first: Detections, second: Detections, size: float) -> bool:
    """Return True if both are at the same positions in many frames."""
    distances = [
        np.linalg.norm(a.position - b.position)
        for a, b in zip(first, second, strict=True)
        if a is not None and b is not None
    ]
    matches = sum(distance < 0.3 * size for distance in distances)
    return bool(matches > 0.3 * min(len(_frames(first)), len(_frames(second))))


def _continues(first: Detections, second: Detections, size: float, max_gap: int) -> bool:
    """Return True if either begins where and when the other ends; weak detections do not count."""
    strong = [[None if item is None or item.weak else item for item in track] for track in (first, second)]
    if not all(len(_frames(track)) for track in strong):
        return False
    early, late = sorted(strong, key=lambda track: int(_frames(track)[0]))
    end, start = int(_frames(early)[-1]), int(_frames(late)[0])
    if not -2 <= start - end <= max_gap:
        return False
    frames = _frames(early)[-4:]
    positions = np.array([detection.position for frame in frames if (detection := early[frame]) is not None])
    speed = float((np.linalg.norm(np.diff(positions, axis=0), axis=1) / np.diff(frames)).max(initial=0.0))
    last, first_late = early[end], late[start]
    if last is None or first_late is None:
        return False
    similar = abs(np.log(last.area / first_late.area)) < 0.6
    distance = np.linalg.norm(last.position - first_late.position)
    return bool(similar and distance < 1.5 * speed * max(start - end, 1) + size)
