"""Pairs of features that may touch and joints with limits, and their numbers from an engine's properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from physvision.core import Capsule, Placed
from physvision.physics.articulated.arrays import CONTACT_PARAMETERS
from physvision.physics.articulated.compiler.link_parameters import Packing, Parameters, expanded, with_row
from physvision.physics.articulated.contact.bounds import group_kind, reach
from physvision.physics.articulated.contact.features import (
    CONVEX,
    POINT_PLANE,
    STRING_ROW,
    STRUT_ROW,
    Feature,
    Row,
    features,
)
from physvision.physics.articulated.contact.laws import Compliant, CompliantEach
from physvision.physics.articulated.contact.polytopes import table
from physvision.physics.articulated.contact.shape_pairs import Touching, check_supported, link_of
from physvision.physics.articulated.model.kinematic_tree import KINDS, Model
from physvision.physics.articulated.model.loop_joints import Ties
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.articulated.model.transmissions import Rows

MOST_CONTACTS = 48  # that may take part at once
_LEAST_MOBILITY = 1e-15  # 1/kg


class _Pair(NamedTuple):
    """A pair of features that may touch.

    Attributes:
        kind: of the pair, as `kernels/collision/closest_points.py` numbers them.
        first: row of the first shape in the engine's geometry.
        second: row of the second.
        feature: which part of the first it is.
        touching: the pair of shapes that it belongs to.
        prevails: as in `Touching`, of these shapes in this order.
    """

    kind: int
    first: int
    second: int
    feature: Feature
    touching: Touching
    prevails: int


class Pairs:
    """All features that may touch: shapes that take part, and for each pair its kind, its shapes and their features.

    Joints with limits touch their stops. Bounded rows, as of dry friction, take part beside contacts.

    Attributes:
        count: number of pairs of features.
        limited: joints with limits, (limits,).
        shapes: number of shapes that take part.
        rows: row of each of these in the engine's geometry, (shapes,).
        first: row in the engine's geometry of each pair's first shape, (count,).
        second: the same of its second.
        beside: the bounded rows.
        capacity: contacts and rows that may take part at once.
        spinner: links whose turning is of second order in the step: where contact is by events, those that turn freely
            and carry nothing.
        varying: where contact is by events, the roots of other trees whose inertia or weight changes with their pose.
        parts: what the kernels need beside what all models have: "convex_pairs" of any convex shapes, "pyramidal"
            friction, and contacts "midway" between surfaces.
        counts: what the rows of the kernels' arrays count.
    """

    def __init__(
        self,
        model: Model,
        geometry: Sequence[Placed],
        touching: Sequence[Touching],
        mixing: str,
        beside: Rows,
        ties: Ties,
        pyramid: bool = False,
        by_events: bool = True,
        compliant: bool = False,
    ) -> None:
        check_supported(model, geometry, touching)
        found, groups = _listed(geometry, touching)
        self.count = len(found)
        self.spinner, self.varying = _changing(model) if by_events else ([], [])
        self.limited = np.flatnonzero(model.limited)
        turns = np.array([row.touching.turns for row in found], bool)
        self.beside = beside
        blocks = self.count + int(turns.sum()) + len(self.limited)
        self.capacity = min(blocks, MOST_CONTACTS) + beside.count + ties.blocks
        self.first, self.second = (np.array([row[k] for row in found], np.int64) for k in (1, 2))
        self.rows = np.unique(np.concatenate([self.first, self.second, ties.first, ties.second]))
        self.shapes = len(self.rows)
        self.counts = {
            "shapes": self.shapes,
            "pairs": self.count,
            "groups": len(groups) - 1,
            "limits": len(self.limited),
            "candidates": self.count + 2 * len(self.limited),
            "transmissions": beside.count,
            "ties": len(ties.turns),
            "beside": beside.count + int(turns.sum()) + ties.blocks,
            "contacts": self.capacity,
            "coupled": model.nv if compliant else 0,
        }
        convex = any(row.kind == CONVEX for row in found)
        parts = (("convex_pairs", convex), ("pyramidal", pyramid), ("midway", compliant))
        self.parts = [name for name, there in parts if there]
        self._mixing = mixing
        # A row behind the last body stands for the world.
        bodies = [geometry[row].body for row in self.rows]
        self._body = np.array([model.bodies if body is None else body for body in bodies], np.int64)
        self._given, self._turning_given = _own_friction(found), _own_turning(found)
        self._prevails = np.array([row.prevails for row in found])
        self._table = {
            "shape_link": np.array([link_of(model, geometry[row]) for row in self.rows], np.int32),
            "first": np.searchsorted(self.rows, self.first).astype(np.int32),
            "second": np.searchsorted(self.rows, self.second).astype(np.int32),
            "shape_reach": np.array([reach(geometry[row].shape) for row in self.rows]).reshape(-1, 3),
            "limit_link": self.limited.astype(np.int32),
            "turns": turns.astype(np.int32),
            "lengthwise": np.array([_is_lengthwise(geometry, row) for row in found], np.int32),
            "reference": np.zeros((self.counts["candidates"], 3)),
            "shares": np.zeros((self.counts["candidates"], 3)),
            "tie_first": np.searchsorted(self.rows, ties.first).astype(np.int32),
            "tie_second": np.searchsorted(self.rows, ties.second).astype(np.int32),
            "tie_turns": ties.turns.astype(np.int32),
            **_features_and_groups(found, groups),
            **table([geometry[row].shape for row in self.rows] if convex else []),
            **beside.table,
        }

    def weigh(self, law: Compliant | CompliantEach, of_bodies: np.ndarray, of_links: np.ndarray) -> None:
        """Take how hard all pairs and stops push: from a law, and from what a force moves (see `mobilities`)."""
        pairs, stops = law.each(self.counts["groups"], len(self.limited))
        numbers = [*(pairs[group] for group in self._table["group"]), *(stop for stop in stops for _ in range(2))]
        of_shapes = np.append(of_bodies, 0.0)[self._body]
        both = of_shapes[self._table["first"]] + of_shapes[self._table["second"]]
        # What nothing moves is pushed as hard as MuJoCo pushes it, which has the same least number.
        mobility = np.maximum(np.concatenate([both, np.repeat(of_links[self.limited], 2)]), _LEAST_MOBILITY)
        self._table["reference"] = np.array([each.reference for each in numbers]).reshape(-1, 3)
        shares = np.array([each.shares for each in numbers]).reshape(-1, 2)
        self._table["shares"] = np.column_stack([shares, mobility])

    def table(self, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
        """What of the pairs is no property, by the names of the kernels' `Contacts`."""
        return {
            name: torch.as_tensor(value, dtype=dtype if value.dtype == float else torch.int32, device=device)
            for name, value in self._table.items()
        }

    def numbers(self, geometry: Sequence[Placed]) -> dict[str, Tensor]:
        """Of each pair the rows of its shapes in the geometry, and of their bodies, -1 for the world."""
        bodies = np.array([-1 if placed.body is None else placed.body for placed in geometry])
        rows = {"first": self.first, "second": self.second}
        rows |= {"first_body": bodies[self.first], "second_body": bodies[self.second]}
        return {name: torch.as_tensor(row) for name, row in rows.items()}

    def pack(self, properties: TreeProperties, packing: Packing, batch: int) -> Parameters:
        """The numbers of all shapes and pairs, by the names of `layout.CONTACT_PARAMETERS`."""
        p = properties
        pose = p.shape_pose[..., self.rows, :, :]
        rotation, offset = packing.bodies_in_links(p)
        carrier = with_row(rotation, packing.identity)[..., self._body, :, :]
        start = with_row(offset, offset.new_zeros(3))[..., self._body, :]
        made = {
            "shape_turn": carrier @ _orthonormal(pose[..., :3, :3]),
            "shape_offset": start + (carrier @ pose[..., :3, 3:]).squeeze(-1),
            "shape_size": p.shape_size[..., self.rows, :],
            "friction": self._friction(p.friction),
            **self._turning(p.turning_friction),
            **self._rows(p),
            "limit_low": p.joint_limits[..., self.limited, 0],
            "limit_high": p.joint_limits[..., self.limited, 1],
            "restitution": (p.restitution[..., self.first] + p.restitution[..., self.second]) / 2,
        }
        return {name: expanded(made[name], batch, field) for name, field in CONTACT_PARAMETERS.items()}

    def _rows(self, p: TreeProperties) -> Parameters:
        """The numbers of the bounded rows."""
        most = p.friction_loss[..., self.beside.rubbing]
        none = torch.zeros_like(most)
        low, high = p.transmission_force.unbind(-1)
        return {
            "transmission_stiffness": _behind(none, p.transmission_stiffness),
            "transmission_damping": _behind(none, p.transmission_damping),
            "transmission_rest": _behind(none, p.transmission_rest),
            "transmission_low": _behind(-most, low),
            "transmission_high": _behind(most, high),
            "transmission_speed": _behind(none, p.transmission_speed),
        }

    def _turning(self, values: Tensor) -> Parameters:
        torsion, rolling = values.unbind(-1)
        given = self._turning_given
        return {"torsion": self._mixed(torsion, given[:, 0]), "rolling": self._mixed(rolling, given[:, 1])}

    def _friction(self, values: Tensor) -> Tensor:
        return self._mixed(values, self._given)

    def _mixed(self, values: Tensor, own: np.ndarray) -> Tensor:
        """The coefficient of each pair from those of its shapes, where it has none of its own."""
        first, second = values[..., self.first], values[..., self.second]
        mixed = (first + second) / 2 if self._mixing == "mean" else torch.maximum(first, second)
        given, prevails = (torch.as_tensor(numbers, device=values.device) for numbers in (own, self._prevails))
        mixed = torch.where(prevails > 0, first, torch.where(prevails < 0, second, mixed))
        return torch.where(given.isnan(), mixed, given.to(values))


