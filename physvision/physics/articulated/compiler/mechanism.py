"""Compilation of a mechanism to all that its engine holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from physvision.core import InputError, Placed
from physvision.physics.articulated.compiler.constraint_rows import compile_loop_constraints, compile_scalar_rows
from physvision.physics.articulated.compiler.contact_pairs import ContactPairs
from physvision.physics.articulated.compiler.properties import compile_properties, per_velocity
from physvision.physics.articulated.compiler.tree import compile_tree
from physvision.physics.articulated.contact import ContactSettings, ShapePair, ShapePairs, default_shape_pairs
from physvision.physics.articulated.model.actuators import couple_actuator_states
from physvision.physics.articulated.model.bodies import Body, body_shapes, sort_bodies
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.model.mechanism import Mechanism, inertia_boxes, loop_joint_markers
from physvision.physics.articulated.model.properties import TreeProperties


@dataclass(frozen=True)
class CompiledMechanism:
    """A mechanism as an engine holds it.

    Attributes:
        tree: Kinematic tree of the bodies and of the rotors of actuator states.
        geometry: All shapes; the markers of loop joints are the last.
        pairs: Contact problem; None if there is nothing to solve.
        properties: Values of all properties, float64.
        friction_velocities: Velocities whose dry friction is a constraint row.
        row_names: Names of the rows of the properties' dimensions.
        control_names: Names of the controls.
    """

    tree: KinematicTree
    geometry: tuple[Placed, ...]
    pairs: ContactPairs | None
    properties: TreeProperties
    friction_velocities: np.ndarray
    row_names: dict[str, Sequence[str]]
    control_names: tuple[str, ...]

    def insert_friction_columns(self, gain: np.ndarray) -> np.ndarray:
        """Insert columns of zeros for rows of dry friction, on which no control acts, behind those of velocities."""
        count = len(self.friction_velocities)
        return np.insert(gain, [self.tree.nv] * count, 0.0, axis=1) if count else gain


def compile_mechanism(
    mechanism: Mechanism, contact: ContactSettings, shape_pairs: Sequence[ShapePair] | None
) -> CompiledMechanism:
    """Compile a mechanism for an engine.

    Args:
        mechanism: Description of bodies and of what acts on them.
        contact: Contact method, friction and restitution.
        shape_pairs: Pairs of shapes that may collide, from a model file, by rows of the geometry: static shapes, then
            those of bodies; None for all pairs of shapes that no joint connects.
    """
    states = tuple(mechanism.actuator_states)
    bodies = [*sort_bodies(mechanism.bodies), *(state.rotor for state in states)]
    tree, drag_size = _compile_bodies(mechanism, bodies)
    shapes = (*mechanism.static_shapes, *body_shapes(bodies))
    geometry = (*shapes, *loop_joint_markers(tree, mechanism.loop_joints))
    pairs, friction_velocities = None, np.zeros(0, int)
    if contact.method is None:
        _check_without_contact(tree, mechanism)
    else:
        rotational = bool(np.any(contact.rotational_friction))
        # The friction of pairs from a model file is mixed in MuJoCo's way.
        mixing = "mean" if shape_pairs is None else "maximum"
        if shape_pairs is None:
            shape_pairs = default_shape_pairs(tree, shapes, contact.exclude, rotational)
        if contact.by_events or contact.compliant_law is not None:
            losses = [joint.friction_loss for body in bodies for joint in body.joints]
            friction_velocities = np.flatnonzero(per_velocity(tree, losses))
        table, loop_joints = ShapePairs.of(shape_pairs), mechanism.loop_joints
        needs_rows = mechanism.transmissions or loop_joints or bool(table.rows.has_rotational_friction.any())
        if needs_rows and contact.law is not None and contact.compliant_law is None:
            raise InputError("transmissions, loop joints and rotational friction need contact='event' or 'compliant'")
        rows = compile_scalar_rows(tree, friction_velocities, mechanism.transmissions)
        if table or tree.limited.any() or rows.count or loop_joints:
            loops = compile_loop_constraints(loop_joints, len(shapes))
            pairs = ContactPairs(tree, geometry, table, mixing, rows, loops, contact)
    if pairs is None:
        friction_velocities = np.zeros(0, int)
    if states:
        tree = couple_actuator_states(tree, states, len(friction_velocities))
    return CompiledMechanism(
        tree=tree,
        geometry=geometry,
        pairs=pairs,
        properties=compile_properties(mechanism, bodies, tree, geometry, contact, drag_size),
        friction_velocities=friction_velocities,
        row_names=_row_names(tree, geometry, mechanism),
        control_names=_control_names(tree, mechanism),
    )


def _compile_bodies(mechanism: Mechanism, bodies: Sequence[Body]) -> tuple[KinematicTree, np.ndarray]:
    """Kinematic tree, and the sizes of the boxes for fluid drag; the rotors of actuator states have none."""
    tree, drag_size = compile_tree(bodies), np.zeros((len(bodies), 3))
    if mechanism.fluid is not None:
        rotors = len(mechanism.actuator_states)
        axes = mechanism.drag_axes
        if axes is not None:
            axes = np.concatenate([axes, *[np.eye(3)[None]] * rotors])
        drag_size, axes = inertia_boxes(bodies, axes)
        drag_size[len(bodies) - rotors :] = 0.0
        tree = replace(tree, drag_axes=axes)
    return tree, drag_size


def _check_without_contact(tree: KinematicTree, mechanism: Mechanism) -> None:
    """Raise for parts of the contact problem."""
    if tree.limited.any():
        raise InputError("joint limits are part of the contact problem: make the engine with contact='event'")
    if mechanism.transmissions or mechanism.loop_joints:
        raise InputError(
            "transmissions and loop joints are part of the contact problem: make the engine with contact='event'"
        )


def _row_names(tree: KinematicTree, geometry: Sequence[Placed], mechanism: Mechanism) -> dict[str, Sequence[str]]:
    """Names of the rows of the properties' dimensions, for messages."""

    def repeat(first: np.ndarray) -> tuple[str, ...]:
        return tuple(np.repeat(tree.joint_names, np.diff(first)).tolist())

    return {
        "bodies": tree.body_names,
        "joints": tree.joint_names,
        "nq": repeat(tree.first_position),
        "nv": repeat(tree.first_velocity),
        "shapes": tuple(placed.name or f"shape {row}" for row, placed in enumerate(geometry)),
        "transmissions": tuple(transmission.name for transmission in mechanism.transmissions),
    }


def _control_names(tree: KinematicTree, mechanism: Mechanism) -> tuple[str, ...]:
    if mechanism.actuators is not None:
        return mechanism.actuators.names
    transmissions = enumerate(mechanism.transmissions)
    names = (transmission.name or f"transmission {k}" for k, transmission in transmissions)
    return (*_force_names(tree), *names)


def _force_names(tree: KinematicTree) -> list[str]:
    """Names of the generalized forces: those of the joints, with the axis where a joint has several."""
    axes = {1: [""], 3: [" x", " y", " z"], 6: [f" {kind} {axis}" for kind in ("force", "torque") for axis in "xyz"]}
    names = [
        f"{joint}{axis}"
        for joint, count in zip(tree.joint_names, np.diff(tree.first_velocity).tolist(), strict=True)
        for axis in axes[count]
    ]
    return names if len(set(names)) == len(names) else [f"force {k}" for k in range(tree.nv)]
