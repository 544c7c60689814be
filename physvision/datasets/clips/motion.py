"""What a drawn clip shows, before a camera looks at it: bodies in a vertical plane (or on a table), lines, surfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

GRAVITY = 9.81
Color = tuple[float, float, float]


@dataclass(frozen=True)
class Body:
    """Something that moves.

    Attributes:
        shape: a disc, a box, a leaf (an ellipse) or a rod with round ends.
        size: along its own x axis and across it, m; both are the diameter for a disc.
        color: red, green, blue, 0 to 1.
        mark: how much darker one half of it is, 0 to 1, so that it is seen to turn.
    """

    shape: Literal["disc", "box", "leaf", "rod"]
    size: tuple[float, float]
    color: Color
    mark: float = 0.0


@dataclass(frozen=True)
class Line:
    """A string, rod or spring from a fixed point or one body to another.

    Attributes:
        start: a point, m, or the number of a body.
        end: the number of a body.
        width: m.
        color: red, green, blue, 0 to 1.
        coils: of a spring; 0 is straight.
    """

    start: tuple[float, float] | int
    end: int
    width: float
    color: Color
    coils: int = 0


@dataclass(frozen=True)
class Motion:
    """A motion with its truth.

    Attributes:
        kind: its name.
        truth: the parameters that it was made with, SI units; lengths, speeds and so on by their names.
        known: those of them that somebody who filmed it would tell.
        duration: s.
        poses: from times to x (right), y (up) and angle (anticlockwise) of every body, (times, bodies, 3); m, rad.
        bodies: what moves.
        lines: what hangs between.
        surfaces: segments of straight ground, two points each, m; the ground is on their right.
        begin: from when the law holds: what is before is a hand's doing.
        hand: the number of the body that a hand holds until then, or None.
        above: seen from above, on a table.
        must_see: points that belong in the picture, such as a pivot, m.
    """

    kind: str
    truth: Mapping[str, float]
    known: Mapping[str, float]
    duration: float
    poses: Callable[[np.ndarray], np.ndarray]
    bodies: tuple[Body, ...]
    lines: tuple[Line, ...] = ()
    surfaces: tuple[tuple[tuple[float, float], tuple[float, float]], ...] = ()
    begin: float = 0.0
    hand: int | None = None
    above: bool = False
    must_see: tuple[tuple[float, float], ...] = ()


def held(
    release: float, poses: Callable[[np.ndarray], np.ndarray], velocity: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Poses of bodies that are at rest in a hand, then swung so that they fly on as `poses` say from `release` on."""
    # Constant acceleration over the last part, after a rest, and over an arm's length at most.
    swing = min(0.6 * release, 0.8 / max(float(np.linalg.norm(velocity)), 1e-9))

    def whole(times: np.ndarray) -> np.ndarray:
        free = poses(np.maximum(times - release, 0.0))
        before = np.minimum(times - release, 0.0)
        phase = np.maximum(before + swing, 0.0)
        back = velocity * (phase**2 / (2 * swing) - swing / 2)[:, None, None]
        return np.where((times < release)[:, None, None], free + back, free)

    return whole


def pick_color(random: np.random.Generator) -> Color:
    """A colour that differs from most backgrounds."""
    palette = ((0.85, 0.12, 0.1), (0.1, 0.25, 0.8), (0.05, 0.5, 0.15), (0.95, 0.75, 0.1), (0.08, 0.08, 0.09),
               (0.9, 0.4, 0.05), (0.45, 0.1, 0.5))  # fmt: skip
    chosen = np.array(palette[random.integers(len(palette))])
    red, green, blue = np.clip(chosen + random.normal(0, 0.03, 3), 0, 1)
    return float(red), float(green), float(blue)
