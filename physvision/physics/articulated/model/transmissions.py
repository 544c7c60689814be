"""Fixed combinations of joints along which something pulls: limited servos, tendons on joints, ties."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from physvision.core import ModelError
from physvision.physics.articulated.model.kinematic_tree import Model

# As `kernels/transmissions.py` numbers them.
HOLDS, SERVO, TIED = range(3)
_KINDS = {"friction": HOLDS, "servo": SERVO, "tie": TIED}


@dataclass(frozen=True)
class Transmission:
    """A force along a fixed combination of revolute and prismatic joints, as part of the contact problem.

    With p = Σ share · position − rest and u its velocity, a "servo" pulls with control − stiffness p − damping u, taken
    at the end of the step and cut off at its limits, which is stable however stiff it is. One with a largest `speed`
    pulls with damping (z − u), where z = (control − stiffness p) / damping, within ±speed, is asked for as the step
    begins: a motor of gain stiffness / damping, which has to be below one over the step. "friction" resists all motion
    with a force within the limits; a "tie" keeps p at zero.

    Attributes:
        shares: of each joint by name, m/rad or a number.
        kind: "servo", "friction" or "tie".
        stiffness: of a servo, N/m or N m/rad.
        damping: of a servo, N s/m or N m s/rad.
        rest: the combined position at which a servo's spring is at rest, or a tie holds.
        limits: least and greatest force, N or N m.
        name: for messages.
        speed: that a servo asks for at most, m/s or rad/s.
    """

    shares: Mapping[str, float]
    kind: str = "servo"
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float = 0.0
    limits: tuple[float, float] = (-math.inf, math.inf)
    name: str = ""
    speed: float = math.inf


@dataclass(frozen=True)
class Rows:
    """All bounded rows of a model: first the dry friction of its joints, one a velocity, then its transmissions.

    Attributes:
        rubbing: velocities whose dry friction is a row, (friction rows,).
        count: number of rows.
        table: the integers and shares of all rows, by the names of the kernels' `Contacts`.
    """

    rubbing: np.ndarray
    count: int
    table: dict[str, np.ndarray]


def rows_of(model: Model, rubbing: np.ndarray, transmissions: Sequence[Transmission]) -> Rows:
    """The rows of the velocities with dry friction and of transmissions, which are checked."""
    number = {name: link for link, name in enumerate(model.joint_names)}
    kinds = [HOLDS] * len(rubbing)
    shares: list[list[tuple[int, int, float]]] = [[(int(d), 0, 1.0)] for d in rubbing]
    links = [[int(np.searchsorted(model.first_velocity, d, side="right")) - 1] for d in rubbing]
    for each in transmissions:
        _check(model, number, each)
        kinds.append(_KINDS[each.kind])
        on = [number[name] for name in each.shares]
        links.append(on)
        shares.append(
            [
                (int(model.first_velocity[link]), int(model.first_position[link]), float(share))
                for link, share in zip(on, each.shares.values(), strict=True)
            ]
        )
    paths = [_path(model, on) for on in links]
    entries = [entry for row in shares for entry in row]
    table = {
        "transmission_kind": np.array(kinds, np.int32),
        "transmission_first": _starts(shares),
        "transmission_velocity": np.array([entry[0] for entry in entries], np.int32),
        "transmission_position": np.array([entry[1] for entry in entries], np.int32),
        "transmission_share": np.array([entry[2] for entry in entries], float),
        "transmission_path_first": _starts(paths),
        "transmission_path": np.array([link for path in paths for link in path], np.int32),
    }
    return Rows(np.asarray(rubbing, np.int64), len(kinds), table)


def _starts(rows: Sequence[Sequence[object]]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)


def _path(model: Model, links: Sequence[int]) -> list[int]:
    """The links and all that carry them, outermost first."""
    found = set()
    for link in links:
        while link >= 0 and link not in found:
            found.add(link)
            link = int(model.parent[link])
    return sorted(found, reverse=True)


def _check(model: Model, number: Mapping[str, int], each: Transmission) -> None:
    if each.kind not in _KINDS:
        raise ModelError(f"transmission {each.name!r}: no kind {each.kind!r}; there are {', '.join(_KINDS)}")
    if not each.shares:
        raise ModelError(f"transmission {each.name!r}: it needs the share of at least one joint")
    for name, share in each.shares.items():
        if name not in number:
            raise ModelError(f"transmission {each.name!r}: there is no joint {name!r}")
        if model.joint_names.count(name) > 1:
            raise ModelError(f"transmission {each.name!r}: there are several joints {name!r}; give each its own name")
        link = number[name]
        if model.first_velocity[link + 1] - model.first_velocity[link] != 1:
            raise ModelError(f"transmission {each.name!r}: joint {name!r} is neither revolute nor prismatic")
        if not (math.isfinite(share) and share != 0):
            raise ModelError(
                f"transmission {each.name!r}: the share of {name!r} is {share}; expected a number but zero"
            )
    if not each.limits[0] <= each.limits[1]:
        raise ModelError(f"transmission {each.name!r}: limits {each.limits} are not in order")
    if each.kind == "friction" and not each.limits[0] <= 0 <= each.limits[1]:
        raise ModelError(f"transmission {each.name!r}: the limits of friction must hold zero, got {each.limits}")
    if not each.speed >= 0 or (math.isfinite(each.speed) and not (each.kind == "servo" and each.damping > 0)):
        raise ModelError(
            f"transmission {each.name!r}: a largest speed is a number from zero on, of a servo with damping; got "
            f"{each.speed} of kind {each.kind!r} with damping {each.damping}"
        )
    if each.kind == "servo" and not (each.stiffness >= 0 and each.damping >= 0 and each.stiffness + each.damping > 0):
        raise ModelError(
            f"transmission {each.name!r}: a servo needs stiffness or damping above zero, got {each.stiffness} and "
            f"{each.damping}"
        )
