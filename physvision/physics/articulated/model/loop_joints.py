"""Connections between bodies beside the tree: points and frames that stay together, which close loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physvision.core import ModelError, Placed, Sphere
from physvision.physics.articulated.model.kinematic_tree import Model

_DRAWN = 1e-3  # m, radius of the balls that stand where connections are


@dataclass(frozen=True)
class Connection:
    """Two points of bodies that stay together, as on a ball joint, or two frames, as welded.

    Attributes:
        first: name of a body; None for the world.
        second: the same of the other.
        first_pose: the frame in the first body, 4×4, m; its last column is the point.
        second_pose: the same in the second.
        weld: whether the frames stay turned alike, too.
        name: for messages.
    """

    first: str | None
    second: str | None
    first_pose: Sequence[Sequence[float]] | np.ndarray
    second_pose: Sequence[Sequence[float]] | np.ndarray
    weld: bool = False
    name: str = ""


@dataclass(frozen=True)
class Ties:
    """Connections by the rows of their ends in the engine's geometry, which are its last.

    Attributes:
        first: row of one end of each, (ties,).
        second: row of the other.
        turns: whether it is a weld.
    """

    first: np.ndarray
    second: np.ndarray
    turns: np.ndarray

    @property
    def blocks(self) -> int:
        """Blocks of three rows that they have."""
        return len(self.turns) + int(self.turns.sum())


def knots(model: Model, connections: Sequence[Connection]) -> list[Placed]:
    """Both ends of each connection, as shapes that touch nothing."""
    found = []
    for each in connections:
        if each.first == each.second:
            raise ModelError(f"connection {each.name!r}: it connects {each.first!r} with itself")
        for body, pose in ((each.first, each.first_pose), (each.second, each.second_pose)):
            if body is not None and body not in model.body_names:
                raise ModelError(f"connection {each.name!r}: there is no body {body!r}")
            frame = np.asarray(pose, float)
            if frame.shape != (4, 4):
                raise ModelError(f"connection {each.name!r}: a pose is 4×4, got shape {frame.shape}")
            row = None if body is None else model.body_names.index(body)
            found.append(Placed(Sphere(_DRAWN), row, tuple(map(tuple, frame.tolist())), name=each.name))
    return found


def ties_of(connections: Sequence[Connection], shapes: int) -> Ties:
    """The ends of all connections, behind so many other shapes."""
    first = shapes + 2 * np.arange(len(connections))
    return Ties(first, first + 1, np.array([each.weld for each in connections], bool))
