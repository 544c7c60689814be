"""The properties of a world: one dataclass of tensors, packed into one vector a world for the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.export import register_dataclass

from physvision.core import InputError, ShapeError
from physvision.core.checks import check_tensor


@dataclass(frozen=True)
class Properties:
    """Every leaf may carry a batch dimension in front: then each world has its own.

    Attributes:
        mass: of moving bodies, kilograms, (moving).
        gyration: radius of gyration of moving bodies; inertia is mass · gyration², (moving).
        damping: rate at which the velocities of moving bodies fade, 1/s, (moving).
        radius: of circles; zero for polygons, (bodies).
        restitution: in [0, 1], (bodies).
        friction: coefficient, at least zero, (bodies).
        gravity: acceleration, (2).
        anchors: where each joint sits in the frames of its two bodies, (joints, 2, 2).
        joint_angle: angle of the first body less the second's that joints hold, or return to, radians, (joints).
        joint_stiffness: torque a radian, (joints).
        joint_damping: torque a radian a second, (joints).
        joint_limits: lower and upper bound relative to `joint_angle`, radians, (joints, 2).
        spring_anchors: where each spring ends in the frames of its two bodies, (springs, 2, 2).
        spring_stiffness: force a length, (springs).
        spring_length: at which springs rest, (springs).
        spring_damping: force a speed, (springs).
    """

    mass: Float[Tensor, "... moving"]
    gyration: Float[Tensor, "... moving"]
    damping: Float[Tensor, "... moving"]
    radius: Float[Tensor, "... bodies"]
    restitution: Float[Tensor, "... bodies"]
    friction: Float[Tensor, "... bodies"]
    gravity: Float[Tensor, "... 2"]
    anchors: Float[Tensor, "... joints 2 2"]
    joint_angle: Float[Tensor, "... joints"]
    joint_stiffness: Float[Tensor, "... joints"]
    joint_damping: Float[Tensor, "... joints"]
    joint_limits: Float[Tensor, "... joints 2"]
    spring_anchors: Float[Tensor, "... springs 2 2"]
    spring_stiffness: Float[Tensor, "... springs"]
    spring_length: Float[Tensor, "... springs"]
    spring_damping: Float[Tensor, "... springs"]


register_dataclass(Properties)

LEAVES = tuple(field.name for field in fields(Properties))
_POSITIVE = ("mass", "gyration")
_NOT_NEGATIVE = ("damping", "radius", "friction", "joint_stiffness", "joint_damping", "spring_stiffness")
_NOT_NEGATIVE += ("spring_length", "spring_damping")


def _culprit(name: str, bad: Tensor, base: Tensor, names: Mapping[str, list[str]]) -> str:
    """The name of the first body or joint whose value is bad."""
    at = torch.nonzero(bad)[0].tolist()
    own = at[bad.dim() - base.dim() :]
    listed = names.get(name)
    return f" of {listed[own[0]]!r}" if listed else ""


def check(name: str, value: Tensor, base: Tensor, names: Mapping[str, list[str]]) -> None:
    """Raise where a leaf has the wrong shape or values that make no sense; limits may be infinite."""
    if value.shape != base.shape and value.shape[1:] != base.shape:
        raise ShapeError(
            f"properties.{name}: expected shape {tuple(base.shape)}, or (batch, …) before it, got {tuple(value.shape)}"
        )
    with torch.no_grad():
        bad = torch.isnan(value) if name == "joint_limits" else ~torch.isfinite(value)
        wanted = "finite numbers"
        if name in _POSITIVE:
            bad, wanted = bad | (value <= 0), "numbers above zero"
        elif name in _NOT_NEGATIVE:
            bad, wanted = bad | (value < 0), "numbers of at least zero"
        elif name == "restitution":
            bad, wanted = bad | (value < 0) | (value > 1), "numbers in [0, 1]"
        if bool(bad.any()):
            found = float(value[bad][0])
            raise InputError(f"properties.{name}{_culprit(name, bad, base, names)}: expected {wanted}, got {found:g}")


def merge(
    own: Properties, given: Properties | Mapping[str, Tensor] | None, names: Mapping[str, list[str]]
) -> Properties:
    """The world's own properties with the given ones in their place, checked."""
    if given is None:
        return own
    if isinstance(given, Properties):
        given = {name: getattr(given, name) for name in LEAVES}
    unknown = sorted(set(given) - set(LEAVES))
    if unknown:
        raise InputError(f"properties: no leaf {unknown[0]!r}; there are {', '.join(LEAVES)}")
    for name, value in given.items():
        check(name, check_tensor(f"properties.{name}", value), getattr(own, name), names)
    return replace(own, **given)


def pack(properties: Properties, own: Properties, batch: int) -> Float[Tensor, "batch numbers"]:
    """All leaves as one float64 vector a world, in the order of the fields; shared leaves are shared."""
    parts = []
    for name in LEAVES:
        value, base = getattr(properties, name), getattr(own, name)
        shared = value.dim() == base.dim()
        if not shared and value.shape[0] != batch:
            raise ShapeError(f"properties.{name}: expected a batch of {batch}, got {value.shape[0]}")
        flat = value.reshape(1, -1) if shared else value.reshape(batch, -1)
        parts.append(flat.to(torch.float64).expand(batch, -1))
    return torch.cat(parts, 1)


def offsets(own: Properties) -> dict[str, int]:
    """Where each leaf starts in the packed vector."""
    start, found = 0, {}
    for name in LEAVES:
        found[name] = start
        start += getattr(own, name).numel()
    return found
