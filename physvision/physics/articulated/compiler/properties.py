"""Properties of a mechanism from its description, and the constraints that their values must satisfy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Placed, ShapeError
from physvision.physics.articulated.contact import ContactSettings
from physvision.physics.articulated.model.bodies import Body
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.model.mechanism import Fluid, Mechanism
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.properties import Constraint


def compile_properties(
    mechanism: Mechanism,
    bodies: Sequence[Body],
    tree: KinematicTree,
    geometry: Sequence[Placed],
    contact: ContactSettings,
    drag_size: np.ndarray,
) -> TreeProperties:
    """Collect the values of all leaves, float64.

    Args:
        mechanism: Description of the mechanism.
        bodies: Its bodies in the order of the tree, rotors of actuator states included.
        tree: Kinematic tree of the bodies.
        geometry: All shapes, with those of loop joints last.
        contact: Friction and restitution, one number for all shapes or one for each.
        drag_size: Sizes of the boxes for fluid drag, (bodies, 3), m.
    """
    if np.shape(mechanism.gravity) != (3,):
        raise ShapeError(f"gravity: expected three numbers, got {mechanism.gravity!r}")
    fluid, transmissions, shapes = mechanism.fluid or Fluid(), mechanism.transmissions, len(geometry)
    values = {
        **_body_values(bodies),
        **_joint_values(bodies, tree),
        "transmission_stiffness": [float(transmission.stiffness) for transmission in transmissions],
        "transmission_damping": [float(transmission.damping) for transmission in transmissions],
        "transmission_rest_position": [float(transmission.rest_position) for transmission in transmissions],
        "transmission_force_range": np.array(
            [transmission.force_range for transmission in transmissions], float
        ).reshape(-1, 2),
        "transmission_max_speed": [float(transmission.max_speed) for transmission in transmissions],
        "fluid": (fluid.density, fluid.viscosity),
        "drag_size": drag_size,
        "gravity": mechanism.gravity,
        "friction": _per_shape(contact.friction, shapes),
        "rotational_friction": _per_shape(contact.rotational_friction, shapes, 2),
        "restitution": _per_shape(contact.restitution, shapes),
        "shape_pose": np.array([placed.pose for placed in geometry], float).reshape(-1, 4, 4),
        "shape_size": np.array([placed.shape.sizes for placed in geometry], float).reshape(-1, 3),
    }
    return TreeProperties(
        **{name: torch.as_tensor(np.asarray(value), dtype=torch.float64) for name, value in values.items()}
    )


def _body_values(bodies: Sequence[Body]) -> dict[str, np.ndarray]:
    return {
        "mass": np.array([body.mass for body in bodies], float),
        "center_of_mass": np.array([_vector(body, "center_of_mass", 3) for body in bodies]).reshape(-1, 3),
        "inertia": np.array([_inertia(body) for body in bodies]).reshape(-1, 3, 3),
        "position": np.array([_vector(body, "position", 3) for body in bodies]).reshape(-1, 3),
        "orientation": np.array([_vector(body, "orientation", 4) for body in bodies]).reshape(-1, 4),
    }


def _joint_values(bodies: Sequence[Body], tree: KinematicTree) -> dict[str, np.ndarray]:
    joints = [joint for body in bodies for joint in body.joints]
    references = tree.initial_q.copy()
    for link, joint in enumerate(joints):
        start, end = tree.first_position[link], tree.first_position[link + 1]
        if joint.spring_reference is not None:
            references[start:end] = np.asarray(joint.spring_reference, float).reshape(-1)
        elif joint.kind in ("revolute", "prismatic"):
            references[start:end] = joint.reference_position
    limits = [(-np.inf, np.inf) if joint.limits is None else joint.limits for joint in joints]
    return {
        "joint_stiffness": np.array([joint.stiffness for joint in joints], float),
        "joint_damping": per_velocity(tree, [joint.damping for joint in joints]),
        "friction_loss": per_velocity(tree, [joint.friction_loss for joint in joints]),
        "armature": per_velocity(tree, [joint.armature for joint in joints]),
        "spring_reference": references,
        "joint_limits": np.array(limits, float).reshape(-1, 2),
    }


def per_velocity(tree: KinematicTree, values: Sequence[float]) -> np.ndarray:
    """Repeat a number of each joint for each of its velocities, (nv,)."""
    return np.repeat(np.asarray(values, float), np.diff(tree.first_velocity))


def _per_shape(value: float | Sequence[float] | np.ndarray, shapes: int, *size: int) -> np.ndarray:
    """Numbers of all shapes: one set for all, or one for each, padded by zeros for the markers of loop joints."""
    numbers = np.asarray(value, float)
    if numbers.ndim > len(size):
        return np.concatenate([numbers, np.zeros((shapes - len(numbers), *size))])
    return np.broadcast_to(numbers, (shapes, *size)).copy()


def _vector(body: Body, name: str, size: int) -> np.ndarray:
    value = np.asarray(getattr(body, name), float)
    if value.shape != (size,):
        raise ShapeError(f"body {body.name!r}: {name}: expected {size} numbers, got shape {value.shape}")
    return value


def _inertia(body: Body) -> np.ndarray:
    value = np.asarray(body.inertia, float)
    if value.shape == (3,):
        value = np.diag(value)
    if value.shape != (3, 3):
        raise ShapeError(f"body {body.name!r}: inertia: expected 3 or 3×3 numbers, got shape {value.shape}")
    return value


def property_constraints(
    tree: KinematicTree, name: str, value: Tensor, contact: ContactSettings, friction_velocities: np.ndarray
) -> list[Constraint]:
    """Constraints on the values of a leaf beyond its range.

    Args:
        tree: Kinematic tree of the engine.
        name: Name of the leaf.
        value: Values of the leaf.
        contact: Contact method of the engine.
        friction_velocities: Velocities whose dry friction is a constraint row.
    """
    compliant = contact.compliant_law is not None
    if name == "mass":
        moving = torch.as_tensor(~tree.fixed, device=value.device)
        return [Constraint(link_masses(tree, value).where(moving, 1.0), "positive", "numbers above zero")]
    if name == "inertia":
        expected = "a positive definite matrix, its principal minors above zero"
        return [Constraint(link_minors(tree, value), "positive", expected)]
    if name == "joint_limits":
        unlimited = torch.as_tensor(~tree.limited, device=value.device)
        allowed = value.isinf().all(-1) | ~unlimited
        return [
            Constraint((value[..., 1] - value[..., 0]).clamp(max=1.0), "positive", "the lower limit first"),
            Constraint(allowed.to(value.dtype), "positive", "infinite limits of joints that were made without limits"),
        ]
    if name == "friction_loss" and (contact.by_events or compliant):
        has_row = torch.zeros(tree.nv, dtype=torch.bool, device=value.device)
        has_row[friction_velocities] = True
        expected = "zero for joints made without: with contact dry friction is a constraint of its own"
        return [Constraint(((value == 0) | has_row).to(value.dtype), "positive", expected)]
    if name == "restitution" and compliant:
        return [Constraint((value == 0).to(value.dtype), "positive", "zero: compliant contact has no restitution")]
    if name == "fluid" and tree.drag_axes is None:
        return [Constraint((value == 0).to(value.dtype), "positive", "zero: the engine was made without a fluid")]
    if name == "transmission_force_range":
        expected = "the lower limit of the force first"
        return [Constraint((value[..., 1] - value[..., 0]).clamp(max=1.0), "not negative", expected)]
    if name == "transmission_max_speed":
        return [Constraint(value.clamp(max=1.0), "not negative", "speeds of at least zero, or infinite")]
    if name == "orientation":
        return [Constraint(value.square().sum(-1), "positive", "a quaternion other than zero")]
    return []


def link_masses(tree: KinematicTree, mass: Float[Tensor, "*batch bodies"]) -> Float[Tensor, "*batch bodies"]:
    """Mass of each body's link: of all bodies that the same joint moves, of which single ones may be massless."""
    shares_link = torch.as_tensor(tree.body_link[:, None] == tree.body_link, dtype=mass.dtype, device=mass.device)
    return mass @ shares_link


