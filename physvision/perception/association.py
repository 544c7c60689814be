"""Blobs of successive frames that are one thing: found by where it should be, and by its size and colour."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float

from physvision.perception.blobs import Blob

_LONGEST_GAP = 0.35  # s without being seen, within one piece
_LONGEST_REST = 3.0  # s between pieces that are one thing
_NEVER = 1e6


@dataclass
class Tracklet:
    """Blobs that follow each other.

    Attributes:
        frames: their frames' numbers.
        times: s.
        blobs: one a frame.
    """

    frames: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frames)

    def add(self, frame: int, time: float, blob: Blob) -> None:
        """Take the next blob."""
        self.frames.append(frame)
        self.times.append(time)
        self.blobs.append(blob)
        # What every blob of the next frame is compared with is worked out once.
        for known in ("_medians", "_velocity"):
            self.__dict__.pop(known, None)

    @property
    def places(self) -> Float[np.ndarray, "times 2"]:
        """Where the blobs are, pixels."""
        return np.array([blob.place for blob in self.blobs])

    @property
    def area(self) -> float:
        """Median area, pixels."""
        return self._medians[0]

    @property
    def color(self) -> Float[np.ndarray, "3"]:
        """Median colour, levels."""
        return self._medians[1]

    @property
    def contrast(self) -> float:
        """Median contrast, levels."""
        return self._medians[2]

    @property
    def size(self) -> float:
        """Diameter of the circle with its area, pixels."""
        return 2 * float(np.sqrt(self.area / np.pi))

    @property
    def extent(self) -> float:
        """Diagonal of the box around its places, leaving out the outermost twentieth on each side."""
        low, high = np.percentile(self.places, [5, 95], axis=0)
        return float(np.hypot(*(high - low)))

    def velocity(self) -> Float[np.ndarray, "2"] | None:
        """Of its last part, pixels a second; None for one blob alone."""
        return self._velocity

    def first_velocity(self) -> Float[np.ndarray, "2"] | None:
        """Of its first part, pixels a second; None for one blob alone."""
        return _speed(self.times[:4], self.blobs[:4]) if len(self) > 1 else None

    @cached_property
    def _velocity(self) -> np.ndarray | None:
        return _speed(self.times[-4:], self.blobs[-4:]) if len(self) > 1 else None

    @cached_property
    def _medians(self) -> tuple[float, np.ndarray, float]:
        """Area, colour and contrast of some twenty of its blobs, which tell them as well as all."""
        some = self.blobs[:: max(1, len(self) // 20)]
        return (
            float(np.median([blob.area for blob in some])),
            np.median([blob.color for blob in some], axis=0),
            float(np.median([blob.contrast for blob in some])),
        )


def _speed(times: list[float], blobs: list[Blob]) -> np.ndarray:
    places = np.array([blob.place for blob in blobs])
    return np.median(np.diff(places, axis=0) / np.diff(times)[:, None], axis=0)


class TrackletBuilder:
    """Builds tracklets, one frame after the other."""

    def __init__(self, reach: float) -> None:
        """Let a thing move by `reach` pixels before its second blob."""
        self._reach = reach
        self._open: list[Tracklet] = []
        self._done: list[Tracklet] = []

    def add(self, frame: int, time: float, blobs: list[Blob]) -> None:
        """Take the blobs of the next frame."""
        still = [tracklet for tracklet in self._open if time - tracklet.times[-1] <= _LONGEST_GAP]
        self._done += [tracklet for tracklet in self._open if time - tracklet.times[-1] > _LONGEST_GAP]
        taken: set[int] = set()
        if still and blobs:
            costs = np.array([[_cost(tracklet, time, blob, self._reach) for blob in blobs] for tracklet in still])
            while costs.min() < _NEVER:
                row, column = np.unravel_index(costs.argmin(), costs.shape)
                still[row].add(frame, time, blobs[column])
                taken.add(int(column))
                costs[row], costs[:, column] = _NEVER, _NEVER
        for number, blob in enumerate(blobs):
            if number not in taken:
                still.append(Tracklet([frame], [time], [blob]))
        self._open = still

    def tracklets(self, least: int = 4) -> list[Tracklet]:
        """All tracklets of at least so many blobs, pieces of one thing joined."""
        return join([tracklet for tracklet in self._done + self._open if len(tracklet) >= least])


def dissimilarity(one: Blob | Tracklet, other: Blob | Tracklet) -> float:
    """How much two differ in size, colour and contrast; below one they may be the same thing."""
    apart = float(np.linalg.norm(one.color - other.color)) / 120
    return apart + 0.6 * abs(np.log(one.area / other.area)) + 0.5 * abs(np.log(one.contrast / other.contrast))


def _cost(tracklet: Tracklet, time: float, blob: Blob, reach: float) -> float:
    wait = time - tracklet.times[-1]
    velocity = tracklet.velocity()
    last = tracklet.blobs[-1]
    difference = min(dissimilarity(last, blob), dissimilarity(tracklet, blob))
    if difference > 2.5:
        return _NEVER
    away = float(np.linalg.norm(blob.place - last.place))
    if velocity is None:
        return away / reach + difference if away < reach else _NEVER
    foreseen = float(np.linalg.norm(blob.place - last.place - velocity * wait))
    # It may bounce, but not be anywhere at all.
    gate = last.size + 1.5 * float(np.linalg.norm(velocity)) * wait + 4
    nearest = min(foreseen, away + 0.3 * gate)
    return nearest / gate + 0.8 * difference if nearest < gate else _NEVER


def join(tracklets: list[Tracklet]) -> list[Tracklet]:
    """Chains that go on where another ended are one, the clearest continuations first.

    What goes on soon counts before what does much later: a thing that swings comes by the same place again.
    """
    return _joined(_joined(tracklets, _LONGEST_GAP), _LONGEST_REST)


def _joined(tracklets: list[Tracklet], longest: float) -> list[Tracklet]:
    """The same, of tracklets of which one begins within so many seconds of another's end."""
    tracklets = list(tracklets)
    costs = np.array([[_gap_cost(one, other, longest) for other in tracklets] for one in tracklets])
    costs = costs.reshape(len(tracklets), len(tracklets))
    while costs.size and costs.min() < 1.0:
        first, second = (int(at) for at in np.unravel_index(costs.argmin(), costs.shape))
        one, other = tracklets[first], tracklets[second]
        tracklets[first] = Tracklet(one.frames + other.frames, one.times + other.times, one.blobs + other.blobs)
        tracklets[second] = Tracklet()
        costs[second], costs[:, second] = np.inf, np.inf
        for number, tracklet in enumerate(tracklets):
            costs[first, number], costs[number, first] = (
                _gap_cost(tracklets[first], tracklet, longest),
                _gap_cost(tracklet, tracklets[first], longest),
            )
    return sorted((tracklet for tracklet in tracklets if len(tracklet)), key=lambda tracklet: tracklet.frames[0])


def _gap_cost(one: Tracklet, other: Tracklet, longest: float) -> float:
    """How badly one goes on as the other; below one it may, infinite if it cannot."""
    if not len(one) or not len(other) or not 0 < other.times[0] - one.times[-1] < longest:
        return np.inf
    ahead, back = one.velocity(), other.first_velocity()
    if ahead is None or back is None:
        return np.inf
    wait = other.times[0] - one.times[-1]
    end, begin = one.blobs[-1].place, other.blobs[0].place
    speed = max(np.linalg.norm(ahead), np.linalg.norm(back))
    gate = one.size + 0.7 * speed * wait
    apart = min(np.linalg.norm(end + ahead * wait / 2 - begin + back * wait / 2), np.linalg.norm(begin - end))
    return float(apart / gate) + 0.7 * min(dissimilarity(one, other), dissimilarity(one.blobs[-1], other.blobs[0]))