def _changing(model: Model) -> tuple[list[int], list[int]]:
    """Links that turn freely and carry nothing, and the roots of other trees in which something turns."""
    carrying = set(model.parent.tolist())
    alone = [link for link in np.flatnonzero(model.kind == KINDS["free"][0]).tolist() if link not in carrying]
    turning = set(model.root[model.kind != KINDS["prismatic"][0]].tolist())
    return alone, sorted(turning - {link for link in alone if model.parent[link] < 0})


def _listed(geometry: Sequence[Placed], touching: Sequence[Touching]) -> tuple[list[_Pair], list[int]]:
    """All pairs of features, those of two shapes in a row, and where each of these groups begins, with the end."""
    found, groups = [], [0]
    for each in touching:
        for kind, swapped, feature in _features(geometry, each):
            ends = (each.second, each.first) if swapped else (each.first, each.second)
            found.append(_Pair(kind, *ends, feature, each, -each.prevails if swapped else each.prevails))
        groups.append(len(found))
    return found, groups


def _is_lengthwise(geometry: Sequence[Placed], row: _Pair) -> bool:
    """Whether it is the end of a capsule on a plane."""
    return row.kind == POINT_PLANE and isinstance(geometry[row.first].shape, Capsule)


def _own_friction(found: Sequence[_Pair]) -> np.ndarray:
    """The friction of pairs that have one of their own, not a number where that of their shapes mixes."""
    given = np.array([np.nan if row.touching.friction is None else row.touching.friction for row in found], float)
    given[np.array([row.touching.slippery for row in found], bool)] = 0.0
    return given