def link_minors(tree: KinematicTree, inertia: Float[Tensor, "*batch bodies 3 3"]) -> Float[Tensor, "*batch bodies"]:
    """Numbers above zero if and only if the inertia of every link is valid.

    A body that shares its link with others may have eigenvalues of zero if another one on the link has none.
    """
    link = tree.body_link
    is_single = np.array([(link == number).sum() == 1 for number in link], bool) & ~tree.fixed
    minors = smallest_minor(inertia, ~is_single)
    if is_single.all():
        return minors
    definite_minors = smallest_minor(inertia, np.zeros(len(link), bool))
    for body in np.flatnonzero(~is_single & ~tree.fixed):
        on_link = torch.as_tensor(link == link[body], device=inertia.device)
        others_valid = (minors[..., on_link] > 0).all(-1)
        largest_minor = definite_minors[..., on_link].amax(-1)
        minors[..., body] = torch.where(others_valid, largest_minor, minors[..., body])
    return minors


def smallest_minor(
    inertia: Float[Tensor, "*batch bodies 3 3"], shares_link: np.ndarray
) -> Float[Tensor, "*batch bodies"]:
    """Smallest leading principal minor of each symmetrized matrix, above zero if and only if all eigenvalues are.

    Bodies that share a link with others may have eigenvalues of zero: theirs is the smallest of all principal minors,
    with an allowance for rounding.

    Args:
        inertia: Inertias of the bodies, kg m².
        shares_link: Mask of the bodies that share a link with others.
    """
    xx, xy, xz, _, yy, yz, _, _, zz = ((inertia + inertia.mT) / 2).double().flatten(-2).unbind(-1)
    plane = xx * yy - xy * xy
    determinant = zz * plane - yz * (xx * yz - xy * xz) + xz * (xy * yz - yy * xz)
    smallest = torch.minimum(torch.minimum(xx, plane), determinant)
    if not shares_link.any():
        return smallest
    size = inertia.abs().amax((-2, -1)).double()
    allowance = 32 * torch.finfo(inertia.dtype).eps
    orders = {1: (xx, yy, zz), 2: (plane, xx * zz - xz * xz, yy * zz - yz * yz), 3: (determinant,)}
    semidefinite_minors = [minor + allowance * size**order for order, minors in orders.items() for minor in minors]
    semidefinite_minors = torch.stack(semidefinite_minors).amin(0) + torch.finfo(torch.float64).tiny
    return torch.where(torch.as_tensor(shares_link, device=inertia.device), semidefinite_minors, smallest)
