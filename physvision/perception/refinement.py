"""Where a thing is in a frame to a small part of a pixel, once it is known about where it is and what it looks like.

A pixel at the edge of a thing of colour c before the background b differs from b by a share of |c − b|; the share is
what the thing covers of it. So pixels are weighted by the share, those inside count fully whatever their colour, and
neither blur nor noise draws the mean aside.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float

from physvision.perception.association import Tracklet
from physvision.perception.blobs import CORE, thick_parts

_MARGIN = 2  # px around what is covered by half, where the edge's blur ends
_CLEAR = 25.0  # levels of brightness from which it tells more than colours do
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_SLITS = 0.15  # of a thing's size: gaps in it up to this wide are closed
_PATH = 8  # linked places next to an end that say where the path leads from there
_ONWARD = 4  # frames over which a path is followed where a thing is not linked
_FAINT = 2.5  # times the noise: less is not even a trace of a thing
_STUB = 0.25  # weight by which something thin stands out of a thing's edge
_ELONGATED = 1.3  # ratio of the axes from which a thing has a direction


@dataclass(frozen=True)
class Target:
    """A thing to be found again.

    Attributes:
        frames: numbers of those in which it was linked.
        places: where it was then, pixels.
        color: red, green, blue, levels.
        size: diameter of the circle with its area, pixels.
    """

    frames: Float[np.ndarray, " linked"]
    places: Float[np.ndarray, "linked 2"]
    color: Float[np.ndarray, "3"]
    size: float

    @classmethod
    def of(cls, tracklet: Tracklet) -> Target:
        """The target that a tracklet shows."""
        return cls(np.array(tracklet.frames, float), tracklet.places, tracklet.color, tracklet.size)

    def place(self, frame: int) -> Float[np.ndarray, "2"]:
        """About where it is, pixels: between linked frames on the line, shortly before and after on its path."""
        outside = frame < self.frames[0] or frame > self.frames[-1]
        if not outside or not self.misses(frame) or len(self.frames) < _PATH:
            return np.array([np.interp(frame, self.frames, self.places[:, axis]) for axis in (0, 1)])
        near = slice(_PATH) if frame < self.frames[0] else slice(-_PATH, None)
        powers = np.vander(self.frames[near] - frame, 3, increasing=True)
        return np.linalg.lstsq(powers, self.places[near], rcond=None)[0][0]

    def there(self, frame: int) -> bool:
        """Whether a frame lies between those in which it was linked: before and after, nothing can be its."""
        return bool(self.frames[0] <= frame <= self.frames[-1])

    def misses(self, frame: int) -> bool:
        """Whether a frame is not linked, but some of the few around it are."""
        return bool(0 < np.abs(self.frames - frame).min() <= _ONWARD)

    def reach(self, frame: int) -> float:
        """How far from there it may be, pixels."""
        after = int(np.searchsorted(self.frames, frame))
        if after == 0 or after == len(self.frames) or frame in (self.frames[after], self.frames[after - 1]):
            return 0.75 * self.size + 3
        gap = float(np.linalg.norm(self.places[after] - self.places[after - 1]))
        return 0.75 * self.size + 3 + 0.5 * gap


@dataclass(frozen=True)
class Detection:
    """What was found of a target in one frame.

    Attributes:
        place: x and y of its middle, pixels.
        mass: pixels that it covers.
        angle: of its long axis, rad.
        axes: ratio of its long to its short axis.
        sigma: standard deviation of its place by the picture's noise, pixels.
        faint: only a trace of it is seen, where its path leads.
    """

    place: Float[np.ndarray, "2"]
    mass: float
    angle: float
    axes: float
    sigma: float
    faint: bool = False


def detect_target(
    frame: np.ndarray, behind: np.ndarray, threshold: np.ndarray, target: Target, number: int, others: list[Target]
) -> Detection | None:
    """Find a target in an aligned frame; None where it is not seen, or not as a whole.

    Args:
        frame: levels, as the background's.
        behind: the background.
        threshold: levels from which on a pixel has changed.
        target: what to find.
        number: of the frame.
        others: targets that pixels may belong to instead.
    """
    around = target.place(number)
    side = target.size * 1.2 + target.reach(number) + _MARGIN + 2
    height, width = frame.shape[:2]
    left, top = np.floor(around - side).astype(int).clip(0)
    right, bottom = np.ceil(around + side).astype(int).clip(0)
    piece = slice(top, min(bottom, height)), slice(left, min(right, width))
    if frame[piece].size == 0:
        return None
    under = behind[piece]
    apart = np.linalg.norm(frame[piece] - under, axis=-1)
    full = np.linalg.norm(target.color - under, axis=-1)
    noise = threshold[piece] / 5
    full = np.maximum(full, 6 * noise)
    shaded = _shaded(frame[piece], under, target.color)
    share = np.where(shaded, 0.0, apart / full)
    share = cv2.GaussianBlur(share, (0, 0), 0.6)
    mask = (share > np.maximum(0.45, 3 * noise / full)).astype(np.uint8)
    columns, rows = np.meshgrid(np.arange(left, piece[1].stop) + 0.5, np.arange(top, piece[0].stop) + 0.5)
    for other in others:
        mask &= _nearer(columns, rows, target, other, number)
    part = _chosen(mask, columns, rows, around, target, target.reach(number))
    if part is None:
        trace = np.where(np.hypot(columns - around[0], rows - around[1]) < target.size, apart / noise, 0.0)
        return _glimpse(trace, columns, rows, target) if target.misses(number) else None
    # What hangs on it, such as a string, is not part of it: its pixels do not count as the thing's edge.
    hanging = mask & (1 - part)
    share = np.where(hanging > 0, 0.0, _edge_shares(frame[piece], under, part, share, shaded))
    found = _measured(part, share, columns, rows, noise / full)
    at_border = (
        (left == 0 and part[:, 0].any())
        or (top == 0 and part[0].any())
        or (piece[1].stop == width and part[:, -1].any())
        or (piece[0].stop == height and part[-1].any())
    )
    return None if at_border else found


def _glimpse(trace: np.ndarray, columns, rows, target: Target) -> Detection | None:
    """What little is seen of a target that comes out from behind something, or goes there; None if it is nothing.

    Args:
        trace: how far pixels differ from the background, of the noise; zero far from where it should be.
        columns: x of the pixels; `rows` likewise.
        rows: y.
        target: what to find.
    """
    trace = cv2.GaussianBlur(trace, (0, 0), 0.8)
    weights = np.where(trace > 0.5 * trace.max(), trace, 0.0)
    if trace.max() < _FAINT * np.sqrt(3):  # of three channels together
        return None
    mass = float(weights.sum())
    place = np.array([float((weights * columns).sum()), float((weights * rows).sum())]) / mass
    return Detection(place, 0.0, 0.0, 1.0, 0.35 * target.size, faint=True)


def _shaded(frame: np.ndarray, under: np.ndarray, color: np.ndarray) -> np.ndarray:
    """Where a shadow lies: all channels are darker alike; nowhere if the thing itself looks like that."""
    thing = (color + 3) / (under.reshape(-1, 3).mean(0) + 3)
    if np.ptp(thing) < 0.2:
        return np.zeros(frame.shape[:2], bool)
    ratio = (frame + 3.0) / (under + 3.0)
    return (np.ptp(ratio, axis=-1) < 0.1) & (ratio.mean(-1) > 0.3) & (ratio.mean(-1) < 0.97)


def _nearer(columns, rows, target: Target, other: Target, number: int) -> np.ndarray:
    mine, its = target.place(number), other.place(number)
    own = np.hypot(columns - mine[0], rows - mine[1]) - target.size / 2
    foreign = np.hypot(columns - its[0], rows - its[1]) - other.size / 2
    return (own <= foreign).astype(np.uint8)


def _chosen(mask, columns, rows, around, target: Target, reach: float) -> np.ndarray | None:
    """The part of the mask that is the target: near, and of about its size."""
    # A thing of several colours has rings and slits where one of them is like the background.
    reach_of_slits = 2 * int(_SLITS * target.size / 2) + 1
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach_of_slits, reach_of_slits))
    count, labels = cv2.connectedComponents(cv2.morphologyEx(mask, cv2.MORPH_CLOSE, disc), connectivity=8)
    best, least = None, np.inf
    for label in range(1, count):
        for part in thick_parts(_without_holes((labels == label).astype(np.uint8))):
            area = float(part.sum())
            size = 2 * np.sqrt(area / np.pi)
            away = np.hypot(columns[part > 0].mean() - around[0], rows[part > 0].mean() - around[1])
            cost = away / reach + 2 * abs(np.log(size / target.size))
            if away < reach and abs(np.log(size / target.size)) < 0.7 and cost < least:
                best, least = part, cost
    return best


def _measured(part: np.ndarray, share: np.ndarray, columns, rows, noise: np.ndarray) -> Detection:
    whole = _without_holes(part)
    inner = cv2.erode(whole, np.ones((3, 3), np.uint8))
    outer = cv2.dilate(whole, np.ones((2 * _MARGIN + 1,) * 2, np.uint8))
    edge = (outer > 0) & (inner == 0)
    weights = np.where(inner > 0, 1.0, np.where(edge, np.clip(share, 0, 1), 0.0))
    weights[weights < 0.08] = 0.0
    weights = _without_stubs(weights, whole)
    mass = float(weights.sum())
    x, y = float((weights * columns).sum() / mass), float((weights * rows).sum() / mass)
    dx, dy = columns - x, rows - y
    xx, yy, xy = ((weights * product).sum() / mass for product in (dx * dx, dy * dy, dx * dy))
    spread = np.hypot(xx - yy, 2 * xy)
    long, short = (xx + yy + spread) / 2, max((xx + yy - spread) / 2, 1e-3)
    # Noise counts where weights follow the picture; the blur above and the codec correlate neighbours.
    scatter = float(np.sqrt(((edge * noise * dx) ** 2).sum() + ((edge * noise * dy) ** 2).sum()) / mass)
    return Detection(
        np.array([x, y]), mass, float(np.arctan2(2 * xy, xx - yy) / 2), float(np.sqrt(long / short)), scatter
    )


def _without_stubs(weights: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Weights without the beginnings of strings: what is thinner than half of the thing does not belong to it.

    The opening of what has some weight by a disc: all that lies within such a disc that fits in.
    """
    thick = CORE * float(_depth(whole).max())
    some = (cv2.GaussianBlur(weights.astype(np.float32), (0, 0), 0.7) > _STUB).astype(np.uint8)
    inside = _depth(some) > thick
    if not inside.any():
        return weights
    away = cv2.distanceTransform((~inside).astype(np.uint8), cv2.DIST_L2, 5)
    return np.where((some > 0) & (away > thick + 1), 0.0, weights)


