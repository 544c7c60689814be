"""Compilation of shape pairs, joint limits and constraint rows to the arrays of the contact problem."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from physvision.core import Capsule, Placed, Shape
from physvision.physics.articulated.arrays import CONTACT_PARAMETERS
from physvision.physics.articulated.compiler.constraint_rows import LoopConstraints, ScalarRows
from physvision.physics.articulated.compiler.link_parameters import LinkParameters, Parameters, append_row, expand
from physvision.physics.articulated.compiler.mobility import Mobilities
from physvision.physics.articulated.contact import (
    Compliant,
    CompliantLaws,
    ConstraintCounts,
    ContactSettings,
    FeaturePairs,
    ShapePairs,
    compile_feature_pairs,
)
from physvision.physics.articulated.contact.features import (
    CONVEX,
    POINT_PLANE,
    bounding_factors,
    broad_phase_kind,
)
from physvision.physics.articulated.contact.polytopes import polytope_arrays
from physvision.physics.articulated.contact.shape_pairs import check_shape_pairs
from physvision.physics.articulated.model.bodies import JOINT_KINDS
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.articulated.settings import SETTINGS


class ContactPairs:
    """Contact problem of a mechanism: pairs of features, joint limits, scalar rows and loop constraints.

    Attributes:
        count: Number of pairs of features.
        limited_joints: Indices of the joints with limits, (limits,).
        shapes: Number of shapes that occur in pairs or loop constraints.
        shape_rows: Row of each of these shapes in the engine's geometry, (shapes,).
        first: Row of each pair's first shape in the engine's geometry, (count,).
        second: Row of each pair's second shape in the engine's geometry, (count,).
        scalar_rows: Rows of dry friction and transmissions.
        capacity: Number of blocks of the contact problem that a workspace holds at first.
        max_capacity: Largest number of blocks that the contact problem may have.
        max_events: Largest number of flights and impacts in one step.
        is_centered: If true, free links are integrated about their center of mass, by events.
        row_blocks: Number of blocks of transmissions and loop joints.
        max_group_pairs: Largest number of pairs of features of two shapes.
        is_elliptic: If true, compliant contact has an elliptic friction cone.
        friction_ratio: Ratio of the stiffness along friction to that along the normal, of compliant contact.
        varying_roots: With contact by events, roots of trees with joints that rotate, whose inertia or weight depends
            on their position.
        kernel_options: Options of the kernel module: "convex_pairs" with general convex pairs, "pyramidal" friction,
            and "midway" for contact points midway between surfaces.
        counts: Sizes of the rows of the kernels' arrays.
    """

    def __init__(
        self,
        tree: KinematicTree,
        geometry: Sequence[Placed],
        shape_pairs: ShapePairs,
        mixing: str,
        scalar_rows: ScalarRows,
        loops: LoopConstraints,
        contact: ContactSettings,
    ) -> None:
        """Compile the contact problem.

        Args:
            tree: Kinematic tree of the mechanism.
            geometry: Shapes of the engine.
            shape_pairs: Pairs of shapes that may collide.
            mixing: Friction of a pair from that of its shapes: "mean" or "maximum".
            scalar_rows: Rows of dry friction and transmissions.
            loops: Constraints of loop joints.
            contact: Contact method and friction model.
        """
        check_shape_pairs(tree, geometry, shape_pairs)
        shapes = [placed.shape for placed in geometry]
        table = shape_pairs.rows
        features = compile_feature_pairs(shapes, table.first, table.second, table.tendon, contact.by_events)
        pairs = table[features.group].view(np.recarray)
        compliant = contact.compliant_law is not None
        self.count = len(pairs)
        self.is_centered = contact.by_events and bool((tree.kind == JOINT_KINDS["free"].code).any())
        self.varying_roots = _rotating_roots(tree) if contact.by_events else []
        self.limited_joints, self.scalar_rows = np.flatnonzero(tree.limited), scalar_rows
        rotational = pairs.has_rotational_friction.copy()
        blocks = self.count + int(rotational.sum()) + len(self.limited_joints) + len(scalar_rows.limits)
        self.row_blocks = scalar_rows.count + loops.blocks
        self.max_group_pairs = int(np.diff(features.start).max(initial=0))
        self.capacity = min(blocks, SETTINGS.max_contacts) + self.row_blocks
        self.max_events = max(SETTINGS.max_events, SETTINGS.max_tree_events * len(set(tree.root.tolist())))
        self.max_capacity = blocks + self.row_blocks
        self.is_elliptic, self.friction_ratio = False, 1.0
        self.first = np.where(features.is_swapped, pairs.second, pairs.first)
        self.second = np.where(features.is_swapped, pairs.first, pairs.second)
        self.shape_rows = np.unique(np.concatenate([self.first, self.second, loops.first, loops.second]))
        self.shapes = len(self.shape_rows)
        self.counts = self._counts(tree.nv if compliant else 0, len(table), int(rotational.sum()), loops)
        convex = bool((features.kind == CONVEX).any())
        self.kernel_options = _kernel_options(convex_pairs=convex, pyramidal=contact.is_pyramid, midway=compliant)
        self._mixing = mixing
        self._body = np.array([_body_row(tree, geometry[row]) for row in self.shape_rows], np.int64)
        self._pair_friction, self._pair_rotational_friction = _pair_friction(pairs), _pair_rotational_friction(pairs)
        self._priority = np.where(features.is_swapped, -pairs.priority, pairs.priority)
        self._arrays = {
            "shapes.link": np.array([tree.shape_link(geometry[row]) for row in self.shape_rows], np.int32),
            "pairs.first": np.searchsorted(self.shape_rows, self.first).astype(np.int32),
            "pairs.second": np.searchsorted(self.shape_rows, self.second).astype(np.int32),
            "shapes.bounding_scale": np.array(
                [bounding_factors(geometry[row].shape) for row in self.shape_rows]
            ).reshape(-1, 3),
            "lengths.row": scalar_rows.limits.astype(np.int32),
            "limits.link": self.limited_joints.astype(np.int32),
            "pairs.has_rotational_friction": rotational.astype(np.int32),
            "pairs.is_held": _held_candidates(pairs.is_held, tree, scalar_rows),
            "pairs.is_capsule_end": self._capsule_ends(features.kind, shapes),
            **dict.fromkeys(("convex.reference", "convex.impedance", "convex.curve"), np.zeros((1, 3))),
            "equalities.first": np.searchsorted(self.shape_rows, loops.first).astype(np.int32),
            "equalities.second": np.searchsorted(self.shape_rows, loops.second).astype(np.int32),
            "equalities.is_weld": loops.weld.astype(np.int32),
            "equalities.torque_scale": np.asarray(loops.torque_scale, float),
            **_pair_arrays(features, pairs.margin.copy()),
            **polytope_arrays([geometry[row].shape for row in self.shape_rows] if convex else []),
            **scalar_rows.arrays,
        }

    def _capsule_ends(self, kind: np.ndarray, shapes: Sequence[Shape]) -> np.ndarray:
        """Return 1 for pairs of the end of a capsule with a plane, given the kinds of the pairs."""
        is_capsule = np.array([isinstance(shape, Capsule) for shape in shapes], bool)
        return ((kind == POINT_PLANE) & is_capsule[self.first]).astype(np.int32)

    def _counts(self, coupled_velocities: int, groups: int, rotational: int, loops: LoopConstraints) -> dict[str, int]:
        """Return the row sizes of the kernels' arrays."""
        return {
            "shapes": self.shapes,
            "pairs": self.count,
            "groups": groups,
            "limits": len(self.limited_joints),
            "lengths": len(self.scalar_rows.limits),
            "candidates": self.count + 2 * len(self.limited_joints) + len(self.scalar_rows.limits),
            "transmissions": self.scalar_rows.count,
            "equalities": len(loops.weld),
            "noncontact_blocks": self.scalar_rows.count + rotational + loops.blocks,
            "contacts": self.capacity,
            "coupled": coupled_velocities,
        }

    def set_compliance(self, law: Compliant | CompliantLaws, mobilities: Mobilities) -> None:
        """Set reference, impedance and mobility of all constraints.

        Args:
            law: Law of compliant contact.
            mobilities: Mobilities in the initial position.
        """
        arrays, rows, limited = self._arrays, self.scalar_rows, self.limited_joints
        counts = ConstraintCounts(self.counts["groups"], len(limited), rows.count, self.counts["equalities"])
        constraints = law.expand(counts)
        bodies, rotations = (np.append(values, 0.0)[self._body] for values in (mobilities.bodies, mobilities.rotations))
        constraint_rows = [constraints.pairs[group] for group in arrays["pairs.group"]]
        constraint_rows += [limit for limit in constraints.limits for _ in range(2)]
        constraint_rows += [constraints.transmissions[row] for row in rows.limits]
        constraint_rows += [*constraints.transmissions, *constraints.loops]
        first, second = arrays["equalities.first"], arrays["equalities.second"]
        mobility = [
            *(bodies[arrays["pairs.first"]] + bodies[arrays["pairs.second"]]),
            *np.repeat(mobilities.joints[limited], 2),
            *(mobilities.along(*rows.terms(int(row))) for row in rows.limits),
            *(mobilities.along(*rows.terms(row)) for row in range(rows.count)),
            *(bodies[first] + bodies[second]),
        ]
        angular = [0.0] * (len(constraint_rows) - len(first)) + [*(rotations[first] + rotations[second])]
        mobility = [
            value if row.mobility is None else row.mobility
            for row, value in zip(constraint_rows, mobility, strict=True)
        ]
        angular = [
            value if row.angular_mobility is None else row.angular_mobility
            for row, value in zip(constraint_rows, angular, strict=True)
        ]
        arrays["convex.reference"] = np.array([row.law.reference for row in constraint_rows], float).reshape(-1, 3)
        impedance = np.array([row.law.impedance for row in constraint_rows], float).reshape(-1, 2)
        arrays["convex.impedance"] = np.column_stack([impedance, np.maximum(mobility, SETTINGS.min_mobility)])
        curve = np.array([(row.law.midpoint, row.law.power) for row in constraint_rows], float).reshape(-1, 2)
        arrays["convex.curve"] = np.column_stack([curve, np.maximum(angular, SETTINGS.min_mobility)])
        self.is_elliptic, self.friction_ratio = constraints.is_elliptic, constraints.friction_ratio

    @property
    def is_held(self) -> np.ndarray:
        """Nonzero for candidates that penetrate in the reference pose: pairs, two for each joint with limits, rows."""
        return self._arrays["pairs.is_held"]

    def arrays(self, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
        """Constant arrays of the contact problem, by the names of the kernels' `ContactModel`."""
        return {
            name: torch.as_tensor(value, dtype=dtype if value.dtype == float else torch.int32, device=device)
            for name, value in self._arrays.items()
        }

    def list_rows(self, geometry: Sequence[Placed]) -> dict[str, Tensor]:
        """Return the geometry rows of both shapes of each pair, and the rows of their bodies (-1 for the world)."""
        bodies = np.array([-1 if placed.body is None else placed.body for placed in geometry])
        rows = {"first": self.first, "second": self.second}
        rows |= {"first_body": bodies[self.first], "second_body": bodies[self.second]}
        return {name: torch.as_tensor(row) for name, row in rows.items()}

    def pack(
        self, properties: TreeProperties, link_parameters: LinkParameters, batch: int, centered: bool = False
    ) -> Parameters:
        """Parameters of all shapes, pairs and rows for `batch` worlds, by the names of `arrays.CONTACT_PARAMETERS`.

        Args:
            properties: Properties of bodies, joints and shapes.
            link_parameters: Map from properties to link parameters.
            batch: Number of worlds.
            centered: If true, free links have their origin at their center of mass.
        """
        p = properties
        pose = p.shape_pose[..., self.shape_rows, :, :]
        rotation, offset = link_parameters.bodies_in_links(p, centered)
        body_rotation = append_row(rotation, link_parameters.identity)[..., self._body, :, :]
        body_offset = append_row(offset, offset.new_zeros(3))[..., self._body, :]
        torsion, rolling = p.rotational_friction.unbind(-1)
        values = {
            "shapes.rotation": body_rotation @ _orthonormalize(pose[..., :3, :3]),
            "shapes.offset": body_offset + (body_rotation @ pose[..., :3, 3:]).squeeze(-1),
            "shapes.size": p.shape_size[..., self.shape_rows, :],
            "pairs.friction": self._mix(p.friction, self._pair_friction),
            "pairs.torsional_friction": self._mix(torsion, self._pair_rotational_friction[:, 0]),
            "pairs.rolling_friction": self._mix(rolling, self._pair_rotational_friction[:, 1]),
            **self._row_parameters(p),
            "limits.lower": p.joint_limits[..., self.limited_joints, 0],
            "limits.upper": p.joint_limits[..., self.limited_joints, 1],
            "pairs.restitution": (p.restitution[..., self.first] + p.restitution[..., self.second]) / 2,
        }
        return {name: expand(values[name], batch, field) for name, field in CONTACT_PARAMETERS.items()}

    def _row_parameters(self, p: TreeProperties) -> Parameters:
        """Parameters of dry friction and transmissions."""
        friction = p.friction_loss[..., self.scalar_rows.friction_velocities]
        zeros = torch.zeros_like(friction)
        low, high = p.transmission_force_range.unbind(-1)
        return {
            "transmissions.stiffness": _concatenate(zeros, p.transmission_stiffness),
            "transmissions.damping": _concatenate(zeros, p.transmission_damping),
            "transmissions.reference": _concatenate(zeros, p.transmission_rest_position),
            "transmissions.min_force": _concatenate(-friction, low),
            "transmissions.max_force": _concatenate(friction, high),
            "transmissions.max_speed": _concatenate(zeros, p.transmission_max_speed),
        }

    def _mix(self, values: Tensor, pair_values: np.ndarray) -> Tensor:
        """Return each pair's coefficient: its own unless that is NaN, otherwise mixed from those of its shapes."""
        first, second = values[..., self.first], values[..., self.second]
        mixed = (first + second) / 2 if self._mixing == "mean" else torch.maximum(first, second)
        explicit, priority = (torch.as_tensor(array, device=values.device) for array in (pair_values, self._priority))
        mixed = torch.where(priority > 0, first, torch.where(priority < 0, second, mixed))
        return torch.where(explicit.isnan(), mixed, explicit.to(values))


def _body_row(tree: KinematicTree, placed: Placed) -> int:
    """Row of a shape's body; the one after that of the last body stands for the world."""
    return tree.bodies if placed.body is None else placed.body


def _kernel_options(**used: bool) -> list[str]:
    return [name for name, is_used in used.items() if is_used]


def _held_candidates(is_held: np.ndarray, tree: KinematicTree, rows: ScalarRows) -> np.ndarray:
    """Return 1 for candidates that penetrate in the reference pose: pairs, two for each joint with limits, and rows."""
    limits = [tree.beyond_limits[tree.limited].reshape(-1), rows.beyond_limits[rows.limits]]
    return np.concatenate([is_held, *limits]).astype(np.int32)


def _rotating_roots(tree: KinematicTree) -> list[int]:
    """Return the roots of trees with joints that rotate."""
    return sorted(set(tree.root[tree.kind != JOINT_KINDS["prismatic"].code].tolist()))


def _pair_friction(pairs: np.recarray) -> np.ndarray:
    """Return friction set for the pairs themselves, (pairs,); NaN where that of the shapes is mixed."""
    return np.where(pairs.frictionless, 0.0, pairs.friction)


def _pair_rotational_friction(pairs: np.recarray) -> np.ndarray:
    """Return rotational friction set for the pairs themselves, (pairs, 2); NaN where that of the shapes is mixed."""
    return np.where(pairs.has_rotational_friction[:, None], pairs.rotational_friction, 0.0)


def _pair_arrays(features: FeaturePairs, margin: np.ndarray) -> dict[str, np.ndarray]:
    """Kinds, features, margins and groups of the pairs, by the names of the kernels' `ContactModel`."""
    kinds, group_kind = np.unique(features.kind[features.start[:-1]], return_inverse=True)
    broad_phase = np.array([broad_phase_kind(kind) for kind in kinds.tolist()], np.int32)
    return {
        "pairs.kind": features.kind,
        "pairs.feature": features.feature,
        "pairs.margin": margin,
        "pairs.group": features.group.astype(np.int32),
        "groups.start": features.start.astype(np.int32),
        "groups.kind": broad_phase[group_kind.reshape(-1)],
    }


def _concatenate(first: Tensor, second: Tensor) -> Tensor:
    """Concatenate along the last axis, repeating values that all worlds share where the others differ by world."""
    worlds = torch.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    return torch.cat([first.expand(*worlds, -1), second.expand(*worlds, -1)], -1)


def _orthonormalize(axes: Tensor) -> Tensor:
    """Return the rotation with the given third axis, and with the part of the first that is perpendicular to it."""
    z = axes[..., 2] / axes[..., 2].norm(dim=-1, keepdim=True)
    x = axes[..., 0] - (axes[..., 0] * z).sum(-1, keepdim=True) * z
    x = x / x.norm(dim=-1, keepdim=True)
    return torch.stack([x, torch.linalg.cross(z, x), z], -1)
