"""Which of the things that move are meant: shadows, hands, noise and what is left behind are not."""

from __future__ import annotations

import numpy as np
from PIL import ImageColor

from physvision.core import InputError
from physvision.perception.association import Tracklet, dissimilarity
from physvision.perception.frame_source import Box

_SHARE = 0.2  # of the clearest thing's score: less is not called a moving thing
_STILL = 0.1  # of the extent, within which a thing counts as at rest
_ENDS = 5  # places that say where it rests
_SAME_HUE = 0.9  # cosine between the differences of two colours from what is behind
_LEAST = 0.01  # the same for one of so many as are expected


def score(tracklet: Tracklet, frames: int) -> float:
    """How clearly a tracklet is one thing that moves: seen often, far and steady in size, away from the border."""
    areas = np.log([blob.area for blob in tracklet.blobs])
    spread = float(np.median(np.abs(areas - np.median(areas))))
    border = float(np.mean([blob.at_border for blob in tracklet.blobs]))
    shadow = float(np.mean([blob.shadow for blob in tracklet.blobs]))
    travel = tracklet.extent
    if travel < max(3.0, 0.25 * tracklet.size):
        return 0.0
    steady = 1 / (1 + 3 * spread) / (1 + 4 * _jerk(tracklet))
    # A hand moves by about its own size, what it throws by many times that.
    steady *= travel / (travel + 1.5 * tracklet.size)
    # What a hand does once it has thrown, to stay where it is, tells of no thing that moves.
    seen = (len(tracklet) - _resting(tracklet)) / frames
    return float(travel**0.7 * np.sqrt(seen) * tracklet.contrast * steady * (1 - 0.8 * border) * (1 - 0.7 * shadow))


def _resting(tracklet: Tracklet) -> int:
    """How many of its places at the beginning, and at the end, lie where the very first, and the last, ones do."""
    resting = 0
    for places in (tracklet.places, tracklet.places[::-1]):
        gone = np.linalg.norm(places - np.median(places[:_ENDS], axis=0), axis=1) > _STILL * tracklet.extent
        resting += int(gone.argmax()) if gone.any() else len(places)
    return min(resting, len(tracklet))


