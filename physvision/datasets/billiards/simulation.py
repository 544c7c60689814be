"""Exact motion of balls on a table, from event to event: impacts, walls, and balls that roll to rest.

Between events every ball follows p + v t − ½ a n t², n the direction of its velocity and a the deceleration by rolling
friction, until it stops. The time of the next event is a root of a polynomial of at most fourth degree, so nothing
is stepped and nothing depends on a step size. Lengths in any unit, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from physvision.core import DataError
from physvision.datasets.billiards.contact_time import first_contact

# Impacts slower than this share of the fastest speed are rounding, not approach.
_REST = 1e-12
# With rolling friction, balls that lean on each other would bounce infinitely often in finite time. So an impact
# leaves them apart at this speed at least, in units of length a second.
_LEAST_REBOUND = 1e-3
# More impacts than this in one trial are a collapse, in which their number grows without end.
_MOST_EVENTS = 100_000


@dataclass(frozen=True)
class Table:
    """What stays the same during a trial.

    Attributes:
        radii: of the balls, (balls,).
        masses: of the balls, (balls,).
        box: width and height of the walls, which begin at (0, 0); None for free space.
        restitution: of all impacts, 0 to 1.
        rolling_friction: deceleration of a rolling ball, length a second squared.
    """

    radii: Float[np.ndarray, " balls"]
    masses: Float[np.ndarray, " balls"]
    box: tuple[float, float] | None
    restitution: float = 1.0
    rolling_friction: float = 0.0


@dataclass(frozen=True)
class Motion:
    """Where the balls are at the asked times.

    Attributes:
        positions: (times, balls, 2).
        velocities: (times, balls, 2), a second; of an event at that very time, those after it.
        impacts: how many impacts there were, of balls with each other and with walls.
    """

    positions: Float[np.ndarray, "times balls 2"]
    velocities: Float[np.ndarray, "times balls 2"]
    impacts: int


def simulate(
    table: Table,
    positions: Float[np.ndarray, "balls 2"],
    velocities: Float[np.ndarray, "balls 2"],
    times: Float[np.ndarray, " times"],
) -> Motion:
    """The motion from `positions` and `velocities` at time 0, at the growing `times`."""
    balls = _Balls(table, positions, velocities)
    shape = (len(times), *positions.shape)
    seen_positions, seen_velocities = np.empty(shape), np.empty(shape)
    now, frame, impacts = 0.0, 0, 0
    while frame < len(times):
        wait, act = balls.next_event()
        stop = int(np.searchsorted(times, now + wait, side="left"))
        for index in range(frame, stop):
            seen_positions[index], seen_velocities[index] = balls.after(times[index] - now)
        frame = stop
        if frame < len(times):
            balls.advance(wait)
            now += wait
            impacts += act()
            if impacts > _MOST_EVENTS:
                raise DataError(
                    f"more than {_MOST_EVENTS} impacts by {now:.3g} s: the balls collapse on each other; "
                    "use a restitution nearer to 1 or fewer balls"
                )
    return Motion(seen_positions, seen_velocities, impacts)


class _Balls:
    """Positions and velocities at the latest event."""

    def __init__(self, table: Table, positions: np.ndarray, velocities: np.ndarray) -> None:
        self.table = table
        self.p, self.v = positions.astype(float), velocities.astype(float)
        self.first, self.second = np.triu_indices(len(positions), 1)
        self.reach = table.radii[self.first] + table.radii[self.second]
        self.rest = _REST * float(np.linalg.norm(self.v, axis=1).max(initial=0.0))
        self.deceleration = self._deceleration()

    def _deceleration(self) -> np.ndarray:
        if self.table.rolling_friction == 0.0:
            return np.zeros_like(self.v)
        speed = np.linalg.norm(self.v, axis=1, keepdims=True)
        return -self.table.rolling_friction * np.divide(self.v, speed, out=np.zeros_like(self.v), where=speed > 0)

    def after(self, wait: float) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities `wait` seconds from now, if no event comes before."""
        return self.p + wait * (self.v + 0.5 * wait * self.deceleration), self.v + wait * self.deceleration

    def advance(self, wait: float) -> None:
        """Let `wait` seconds pass."""
        self.p, self.v = self.after(wait)

    def next_event(self):
        """Seconds until the next event, and what happens then: a function that returns the number of impacts."""
        candidates = (self._wall_event(), self._impact_event(), self._stop_event())
        return min(candidates, key=lambda candidate: candidate[0])

    def _seconds_to_rest(self) -> np.ndarray:
        """When each ball stops by friction, if nothing comes before; infinity for those at rest."""
        friction = self.table.rolling_friction
        speed = np.linalg.norm(self.v, axis=1)
        return np.divide(speed, friction, out=np.full(len(speed), np.inf), where=(speed > 0) & (friction > 0))

    def _stop_event(self):
        waits = self._seconds_to_rest()
        ball = int(waits.argmin())

        def stop() -> int:
            self.v[ball] = 0.0
            self.deceleration = self._deceleration()
            return 0

        return float(waits[ball]), stop

    def _wall_event(self):
        if self.table.box is None:
            return np.inf, lambda: 0
        ahead = np.where(self.v > 0, np.asarray(self.table.box) - self.table.radii[:, None] - self.p, 0.0)
        gap = np.maximum(np.where(self.v < 0, self.p - self.table.radii[:, None], ahead), 0.0)
        speed, slowing = np.abs(self.v), np.abs(self.deceleration)
        under_root = speed**2 - 2 * slowing * gap
        # The smaller root of gap = speed t − ½ slowing t², in the form that loses no digits.
        denominator = speed + np.sqrt(np.maximum(under_root, 0.0))
        reached = (speed > 0) & (under_root >= 0)
        with np.errstate(over="ignore"):  # a crawl reaches the wall after more seconds than there are numbers
            waits = np.divide(2 * gap, denominator, out=np.full_like(gap, np.inf), where=reached)
        ball, axis = np.unravel_index(int(waits.argmin()), waits.shape)

        def bounce() -> int:
            self.v[ball, axis] *= -self.table.restitution
            self.deceleration = self._deceleration()
            return 1

        return float(waits[ball, axis]), bounce

    def _impact_event(self):
        if len(self.first) == 0:
            return np.inf, lambda: 0
        until = self._seconds_to_rest()
        waits = first_contact(
            self.p[self.second] - self.p[self.first],
            self.v[self.second] - self.v[self.first],
            self.deceleration[self.second] - self.deceleration[self.first],
            self.reach,
            self.rest,
            np.minimum(until[self.first], until[self.second]),
        )
        pair = int(waits.argmin())
        return float(waits[pair]), lambda: self._collide(int(self.first[pair]), int(self.second[pair]))

    def _collide(self, one: int, other: int) -> int:
        normal = self.p[other] - self.p[one]
        normal /= np.linalg.norm(normal)
        approach = float((self.v[one] - self.v[other]) @ normal)
        rebound = self.table.restitution * approach
        if self.table.rolling_friction > 0.0:
            rebound = max(rebound, _LEAST_REBOUND)
        m_one, m_other = self.table.masses[one], self.table.masses[other]
        impulse = (approach + rebound) * m_one * m_other / (m_one + m_other)
        self.v[one] -= impulse / m_one * normal
        self.v[other] += impulse / m_other * normal
        self.deceleration = self._deceleration()
        return 1