def _depth(mask: np.ndarray) -> np.ndarray:
    """How far each pixel of a mask is from what is not of it; beyond the picture nothing is."""
    padded = cv2.copyMakeBorder(mask, 1, 1, 1, 1, cv2.BORDER_CONSTANT)
    return cv2.distanceTransform(padded, cv2.DIST_L2, 5)[1:-1, 1:-1]


def _edge_shares(
    frame: np.ndarray, under: np.ndarray, part: np.ndarray, share: np.ndarray, shaded: np.ndarray
) -> np.ndarray:
    """The share of each pixel at the edge that the thing covers, by its colour just inside.

    Codecs keep brightness for every pixel, colour only for every fourth, so brightness alone is taken where it tells
    enough; a thing of several colours has that of its nearest part. Where its shadow lies next to it, what is behind
    its edge is darker, too.
    """
    whole = _without_holes(part)
    inner = cv2.erode(whole, np.ones((3, 3), np.uint8)).astype(np.float32)
    if inner.sum() < 5:
        return share
    light, dark = (np.asarray(picture @ _LUMA, np.float32) for picture in (frame.astype(np.float32), under))
    dark = dark * _lighting(light, dark, shaded, whole)
    amount = cv2.GaussianBlur(inner, (0, 0), 2.0)
    own = cv2.GaussianBlur(inner * light, (0, 0), 2.0) / np.maximum(amount, 1e-6)
    full = own - dark
    clear = (np.abs(full) > _CLEAR) & (amount > 1e-3)
    return np.where(clear, (light - dark) / np.where(clear, full, 1.0), share)


def _lighting(light: np.ndarray, dark: np.ndarray, shaded: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """How bright the background next to a thing is where shadows lie, of what it is without: by the pixels beyond."""
    beyond = 1 - cv2.dilate(whole, np.ones((2 * _MARGIN + 1,) * 2, np.uint8)).astype(np.float32)
    ratio = np.where(shaded, np.clip((light + 3) / (dark + 3), 0, 1), 1.0).astype(np.float32)
    amount = cv2.GaussianBlur(beyond, (0, 0), 2.0)
    return np.where(amount > 1e-3, cv2.GaussianBlur(beyond * ratio, (0, 0), 2.0) / np.maximum(amount, 1e-6), 1.0)


def _without_holes(part: np.ndarray) -> np.ndarray:
    outlines, _ = cv2.findContours(part, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return cv2.drawContours(np.zeros_like(part), outlines, -1, 1, -1)


def direction(angles: Float[np.ndarray, " times"], axes: Float[np.ndarray, " times"]) -> np.ndarray | None:
    """Angles of a long axis without jumps of half turns; None for what is about round."""
    if np.median(axes) < _ELONGATED:
        return None
    return np.unwrap(2 * angles) / 2