def _own_turning(found: Sequence[_Pair]) -> np.ndarray:
    """The same of friction against spinning and rolling, (pairs, 2), zero where there is none."""
    none, mixed = (0.0, 0.0), (np.nan, np.nan)
    given = [(row.touching.turning or mixed) if row.touching.turns else none for row in found]
    return np.array(given, float).reshape(-1, 2)


def _features_and_groups(found: Sequence[_Pair], groups: Sequence[int]) -> dict[str, np.ndarray]:
    """What of the kernels' `Contacts` the list alone tells."""
    return {
        "kind": np.array([row.kind for row in found], np.int32),
        "feature": np.array([row.feature for row in found]).reshape(-1, 3),
        "margin": np.array([row.touching.margin for row in found], float),
        "group": np.repeat(np.arange(len(groups) - 1, dtype=np.int32), np.diff(groups)),
        "group_start": np.array(groups, np.int32),
        "group_kind": np.array([group_kind(found[start].kind) for start in groups[:-1]], np.int32),
    }


def _features(geometry: Sequence[Placed], pair: Touching) -> list[Row]:
    if pair.string or pair.strut:
        return [STRING_ROW if pair.string else STRUT_ROW]
    return features(geometry[pair.first].shape, geometry[pair.second].shape) or []


def _behind(first: Tensor, second: Tensor) -> Tensor:
    """The rows of both, worlds repeated where only one has numbers for each."""
    worlds = torch.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    return torch.cat([first.expand(*worlds, -1), second.expand(*worlds, -1)], -1)


def _orthonormal(axes: Tensor) -> Tensor:
    """A rotation that keeps the direction of the third axis, and the first one's as far as it is perpendicular."""
    z = axes[..., 2] / axes[..., 2].norm(dim=-1, keepdim=True)
    x = axes[..., 0] - (axes[..., 0] * z).sum(-1, keepdim=True) * z
    x = x / x.norm(dim=-1, keepdim=True)
    return torch.stack([x, torch.linalg.cross(z, x), z], -1)
