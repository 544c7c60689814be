"""Constraint rows beside contacts: dry friction, transmissions and loop joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.model.mechanism import LoopJoint
from physvision.physics.articulated.model.transmissions import TRANSMISSION_KINDS, Transmission
from physvision.physics.articulated.settings import SETTINGS


@dataclass(frozen=True)
class ScalarRows:
    """Constraints of one row with a bounded force: the dry friction of velocities, then the transmissions.

    Attributes:
        friction_velocities: Velocities whose dry friction is a row, (friction rows,).
        count: Number of rows.
        arrays: Integers and coefficients of all rows, by the names of the kernels' `ContactModel`.
        beyond_limits: If true, the initial position is beyond the limit that a row is, (rows,).
    """

    friction_velocities: np.ndarray
    count: int
    arrays: dict[str, np.ndarray]
    beyond_limits: np.ndarray

    @property
    def limits(self) -> np.ndarray:
        """Numbers of the rows that are limits, which are candidates for a contact."""
        return np.flatnonzero(self.arrays["transmissions.kind"] == TRANSMISSION_KINDS.index("limit"))

    def terms(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Velocities of a row, and their coefficients."""
        start, end = self.arrays["transmissions.start"][row : row + 2]
        return self.arrays["transmissions.velocity"][start:end], self.arrays["transmissions.coefficient"][start:end]


@dataclass(frozen=True)
class LoopConstraints:
    """Equality constraints of loop joints, by the rows of their markers in the engine's geometry.

    Attributes:
        first: Row of the first marker of each joint, (loop joints,).
        second: Row of the second marker of each joint, (loop joints,).
        weld: If true, the joint constrains orientations too, (loop joints,).
        torque_scale: Weight of rotations relative to translations in compliant contact, (loop joints,), m.
    """

    first: np.ndarray
    second: np.ndarray
    weld: np.ndarray
    torque_scale: np.ndarray

    @property
    def blocks(self) -> int:
        """Number of blocks of three rows."""
        return len(self.weld) + int(self.weld.sum())


def compile_scalar_rows(
    tree: KinematicTree, friction_velocities: np.ndarray, transmissions: Sequence[Transmission]
) -> ScalarRows:
    """Compile the rows of velocities with dry friction and of transmissions, which are checked."""
    number = {name: link for link, name in enumerate(tree.joint_names)}
    kinds = [TRANSMISSION_KINDS.index("friction")] * len(friction_velocities)
    terms: list[list[tuple[int, int, float]]] = [[(int(d), 0, 1.0)] for d in friction_velocities]
    links = [[int(np.searchsorted(tree.first_velocity, d, side="right")) - 1] for d in friction_velocities]
    for transmission in transmissions:
        transmission.check(tree)
        kinds.append(TRANSMISSION_KINDS.index(transmission.kind))
        row_links = [number[name] for name in transmission.coefficients]
        links.append(row_links)
        coefficients = transmission.coefficients.values()
        terms.append(
            [
                (int(tree.first_velocity[link]), int(tree.first_position[link]), float(coefficient))
                for link, coefficient in zip(row_links, coefficients, strict=True)
            ]
        )
    smooth = [False] * len(friction_velocities) + [transmission.smooth for transmission in transmissions]
    paths = [_ancestors(tree, row_links) for row_links in links]
    flat = [term for row in terms for term in row]
    arrays = {
        "transmissions.kind": np.array(kinds, np.int32),
        "transmissions.is_smooth": np.array(smooth, np.int32),
        "transmissions.start": _starts(terms),
        "transmissions.velocity": np.array([velocity for velocity, _, _ in flat], np.int32),
        "transmissions.position": np.array([position for _, position, _ in flat], np.int32),
        "transmissions.coefficient": np.array([coefficient for _, _, coefficient in flat], float),
        "transmissions.path_start": _starts(paths),
        "transmissions.path": np.array([link for path in paths for link in path], np.int32),
    }
    lengths = [sum(factor * tree.initial_q[position] for _, position, factor in row) for row in terms]
    rests = [0.0] * len(friction_velocities) + [transmission.rest_position for transmission in transmissions]
    beyond_limits = np.subtract(lengths, rests) < -SETTINGS.max_initial_penetration
    return ScalarRows(np.asarray(friction_velocities, np.int64), len(kinds), arrays, beyond_limits)


def compile_loop_constraints(loop_joints: Sequence[LoopJoint], first_marker: int) -> LoopConstraints:
    """Compile the constraints of loop joints whose markers start at a row of the geometry."""
    first = first_marker + 2 * np.arange(len(loop_joints))
    scales = np.array([joint.torque_scale for joint in loop_joints], float)
    return LoopConstraints(first, first + 1, np.array([joint.weld for joint in loop_joints], bool), scales)


def _starts(rows: Sequence[Sequence[object]]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)


def _ancestors(tree: KinematicTree, links: Sequence[int]) -> list[int]:
    """The links and all their ancestors, outermost first."""
    ancestors = set()
    for link in links:
        while link >= 0 and link not in ancestors:
            ancestors.add(link)
            link = int(tree.parent[link])
    return sorted(ancestors, reverse=True)
