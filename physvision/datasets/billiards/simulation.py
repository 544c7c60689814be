"""Exact motion of balls on a table, from event to event: impacts, walls, and balls that roll to rest.

Between events every ball follows p + v t − ½ a n t², n the direction of its velocity and a the deceleration by table
friction, until it stops. The time of the next event is a root of a polynomial of at most fourth degree, so there are no
steps and no dependence on a step size. Lengths are in any unit, times in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from physvision.core import DataError
from physvision.datasets.billiards.contact_time import first_contact
from physvision.datasets.billiards.rolling import rotation_of_path, turn

# Approach slower than this fraction of the fastest speed is rounding, not approach.
_APPROACH_TOLERANCE = 1e-12
# With table friction, balls that lean on each other would bounce infinitely often in finite time. So an impact
# separates them at this speed at least, in units of length a second.
_MIN_REBOUND_SPEED = 1e-3
# More impacts than this in one trial are a collapse, in which their number grows without end.
_MAX_IMPACTS = 100_000

_Event = tuple[float, Callable[[], int]]


@dataclass(frozen=True)
class Table:
    """Properties of balls and walls that stay the same during a trial.

    Attributes:
        radii: Radii of the balls, (balls,).
        masses: Masses of the balls, (balls,).
        box: Width and height of the walls, which begin at (0, 0); None for free space.
        restitution: Coefficient of restitution between balls, 0 to 1.
        sliding_deceleration: Deceleration of a rolling ball, length a second squared.
        wall_restitution: Coefficient of restitution at walls, 0 to 1; that between balls if None.
    """

    radii: Float[np.ndarray, " balls"]
    masses: Float[np.ndarray, " balls"]
    box: tuple[float, float] | None
    restitution: float = 1.0
    sliding_deceleration: float = 0.0
    wall_restitution: float | None = None


@dataclass(frozen=True)
class Motion:
    """States of the balls at the requested times.

    Attributes:
        positions: Centers of the balls, (times, balls, 2).
        velocities: Velocities, length a second; at the very time of an event, those after it.
        impacts: Number of impacts of balls with each other and with walls.
        orientations: Quaternions (w, x, y, z) from the frames of the balls to the world's; None if not requested.
        impact_counts: Number of impacts of each ball so far, with balls and with walls.
    """

    positions: Float[np.ndarray, "*times balls 2"]
    velocities: Float[np.ndarray, "*times balls 2"]
    impacts: int
    orientations: Float[np.ndarray, "*times balls 4"] | None
    impact_counts: Float[np.ndarray, "*times balls 2"]


def simulate(
    table: Table,
    positions: Float[np.ndarray, "balls 2"],
    velocities: Float[np.ndarray, "balls 2"],
    times: Float[np.ndarray, " times"],
    orientations: Float[np.ndarray, "balls 4"] | None = None,
) -> Motion:
    """Simulate the motion from an initial state.

    Args:
        table: Balls and walls.
        positions: Centers of the balls at time 0.
        velocities: Velocities of the balls at time 0.
        times: Growing times of the states to return, s.
        orientations: Quaternions of the balls at time 0. If given, the balls turn as they roll without slipping.
    """
    balls = _Balls(table, positions, velocities, orientations)
    shape = (len(times), len(positions))
    states = {name: np.empty((*shape, 2)) for name in ("positions", "velocities", "impact_counts")}
    rolled = None if orientations is None else np.empty((*shape, 4))
    time, frame, impacts = 0.0, 0, 0
    while frame < len(times):
        wait, apply_event = balls.next_event()
        stop = int(np.searchsorted(times, time + wait, side="left"))
        for index in range(frame, stop):
            states["positions"][index], states["velocities"][index] = balls.states_after(times[index] - time)
            if rolled is not None:
                rolled[index] = balls.rolled(states["positions"][index])
        states["impact_counts"][frame:stop] = balls.impact_counts
        frame = stop
        if frame < len(times):
            balls.advance(wait)
            time += wait
            impacts += apply_event()
            if impacts > _MAX_IMPACTS:
                raise DataError(
                    f"more than {_MAX_IMPACTS} impacts by {time:.3g} s: the balls collapse on each other; "
                    "use a restitution nearer to 1 or fewer balls"
                )
    return Motion(impacts=impacts, orientations=rolled, **states)


class _Balls:
    """Positions and velocities at the latest event."""

    def __init__(
        self, table: Table, positions: np.ndarray, velocities: np.ndarray, orientations: np.ndarray | None
    ) -> None:
        self.table, self.orientations = table, orientations
        self.p, self.v = positions.astype(float), velocities.astype(float)
        self.first, self.second = np.triu_indices(len(positions), 1)
        self.contact_distance = table.radii[self.first] + table.radii[self.second]
        self.min_approach = _APPROACH_TOLERANCE * float(np.linalg.norm(self.v, axis=1).max(initial=0.0))
        self.impact_counts = np.zeros_like(self.p)
        self.acceleration = self._acceleration()

    def _acceleration(self) -> np.ndarray:
        if self.table.sliding_deceleration == 0.0:
            return np.zeros_like(self.v)
        speed = np.linalg.norm(self.v, axis=1, keepdims=True)
        return -self.table.sliding_deceleration * np.divide(self.v, speed, out=np.zeros_like(self.v), where=speed > 0)

    def states_after(self, wait: float) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities `wait` seconds from now, if no event comes before."""
        return self.p + wait * (self.v + 0.5 * wait * self.acceleration), self.v + wait * self.acceleration

    def rolled(self, positions: np.ndarray) -> np.ndarray:
        """Orientations after rolling straight to `positions`, exact since paths between events are straight."""
        assert self.orientations is not None
        return turn(self.orientations, rotation_of_path(positions - self.p, self.table.radii))

    def advance(self, wait: float) -> None:
        """Move all balls to the time `wait` seconds from now."""
        positions, velocities = self.states_after(wait)
        if self.orientations is not None:
            self.orientations = self.rolled(positions)
        self.p, self.v = positions, velocities

    def next_event(self) -> _Event:
        """Seconds until the next event, and the function that applies it and returns its number of impacts."""
        candidates = (self._wall_event(), self._impact_event(), self._stop_event())
        return min(candidates, key=lambda candidate: candidate[0])

    def _stopping_times(self) -> np.ndarray:
        """Seconds until each ball stops by friction, if nothing comes before; infinity for those at rest."""
        friction = self.table.sliding_deceleration
        speed = np.linalg.norm(self.v, axis=1)
        return np.divide(speed, friction, out=np.full(len(speed), np.inf), where=(speed > 0) & (friction > 0))

    def _stop_event(self) -> _Event:
        waits = self._stopping_times()
        ball = int(waits.argmin())

        def stop() -> int:
            self.v[ball] = 0.0
            self.acceleration = self._acceleration()
            return 0

        return float(waits[ball]), stop

    def _wall_event(self) -> _Event:
        if self.table.box is None:
            return np.inf, lambda: 0
        forward_gap = np.where(self.v > 0, np.asarray(self.table.box) - self.table.radii[:, None] - self.p, 0.0)
        gap = np.maximum(np.where(self.v < 0, self.p - self.table.radii[:, None], forward_gap), 0.0)
        speed, deceleration = np.abs(self.v), np.abs(self.acceleration)
        discriminant = speed**2 - 2 * deceleration * gap
        # The smaller root of gap = speed t − ½ deceleration t², in the form that loses no digits.
        denominator = speed + np.sqrt(np.maximum(discriminant, 0.0))
        reaches_wall = (speed > 0) & (discriminant >= 0)
        with np.errstate(over="ignore"):  # slow balls reach the wall after more seconds than a float can hold
            waits = np.divide(2 * gap, denominator, out=np.full_like(gap, np.inf), where=reaches_wall)
        ball, axis = np.unravel_index(int(waits.argmin()), waits.shape)
        restitution = self.table.wall_restitution

        def bounce() -> int:
            self.v[ball, axis] *= -(self.table.restitution if restitution is None else restitution)
            self.impact_counts[ball, 1] += 1
            self.acceleration = self._acceleration()
            return 1

        return float(waits[ball, axis]), bounce

    def _impact_event(self) -> _Event:
        if len(self.first) == 0:
            return np.inf, lambda: 0
        stopping_times = self._stopping_times()
        waits = first_contact(
            self.p[self.second] - self.p[self.first],
            self.v[self.second] - self.v[self.first],
            self.acceleration[self.second] - self.acceleration[self.first],
            self.contact_distance,
            self.min_approach,
            np.minimum(stopping_times[self.first], stopping_times[self.second]),
        )
        pair = int(waits.argmin())
        return float(waits[pair]), lambda: self._collide(int(self.first[pair]), int(self.second[pair]))

    def _collide(self, first: int, second: int) -> int:
        normal = self.p[second] - self.p[first]
        normal /= np.linalg.norm(normal)
        approach_speed = float((self.v[first] - self.v[second]) @ normal)
        rebound_speed = self.table.restitution * approach_speed
        if self.table.sliding_deceleration > 0.0:
            rebound_speed = max(rebound_speed, _MIN_REBOUND_SPEED)
        masses = self.table.masses
        impulse = (approach_speed + rebound_speed) * masses[first] * masses[second] / (masses[first] + masses[second])
        self.v[first] -= impulse / masses[first] * normal
        self.v[second] += impulse / masses[second] * normal
        self.impact_counts[[first, second], 0] += 1
        self.acceleration = self._acceleration()
        return 1
