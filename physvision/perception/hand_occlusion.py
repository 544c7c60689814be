"""A thing that a hand still holds, or that has hardly left it, told from the hand by its colours.

What differs from the background is then the thing and the hand together. Where the thing was seen clearly, later on,
its colours were learned; from there it is followed back, frame by frame. A pixel of colour c at the edge between the
thing's colour a and another one b, the hand's or the background's, is covered by |c − b| / (|c − a| + |c − b|) of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cv2
import numpy as np
from jaxtyping import Float

from physvision.perception.refinement import Detection

_CLEAR = 0.06  # change of what is seen of it below which nothing else touches it
_ENOUGH = 4  # frames in a row that are so
_BACK = 24  # frames that it is followed back at most
_LOST = 2  # frames in a row in which it may be lost: one that is shown twice does not fit its path
_ALIKE = 0.25  # change of what is seen of it up to which it is the thing
_UNLIKE = 45.0  # levels by which its colours must differ from the hand's
_BEFORE = range(2, 6)  # frames before a thing is first seen; just before, a part of it may be there
_NEAR = 4.0  # times its radius, around where it is first seen, and as far as it moves in that time
_NOTHING = 0.2  # of its size: less than that changes where nothing moves
_INSIDE, _AROUND = 0.7, 3.0  # of its radius: where only its own colours are seen, and where the hand's are


def clear_from(detections: Sequence[Detection | None]) -> int | None:
    """The first frame from which on a thing is seen with nothing else beside it; None if there is none."""
    masses = np.array([np.nan if s is None or s.faint else s.mass for s in detections])
    if np.isfinite(masses).sum() < 2 * _ENOUGH:
        return None
    steady = np.abs(np.log(masses / np.nanmedian(masses))) < _CLEAR
    for frame in range(len(masses) - _ENOUGH):
        if steady[frame : frame + _ENOUGH].all():
            return frame
    return None


def wanted(detections: Sequence[Detection | None]) -> range:
    """The frames in which a thing may be in a hand, those that its colours are learned from, and a few before."""
    seen, clear = _seen(detections), clear_from(detections)
    if not seen:
        return range(0)
    first = max(0, min(seen) - _BEFORE[-1])
    return range(min(first, max(0, clear - _BACK)), clear + _ENOUGH) if clear else range(first, min(seen))


def _seen(detections: Sequence[Detection | None]) -> dict[int, Detection]:
    """The frames in which more than a trace of a thing is seen, and what was found there."""
    return {number: each for number, each in enumerate(detections) if each is not None and not each.faint}


def followed_back(
    frames: Mapping[int, np.ndarray], behind: np.ndarray, threshold: np.ndarray, detections: list[Detection | None]
) -> list[Detection | None]:
    """Detections with what was found of the thing before it is clear of the hand.

    Args:
        frames: aligned, by their numbers; all that are `wanted`.
        behind: the background.
        threshold: levels from which on a pixel has changed.
        detections: of the thing in all frames.
    """
    clear = clear_from(detections)
    if not clear:
        return detections
    known = {frame: seen for frame in range(clear, clear + _ENOUGH) if (seen := detections[frame]) is not None}
    mass = float(np.median([seen.mass for seen in known.values()]))
    colors = _colors([_patch(frames[frame], seen.place, _INSIDE * _radius(mass)) for frame, seen in known.items()])
    found, both = list(detections), []
    for frame, seen in known.items():
        again = _sighted(frames[frame], behind, threshold, seen.place, mass, colors, 2 * _ALIKE)
        if again is not None:
            both.append((again, seen))
    if len(both) < 2:
        return detections
    # How far this way of looking is off is seen where there is another.
    off = [again.place - seen.place for again, seen in both]
    usual, mass = mass, float(np.median([again.mass for again, _ in both]))
    aside, scatter = np.mean(off, axis=0), float(np.sqrt(np.mean(np.square(off))))
    places = {frame: seen.place for frame, seen in known.items()}
    for frame in range(clear - 1, max(clear - _BACK, 0) - 1, -1):
        if min(places) - frame > _LOST:
            break
        seen = _sighted(frames[frame], behind, threshold, _expected(places, frame), mass, colors)
        if seen is not None:
            places[frame] = seen.place - aside
            sigma = float(np.hypot(scatter, known[clear].sigma))
            found[frame] = Detection(places[frame], seen.mass * usual / mass, seen.angle, seen.axes, sigma)
    return found


def emerges(
    frames: Mapping[int, np.ndarray], behind: np.ndarray, threshold: np.ndarray, detections: Sequence[Detection | None]
) -> bool:
    """Whether a thing came out of something that stands still: just before it was first seen nothing moved there.

    Args:
        frames: as in `followed_back`.
        behind: the background.
        threshold: levels from which on a pixel has changed.
        detections: of the thing in all frames.
    """
    seen = _seen(detections)
    if len(seen) < 2:
        return False
    first, later = list(seen)[:2]
    before = [first - back for back in _BEFORE]
    if any(number not in frames for number in before):
        return False
    place, mass = seen[first].place, float(np.median([each.mass for each in seen.values()]))
    step = float(np.linalg.norm(seen[later].place - place)) / (later - first)
    reach = _NEAR * _radius(mass) + step * _BEFORE[-1]
    rows, columns = np.mgrid[: behind.shape[0], : behind.shape[1]] + 0.5
    near = np.hypot(columns - place[0], rows - place[1]) < reach
    changed = [np.linalg.norm(frames[number][near] - behind[near], axis=-1) > threshold[near] for number in before]
    return bool(max(pixels.sum() for pixels in changed) < _NOTHING * mass)


def _expected(places: Mapping[int, np.ndarray], frame: int) -> Float[np.ndarray, "2"]:
    """Where a path leads back to: the parabola through its three earliest places, or the line through two."""
    early = sorted(places)[:3]
    powers = np.vander(np.array(early) - frame, len(early), increasing=True)
    return np.linalg.solve(powers.astype(float), np.array([places[each] for each in early]))[0]


def _radius(mass: float) -> float:
    return float(np.sqrt(mass / np.pi))


def _patch(frame: np.ndarray, place: Float[np.ndarray, "2"], radius: float) -> Float[np.ndarray, "pixels 3"]:
    """The pixels around a place."""
    rows, columns = np.mgrid[: frame.shape[0], : frame.shape[1]] + 0.5
    return frame[np.hypot(columns - place[0], rows - place[1]) < max(radius, 1.0)].astype(float)


def _colors(patches: Sequence[np.ndarray], count: int = 2) -> Float[np.ndarray, "colors 3"]:
    """The colours that pixels have most, by the means of so many clusters."""
    pixels = np.concatenate(patches).astype(np.float32)
    if len(pixels) <= count:
        return pixels.astype(float)
    until = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 10, 1.0)
    cv2.setRNGSeed(0)
    return cv2.kmeans(pixels, count, None, until, 2, cv2.KMEANS_PP_CENTERS)[2].astype(float)  # pyright: ignore


def _distance(pixels: np.ndarray, colors: Float[np.ndarray, "colors 3"]) -> np.ndarray:
    """How far pixels are from the nearest colour on the lines between these, levels."""
    first, last = colors[0], colors[-1]
    along = last - first
    length = float(along @ along)
    share = np.clip((pixels - first) @ along / max(length, 1e-9), 0, 1)[..., None]
    return np.linalg.norm(pixels - first - share * along, axis=-1)


def _sighted(frame, behind, threshold, guess, mass: float, colors, alike: float = _ALIKE) -> Detection | None:
    """The thing near where it is expected, by its colours; None where it is not seen as a whole."""
    radius = _radius(mass)
    side = _AROUND * radius + 3
    height, width = frame.shape[:2]
    if (guess < radius + 2).any() or (guess > np.array([width, height]) - radius - 2).any():
        return None
    left, top = np.floor(guess - side).astype(int).clip(0)
    right, bottom = np.ceil(guess + side).astype(int).clip(0, [width, height])
    piece = slice(top, bottom), slice(left, right)
    pixels, under = frame[piece].astype(float), behind[piece].astype(float)
    columns, rows = np.meshgrid(np.arange(left, right) + 0.5, np.arange(top, bottom) + 0.5)
    apart, own = np.linalg.norm(pixels - under, axis=-1), _distance(pixels, colors)
    changed = apart > threshold[piece]
    others = pixels[changed & (own > _UNLIKE)]
    other = apart
    if len(others) > 0.3 * mass:
        hands = _colors([others])
        if _distance(hands, colors).min() < _UNLIKE:
            return None
        other = np.minimum(apart, np.linalg.norm(pixels[:, :, None] - hands, axis=-1).min(-1))
    share = cv2.GaussianBlur((other / (own + other + 1e-6)).astype(np.float32), (0, 0), 0.6)
    mask = (changed & (share > 0.5)).astype(np.uint8)
    count, labels, stats, middles = cv2.connectedComponentsWithStats(mask, connectivity=4)
    best = None
    for label in range(1, count):
        away = float(np.hypot(*(middles[label] + [left + 0.5, top + 0.5] - guess)))
        change = abs(np.log(stats[label, cv2.CC_STAT_AREA] / mass))
        if change < 2 * alike and away < radius and (best is None or away < best[0]):
            best = away, label
    if best is None:
        return None
    near = cv2.dilate((labels == best[1]).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    weights = np.where(near & changed, np.clip(share, 0, 1), 0.0)
    weights[weights < 0.15] = 0.0
    total = float(weights.sum())
    if abs(np.log(total / mass)) > alike:
        return None
    place = np.array([float((weights * columns).sum()), float((weights * rows).sum())]) / total
    return Detection(place, total, 0.0, 1.0, 0.0)
