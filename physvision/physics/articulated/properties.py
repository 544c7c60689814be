"""The numbers of a tree that a call may override and that gradients reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.export import register_dataclass

from physvision.core import DeviceError, DtypeError, InputError, ModelError, ShapeError
from physvision.physics.articulated.model import Body, Model


@dataclass(frozen=True)
class Properties:
    """Masses, lengths, friction … of a tree; each leaf may have one more dimension in front, the world's.

    Attributes:
        mass: kg.
        center_of_mass: in the body's frame, m.
        inertia: about the centre of mass, in the body's axes, kg m².
        position: of the body's frame in its parent's, m.
        orientation: of the body's frame in its parent's, quaternion (w, x, y, z), normalised on entry.
        damping: N m s/rad or N s/m.
        armature: inertia of the drive, kg m² or kg.
        friction: Coulomb friction, N m or N.
        stiffness: of the springs, N m/rad or N/m.
        spring_reference: positions at which the springs are at rest.
        gravity: m/s², in the world's axes.
    """

    mass: Float[Tensor, "... bodies"]
    center_of_mass: Float[Tensor, "... bodies 3"]
    inertia: Float[Tensor, "... bodies 3 3"]
    position: Float[Tensor, "... bodies 3"]
    orientation: Float[Tensor, "... bodies 4"]
    damping: Float[Tensor, "... nv"]
    armature: Float[Tensor, "... nv"]
    friction: Float[Tensor, "... nv"]
    stiffness: Float[Tensor, "... joints"]
    spring_reference: Float[Tensor, "... nq"]
    gravity: Float[Tensor, "... 3"]


register_dataclass(Properties)

LEAVES = tuple(field.name for field in fields(Properties))
_NEVER_NEGATIVE = ("damping", "armature", "friction", "stiffness")


def leaf_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """The shape of each leaf, without the world's dimension."""
    bodies, nv = model.bodies, model.nv
    return {
        "mass": (bodies,),
        "center_of_mass": (bodies, 3),
        "inertia": (bodies, 3, 3),
        "position": (bodies, 3),
        "orientation": (bodies, 4),
        "damping": (nv,),
        "armature": (nv,),
        "friction": (nv,),
        "stiffness": (model.links,),
        "spring_reference": (model.nq,),
        "gravity": (3,),
    }


def described_leaves(model: Model, bodies: Sequence[Body], gravity: Sequence[float]) -> dict[str, Any]:
    """The leaves as the description of the bodies has them."""
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
        "center_of_mass": [_vector(body, "center_of_mass", 3) for body in bodies],
        "inertia": [_inertia(body) for body in bodies],
        "position": [_vector(body, "position", 3) for body in bodies],
        "orientation": [_vector(body, "orientation", 4) for body in bodies],
        "damping": along("damping"),
        "armature": along("armature"),
        "friction": along("friction"),
        "stiffness": [float(joint.stiffness) for joint in joints],
        "spring_reference": references,
        "gravity": gravity,
    }
    if np.shape(gravity) != (3,):
        raise ShapeError(f"gravity: expected three numbers, got {gravity!r}")
    return values


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


def overridden(
    own: Properties, given: Properties | Mapping[str, Tensor], model: Model, massless: Tensor, batch: int, like: Tensor
) -> Properties:
    """`own` with what is given, checked, in the dtype of `like`."""
    leaves = given if isinstance(given, Mapping) else {name: getattr(given, name) for name in LEAVES}
    shapes = leaf_shapes(model)
    changed: dict[str, Tensor] = {}
    for name, value in leaves.items():
        if name not in shapes:
            raise InputError(f"properties: no leaf {name!r}; there are {', '.join(LEAVES)}")
        if not isinstance(value, Tensor) or not value.is_floating_point():
            kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise DtypeError(f"properties.{name}: expected a floating-point tensor, got {kind}")
        if value.device != like.device:
            raise DeviceError(f"properties.{name}: expected device {like.device} as state.q has, got {value.device}")
        base = shapes[name]
        if tuple(value.shape) not in (base, (batch, *base)):
            raise ShapeError(
                f"properties.{name}: expected shape {base}, or {(batch, *base)} for one a world, "
                f"got {tuple(value.shape)}"
            )
        if value is not getattr(own, name):
            check_leaf(name, value.detach(), model, massless)
        changed[name] = value
    return replace(own, **changed)


def check_leaf(name: str, value: Tensor, model: Model, massless: Tensor) -> None:
    """Raise for numbers that no body can have; values inside a functional transform cannot be looked at."""
    if is_functorch_wrapped_tensor(value):
        return
    where = _first(~torch.isfinite(value))
    if where:
        raise InputError(f"properties.{name}: expected finite values, got {value[where].item()} at {where}")
    if name == "mass":
        where = _first((value <= 0) & ~massless.to(value.device) | (value < 0))
        if where:
            raise ModelError(
                f"body {model.body_names[where[-1]]!r}: mass must be above zero, got {value[where].item():g}"
            )
    if name in _NEVER_NEGATIVE:
        where = _first(value < 0)
        if where:
            raise ModelError(f"properties.{name}: must not be negative, got {value[where].item():g} at {where}")
    if name == "orientation":
        where = _first(value.norm(dim=-1) < 1e-6)
        if where:
            raise ModelError(f"body {model.body_names[where[-1]]!r}: orientation is the zero quaternion")
    if name == "inertia":
        symmetric = (value + value.mT) / 2
        smallest = torch.linalg.eigvalsh(symmetric.double())[..., 0]
        where = _first((smallest <= 0) & ~massless.to(value.device) | (smallest < -1e-12))
        if where:
            raise ModelError(
                f"body {model.body_names[where[-1]]!r}: inertia must be positive definite, its smallest eigenvalue is "
                f"{smallest[where].item():g}"
            )


def _first(bad: Tensor) -> tuple[int, ...]:
    return tuple(torch.nonzero(bad)[0].tolist()) if bool(bad.any()) else ()
