"""The numbers of a tree that a call may override and that gradients reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Placed, ShapeError
from physvision.physics.articulated.model.fluid import Medium
from physvision.physics.articulated.model.kinematic_tree import Body, Model
from physvision.physics.articulated.model.transmissions import Transmission
from physvision.physics.properties import Properties, leaf, register_properties


@register_properties
@dataclass(frozen=True)
class TreeProperties(Properties):
    """Masses, lengths, friction … of a tree."""

    mass: Tensor = leaf("bodies", unit="kg", range="not negative", meaning="mass")
    center_of_mass: Tensor = leaf("bodies", 3, unit="m", meaning="centre of mass, in the body's frame")
    inertia: Tensor = leaf(
        "bodies", 3, 3, unit="kg m²", meaning="inertia about the centre of mass, in the body's axes, positive definite"
    )
    position: Tensor = leaf("bodies", 3, unit="m", meaning="of the body's frame in its parent's")
    orientation: Tensor = leaf(
        "bodies", 4, meaning="of the body's frame in its parent's, quaternion (w, x, y, z), normalised on entry"
    )
    joint_stiffness: Tensor = leaf(
        "joints", unit="N m/rad or N/m", range="not negative", meaning="of the joint's spring"
    )
    joint_damping: Tensor = leaf(
        "nv", unit="N m s/rad or N s/m", range="not negative", meaning="drag along an axis of a joint"
    )
    friction_loss: Tensor = leaf(
        "nv", unit="N m or N", range="not negative", meaning="Coulomb friction along an axis of a joint"
    )
    armature: Tensor = leaf("nv", unit="kg m² or kg", range="not negative", meaning="inertia of the drive")
    spring_reference: Tensor = leaf("nq", unit="rad or m", meaning="positions at which springs are at rest")
    joint_limits: Tensor = leaf(
        "joints", 2, unit="rad or m", range="not nan", meaning="lowest and highest position; infinite without limits"
    )
    transmission_stiffness: Tensor = leaf(
        "transmissions", unit="N m/rad or N/m", range="not negative", meaning="of a servo along a transmission"
    )
    transmission_damping: Tensor = leaf(
        "transmissions", unit="N m s/rad or N s/m", range="not negative", meaning="of a servo along a transmission"
    )
    transmission_rest: Tensor = leaf(
        "transmissions", unit="rad or m", meaning="combined position at which a spring is at rest, or a tie holds"
    )
    transmission_force: Tensor = leaf(
        "transmissions", 2, unit="N m or N", range="not nan", meaning="least and greatest; infinite without limits"
    )
    transmission_speed: Tensor = leaf(
        "transmissions", unit="rad/s or m/s", range="not nan", meaning="that a servo asks for at most; infinite without"
    )
    medium: Tensor = leaf(2, unit="kg/m³ and Pa s", range="not negative", meaning="density and viscosity of what drags")
    drag_size: Tensor = leaf("bodies", 3, unit="m", range="not negative", meaning="of the box that a medium drags")
    gravity: Tensor = leaf(3, unit="m/s²", meaning="in the world's axes")
    friction: Tensor = leaf("shapes", range="not negative", meaning="coefficient; a pair's is the mean of the two")
    turning_friction: Tensor = leaf(
        "shapes", 2, unit="m", range="not negative", meaning="against spinning and rolling; mixed as friction is"
    )
    restitution: Tensor = leaf("shapes", range="share", meaning="a pair's is the mean of the two")
    shape_pose: Tensor = leaf("shapes", 4, 4, unit="m", meaning="frame of each drawn shape in its body's frame")
    shape_size: Tensor = leaf("shapes", 3, unit="m", range="not negative", meaning="sizes of each drawn shape")


def described(
    model: Model,
    bodies: Sequence[Body],
    gravity: Sequence[float],
    geometry: Sequence[Placed],
    friction: float | Sequence[float],
    restitution: float,
    turning_friction: Sequence[float] | np.ndarray,
    transmissions: Sequence[Transmission],
    medium: Medium,
    drag_size: np.ndarray,
) -> TreeProperties:
    """The leaves as the description of the bodies has them; kinds of friction are given once, or for each shape."""
    joints = [joint for body in bodies for joint in body.joints]
    counts = np.diff(model.first_velocity)

    def along(name: str) -> np.ndarray:
        return np.repeat([float(getattr(joint, name)) for joint in joints], counts)

    references = model.start.copy()
    for link, joint in enumerate(joints):
        first, end = model.first_position[link], model.first_position[link + 1]
        if joint.spring_reference is not None:
            references[first:end] = np.asarray(joint.spring_reference, float).reshape(-1)
        elif joint.kind in ("revolute", "prismatic"):
            references[first:end] = joint.zero
    values = {
        "mass": [body.mass for body in bodies],
        "center_of_mass": np.array([_vector(body, "center_of_mass", 3) for body in bodies]).reshape(-1, 3),
        "inertia": np.array([_inertia(body) for body in bodies]).reshape(-1, 3, 3),
        "position": np.array([_vector(body, "position", 3) for body in bodies]).reshape(-1, 3),
        "orientation": np.array([_vector(body, "orientation", 4) for body in bodies]).reshape(-1, 4),
        "joint_stiffness": [float(joint.stiffness) for joint in joints],
        "joint_damping": along("damping"),
        "friction_loss": along("friction_loss"),
        "armature": along("armature"),
        "spring_reference": references,
        "joint_limits": np.array(
            [(-np.inf, np.inf) if joint.limits is None else joint.limits for joint in joints], float
        ).reshape(-1, 2),
        "transmission_stiffness": [float(each.stiffness) for each in transmissions],
        "transmission_damping": [float(each.damping) for each in transmissions],
        "transmission_rest": [float(each.rest) for each in transmissions],
        "transmission_force": np.array([each.limits for each in transmissions], float).reshape(-1, 2),
        "transmission_speed": [float(each.speed) for each in transmissions],
        "medium": (medium.density, medium.viscosity),
        "drag_size": drag_size,
        "gravity": gravity,
        "friction": np.broadcast_to(np.asarray(friction, float), (len(geometry),)).copy(),
        "turning_friction": np.broadcast_to(np.asarray(turning_friction, float), (len(geometry), 2)).copy(),
        "restitution": np.full(len(geometry), float(restitution)),
        "shape_pose": np.array([placed.pose for placed in geometry], float).reshape(-1, 4, 4),
        "shape_size": np.array([placed.shape.sizes for placed in geometry], float).reshape(-1, 3),
    }
    if np.shape(gravity) != (3,):
        raise ShapeError(f"gravity: expected three numbers, got {gravity!r}")
    return TreeProperties(
        **{name: torch.as_tensor(np.asarray(value), dtype=torch.float64) for name, value in values.items()}
    )


def least_minor(inertia: Float[Tensor, "*batch bodies 3 3"], fixed: np.ndarray) -> Float[Tensor, "*batch bodies"]:
    """The least leading minor of each matrix, made symmetric: above zero where all eigenvalues are.

    Bodies that are `fixed` to others may have eigenvalues of zero: of these it is the least of all principal minors,
    and counts with what rounding takes.
    """
    xx, xy, xz, _, yy, yz, _, _, zz = ((inertia + inertia.mT) / 2).double().flatten(-2).unbind(-1)
    plane = xx * yy - xy * xy
    whole = zz * plane - yz * (xx * yz - xy * xz) + xz * (xy * yz - yy * xz)
    least = torch.minimum(torch.minimum(xx, plane), whole)
    if not fixed.any():
        return least
    size = inertia.abs().amax((-2, -1)).double()
    slack = 32 * torch.finfo(inertia.dtype).eps
    orders = {1: (xx, yy, zz), 2: (plane, xx * zz - xz * xz, yy * zz - yz * yz), 3: (whole,)}
    loose = [minor + slack * size**order for order, minors in orders.items() for minor in minors]
    loose = torch.stack(loose).amin(0) + torch.finfo(torch.float64).tiny
    return torch.where(torch.as_tensor(fixed, device=inertia.device), loose, least)


def _vector(body: Body, name: str, size: int) -> np.ndarray:
    value = np.asarray(getattr(body, name), float)
    if value.shape != (size,):
        raise ShapeError(f"body {body.name!r}: {name} needs {size} numbers, got shape {value.shape}")
    return value


def _inertia(body: Body) -> np.ndarray:
    value = np.asarray(body.inertia, float)
    if value.shape == (3,):
        value = np.diag(value)
    if value.shape != (3, 3):
        raise ShapeError(f"body {body.name!r}: inertia needs 3 or 3×3 numbers, got shape {value.shape}")
    return value
