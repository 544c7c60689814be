"""Motions in free flight: throws, falls and bounces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from physvision.datasets.clips.integration import Solution, solve
from physvision.datasets.clips.motion import GRAVITY, Body, Motion, held_before, pick_color

_HELD = 0.4  # time of the release, s


def projectile(random: np.random.Generator) -> Motion:
    """A ball thrown by a hand."""
    speed, angle = random.uniform(2, 8), np.radians(random.uniform(20, 75))
    drag = random.uniform(0, 0.04)
    velocity = speed * np.array([np.cos(angle) * random.choice([-1, 1]), np.sin(angle)])
    flight = float(2 * velocity[1] / GRAVITY * random.uniform(0.9, 1.15))
    solution, _ = solve(lambda state: _flight_rate(state, drag), np.array([0, 0, *velocity]), flight)
    free = _spinning_poses(solution, random.uniform(-8, 8))
    span = float(np.hypot(*np.ptp(solution(np.linspace(0, flight, 50))[:, :2], axis=0)))
    bodies = (_ball(random, span * random.uniform(0.015, 0.035)),)
    truth = {"speed": speed, "angle": angle, "drag": drag, "gravity": GRAVITY}
    poses = held_before(_HELD, free, np.array([*velocity, 0.0]))
    known = {"gravity": GRAVITY}
    return Motion("projectile", truth, known, _HELD + flight, poses, bodies, release=_HELD, held_body=0)


def fall(random: np.random.Generator) -> Motion:
    """A ball dropped from rest; the scale is known."""
    height, drag = random.uniform(0.8, 3), random.uniform(0, 0.03)
    flight = float(np.sqrt(2 * height / GRAVITY))
    solution, _ = solve(lambda state: _flight_rate(state, drag), np.zeros(4), flight)
    free = _spinning_poses(solution, 0.0)
    bodies = (_ball(random, height * random.uniform(0.015, 0.035)),)
    truth = {"gravity": GRAVITY, "acceleration": GRAVITY, "drag": drag}
    return Motion(
        "fall", truth, {}, _HELD + flight, held_before(_HELD, free, np.zeros(3)), bodies, release=_HELD, held_body=0
    )


def bounce(random: np.random.Generator) -> Motion:
    """A ball that falls on a floor and bounces at least twice; its radius is known."""
    restitution, height = random.uniform(0.55, 0.92), random.uniform(0.5, 1.5)
    radius = height * random.uniform(0.02, 0.05)
    sideways = random.uniform(-0.35, 0.35) * height
    count = int(random.integers(2, 6))
    impact_speed = np.sqrt(2 * GRAVITY * height)
    flights = [2 * impact_speed / GRAVITY * restitution**hop for hop in range(1, count + 1)]
    while flights[-1] < 0.18:  # shorter ones are not seen at the rates of phones
        flights.pop()
    duration = float(impact_speed / GRAVITY + sum(flights) - 0.25 * flights[-1])

    def rebound(state):
        return state * [1, 1, 1, -restitution]

    def gap(state):
        return state[1] - radius

    start = np.array([0, height + radius, sideways, 0])
    solution, _ = solve(lambda state: _flight_rate(state, 0.0), start, duration, gap, rebound)
    free = _spinning_poses(solution, -sideways / radius * 0.3)
    margin = abs(sideways) * duration + 4 * radius
    floor = ((min(0, sideways * duration) - margin, 0.0), (max(0, sideways * duration) + margin, 0.0))
    truth = {"restitution": restitution, "radius": radius, "gravity": GRAVITY}
    return Motion("bounce", truth, {"radius": radius}, duration, free, (_ball(random, radius),), surfaces=(floor,))


def _flight_rate(state: np.ndarray, drag: float) -> np.ndarray:
    velocity = state[2:]
    return np.concatenate([velocity, -drag * np.linalg.norm(velocity) * velocity - [0.0, GRAVITY]])


def _spinning_poses(solution: Solution, spin: float) -> Callable[[np.ndarray], np.ndarray]:
    """Poses of a ball in flight that turns at a constant rate, rad/s."""
    return lambda times: np.concatenate([solution(times)[:, :2], spin * times[:, None]], 1)[:, None]


def _ball(random: np.random.Generator, radius: float) -> Body:
    return Body("disc", (2 * radius, 2 * radius), pick_color(random), mark=float(random.choice([0, 0.2])))