def _jerk(tracklet: Tracklet) -> float:
    """How far places lie from parabolas through their neighbours, in sizes: large for noise and for hands."""
    places, times = tracklet.places, np.array(tracklet.times)
    if len(tracklet) < 7:
        return 0.5
    rests = []
    for start in range(0, len(tracklet) - 6, max(1, len(tracklet) // 60)):
        piece = slice(start, start + 7)
        moments = times[piece] - times[start + 3]
        if np.ptp(moments) > 0.6:
            continue
        matrix = np.stack([np.ones(7), moments, moments**2], 1)
        rest = places[piece] - matrix @ np.linalg.lstsq(matrix, places[piece], rcond=None)[0]
        rests.append(np.sqrt((rest**2).sum() / 8))
    return float(np.median(rests)) / tracklet.size if rests else 0.5


def select_tracklets(
    tracklets: list[Tracklet], frames: int, objects: int | None, name: str, least: int = 1
) -> tuple[list[Tracklet], list[str]]:
    """The things that move, the clearest first, with what there is to say about it.

    Args:
        tracklets: all that was linked.
        frames: number of frames looked at.
        objects: how many things are meant, None for all that are clear.
        name: of the clip, for errors.
        least: so many are kept, if they move, even where one of them is much clearer than the others.
    """
    rated = sorted(((score(tracklet, frames), tracklet) for tracklet in tracklets), key=lambda pair: -pair[0])
    rated = [(value, tracklet) for value, tracklet in rated if value > 0]
    if not rated:
        raise InputError(
            f"{name}: nothing moves that can be followed. {_seen(tracklets)}"
            "Something that moves before a still background is expected; point at it with object, or cut with crop"
        )
    kept: list[tuple[float, Tracklet]] = []
    for value, tracklet in rated:
        clear = value >= (_SHARE if len(kept) >= least else _LEAST) * rated[0][0]
        if clear and not any(_echo(tracklet, other) for _, other in kept):
            kept.append((value, tracklet))
    notes = []
    if objects is None:
        return [tracklet for _, tracklet in kept], notes
    if len(kept) < objects:
        raise InputError(f"{name}: expected {objects} moving things, saw {len(kept)}: {_listed(kept)}")
    if len(kept) > objects:
        if kept[objects][0] > 0.35 * kept[objects - 1][0]:
            raise InputError(
                f"{name}: expected {objects} moving thing{'s' * (objects > 1)}, saw {len(kept)}: {_listed(kept)}. "
                "Say which is meant with object (a box or a colour), or cut with crop, start and stop"
            )
        notes.append(f"Other things move too: {_listed(kept[objects:])}.")
    return [tracklet for _, tracklet in kept[:objects]], notes


def filter_tracklets(
    tracklets: list[Tracklet], pointer: Box | str | tuple[float, float, float], name: str
) -> list[Tracklet]:
    """The tracklets that go through a box (left, top, right, bottom), or have a colour, the nearest first."""
    if not isinstance(pointer, str) and len(pointer) == 4:
        left, top, right, bottom = pointer
        through = [
            tracklet
            for tracklet in tracklets
            if ((tracklet.places >= [left, top]) & (tracklet.places <= [right, bottom])).all(1).any()
        ]
        if not through:
            box = ", ".join(f"{float(edge):g}" for edge in pointer)
            raise InputError(f"object: nothing that moves comes through the box {box} in {name}. {_seen(tracklets)}")
        return through
    wanted = parse_color(pointer)
    apart = [float(np.linalg.norm(_hue(tracklet.color) - _hue(wanted))) for tracklet in tracklets]
    near = [tracklet for tracklet, away in zip(tracklets, apart, strict=True) if away < min(0.7, min(apart) + 0.2)]
    if not near:
        raise InputError(f"object: nothing that moves in {name} has the colour {pointer}. {_seen(tracklets)}")
    return near


def parse_color(color: object) -> np.ndarray:
    """Levels of red, green and blue, from a name, `#rrggbb`, or three numbers of 0 to 1."""
    try:
        return np.array(ImageColor.getrgb(color)[:3] if isinstance(color, str) else 255 * np.asarray(color), float)
    except (ValueError, TypeError):
        raise InputError(
            f'object: expected a box (left, top, right, bottom) or a colour such as "red", "#c02020", got {color!r}'
        ) from None


def _hue(color: np.ndarray) -> np.ndarray:
    """A colour without most of its brightness."""
    return np.append(color / max(float(color.sum()), 30.0) * 1.5, 0.3 * color.sum() / 765)


def _echo(tracklet: Tracklet, other: Tracklet) -> bool:
    """Whether a tracklet is the shadow or the reflection of a clearer one: it does the same, fainter."""
    common = sorted(set(tracklet.frames) & set(other.frames))
    if len(common) < 6 or len(common) < 0.6 * len(tracklet):
        return False
    mine = dict(zip(tracklet.frames, tracklet.blobs, strict=True))
    its = dict(zip(other.frames, other.blobs, strict=True))
    there = np.array([its[frame].place for frame in common])
    here = np.array([mine[frame].place for frame in common])
    shadow = np.mean([mine[frame].shadow for frame in common]) > 0.5
    fainter = np.median([mine[f].contrast for f in common]) < 0.7 * np.median([its[f].contrast for f in common])
    fainter &= _reflects(tracklet, other)
    matrix = np.column_stack([there, np.ones(len(there))])
    rest = here - matrix @ np.linalg.lstsq(matrix, here, rcond=None)[0]
    tied = np.sqrt((rest**2).sum(1).mean()) < 0.15 * max(tracklet.extent, 1.0) and _moves_with(here, there)
    fixed = np.median(np.abs(here - there - np.median(here - there, axis=0)), axis=0).max() < 0.25 * other.size
    # A part of the same thing keeps its distance; a shadow goes along.
    return bool((shadow or fainter) and tied) or bool(
        fixed
        and np.linalg.norm(np.median(here - there, axis=0)) < 1.5 * other.size
        and dissimilarity(tracklet, other) > 0.8
    )


def _reflects(tracklet: Tracklet, other: Tracklet) -> bool:
    """Whether a tracklet's colour lies between that of another and what is behind, as a reflection's does."""
    mine, its = (np.median([blob.difference for blob in each.blobs], axis=0) for each in (tracklet, other))
    return bool(mine @ its > _SAME_HUE * np.linalg.norm(mine) * np.linalg.norm(its))


def _moves_with(here: np.ndarray, there: np.ndarray, steps: int = 8) -> bool:
    """Whether one moves all the time that the other does: what rests until it is struck is not its shadow."""
    every = np.linspace(0, len(there) - 1, steps + 1).astype(int)
    mine, its = (np.linalg.norm(np.diff(places[every], axis=0), axis=1) for places in (here, there))
    moving = its > 0.3 * its.max()
    ratio = mine[moving] / its[moving]
    return bool(ratio.min() > 0.1 * ratio.max())


def _listed(rated: list[tuple[float, Tracklet]]) -> str:
    return "; ".join(_described(tracklet) for _, tracklet in rated[:4])


def _described(tracklet: Tracklet) -> str:
    x, y = tracklet.places[0]
    red, green, blue = (round(float(value)) for value in tracklet.color)
    return (
        f"{tracklet.size:.0f} pixels wide, colour #{red:02x}{green:02x}{blue:02x}, from ({x:.0f}, {y:.0f}) "
        f"at {tracklet.times[0]:.2f} s to {tracklet.times[-1]:.2f} s"
    )


def _seen(tracklets: list[Tracklet]) -> str:
    if not tracklets:
        return "Nothing was seen at all. "
    longest = sorted(tracklets, key=len, reverse=True)[:3]
    return f"Seen were: {'; '.join(_described(tracklet) for tracklet in longest)}. "
