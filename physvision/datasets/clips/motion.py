"""Motions of drawn clips: bodies in a vertical plane or on a table, lines and surfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

GRAVITY = 9.81
Color = tuple[float, float, float]


@dataclass(frozen=True)
class Body:
    """Rigid body that moves in the plane.

    Attributes:
        shape: Disc, box, leaf (an ellipse) or rod with round ends.
        size: Length along its own x axis and width across it, m; both are the diameter of a disc.
        color: Red, green, blue, 0 to 1.
        mark: Darkening of one half of the body, 0 to 1, which makes its rotation visible.
    """

    shape: Literal["disc", "box", "leaf", "rod"]
    size: tuple[float, float]
    color: Color
    mark: float = 0.0


@dataclass(frozen=True)
class Line:
    """String, rod or spring from a fixed point or a body to another body.

    Attributes:
        start: Point, m, or index of a body.
        end: Index of a body.
        width: Width of the line, m.
        color: Red, green, blue, 0 to 1.
        coils: Number of coils of a spring; 0 is a straight line.
    """

    start: tuple[float, float] | int
    end: int
    width: float
    color: Color
    coils: int = 0


@dataclass(frozen=True)
class Motion:
    """Motion of bodies, with the true values of its parameters.

    Attributes:
        kind: Name of the kind of motion.
        truth: True values of the parameters by name, SI units.
        known: Parameters that are given to `identify`, as a user would state them.
        duration: Duration, s.
        poses: Function from times to x (right), y (up) and angle (anticlockwise) of every body, (times, bodies, 3); m,
            rad.
        bodies: Bodies that move.
        lines: Lines between bodies or fixed points.
        surfaces: Segments of straight ground, two points each, m; the ground is on their right.
        release: Time from which the law of motion holds, s; before it, a hand moves the body.
        held_body: Index of the body that a hand holds until the release; None without a hand.
        from_above: If true, the plane is a table seen from above.
        visible_points: Further points that have to be in the picture, such as a pivot, m.
    """

    kind: str
    truth: Mapping[str, float]
    known: Mapping[str, float]
    duration: float
    poses: Callable[[np.ndarray], np.ndarray]
    bodies: tuple[Body, ...]
    lines: tuple[Line, ...] = ()
    surfaces: tuple[tuple[tuple[float, float], tuple[float, float]], ...] = ()
    release: float = 0.0
    held_body: int | None = None
    from_above: bool = False
    visible_points: tuple[tuple[float, float], ...] = ()


def held_before(
    release: float, poses: Callable[[np.ndarray], np.ndarray], velocity: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Poses of bodies that rest in a hand, then are swung so that they follow `poses` from the time `release` on.

    Args:
        release: Time of the release, s.
        poses: Poses as a function of the time since the release.
        velocity: Rates of a body's pose at the release.
    """
    # Constant acceleration over the last part, after a rest, and over an arm's length at most.
    swing_duration = min(0.6 * release, 0.8 / max(float(np.linalg.norm(velocity)), 1e-9))

    def poses_with_hold(times: np.ndarray) -> np.ndarray:
        free = poses(np.maximum(times - release, 0.0))
        swing_time = np.maximum(np.minimum(times - release, 0.0) + swing_duration, 0.0)
        displacement = velocity * (swing_time**2 / (2 * swing_duration) - swing_duration / 2)[:, None, None]
        return np.where((times < release)[:, None, None], free + displacement, free)

    return poses_with_hold


def pick_color(random: np.random.Generator) -> Color:
    """Random color that differs from most backgrounds."""
    palette = ((0.85, 0.12, 0.1), (0.1, 0.25, 0.8), (0.05, 0.5, 0.15), (0.95, 0.75, 0.1), (0.08, 0.08, 0.09),
               (0.9, 0.4, 0.05), (0.45, 0.1, 0.5))  # fmt: skip
    base = np.array(palette[random.integers(len(palette))])
    red, green, blue = np.clip(base + random.normal(0, 0.03, 3), 0, 1)
    return float(red), float(green), float(blue)
