"""Properties of a world: one dataclass of tensors, packed into one vector a world for the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties


@register_properties
@dataclass(frozen=True)
class WorldProperties(Properties):
    """Masses, sizes, friction and further properties of a planar world."""

    mass: Tensor = leaf("moving", unit="kg", range="positive", meaning="mass of moving bodies")
    gyration: Tensor = leaf(
        "moving", unit="m", range="positive", meaning="radius of gyration; inertia is mass · gyration²"
    )
    velocity_decay: Tensor = leaf(
        "moving", unit="1/s", range="not negative", meaning="rate at which the velocities of moving bodies fade"
    )
    sliding_deceleration: Tensor = leaf(
        "moving",
        unit="m/s²",
        range="not negative",
        meaning="Coulomb deceleration of a body that slides on the plane itself, until it rests",
    )
    static_pose: Tensor = leaf("static", 3, unit="m, m, rad", meaning="x, y and angle of static bodies")
    radius: Tensor = leaf("bodies", unit="m", range="not negative", meaning="radius of circles; zero for polygons")
    restitution: Tensor = leaf(
        "bodies", range="unit interval", meaning="coefficient of restitution; a pair's is the mean of the two"
    )
    friction: Tensor = leaf(
        "bodies", range="not negative", meaning="coefficient of friction; a pair's is the mean of the two"
    )
    gravity: Tensor = leaf(2, unit="m/s²", meaning="acceleration along x and y")
    anchors: Tensor = leaf("joints", 2, 2, unit="m", meaning="anchors of each joint in the frames of its two bodies")
    joint_angle: Tensor = leaf(
        "joints", unit="rad", meaning="angle of the first body less the second's that joints hold, or springs return to"
    )
    joint_stiffness: Tensor = leaf(
        "joints", unit="N m/rad", range="not negative", meaning="stiffness of the joint's spring"
    )
    joint_damping: Tensor = leaf("joints", unit="N m s/rad", range="not negative", meaning="damping of the joint")
    joint_limits: Tensor = leaf(
        "joints", 2, unit="rad", range="not nan", meaning="lower and upper bound relative to `joint_angle`"
    )
    spring_anchors: Tensor = leaf(
        "springs", 2, 2, unit="m", meaning="ends of each spring in the frames of its two bodies"
    )
    spring_stiffness: Tensor = leaf("springs", unit="N/m", range="not negative", meaning="force per length")
    spring_length: Tensor = leaf("springs", unit="m", range="not negative", meaning="rest length of springs")
    spring_damping: Tensor = leaf("springs", unit="N s/m", range="not negative", meaning="force per speed")


def pack(
    properties: WorldProperties,
    defaults: WorldProperties,
    batch: int,
    order: Mapping[str, list[int]],
    packed: Float[Tensor, "1 numbers"] | None = None,
) -> Float[Tensor, "batch numbers"]:
    """Return all leaves as one float64 vector a world, in the order of the fields.

    Rows of bodies, joints and springs are in the kernels' `order`. Leaves that are those of `defaults`, the
    world's own properties, are copied from `packed`, their vector, if it is given.
    """
    parts, copied_end, end = [], 0, 0
    for name, value in properties.items():
        default = getattr(defaults, name)
        start, end = end, end + default.numel()
        if packed is not None and value is default:
            continue
        if packed is not None and copied_end < start:
            parts.append(packed[:, copied_end:start].expand(batch, -1))
        copied_end = end
        row_dim = value.dim() - default.dim()
        indices = order.get(str(properties.leaves()[name].shape[0]))
        if indices is not None:
            value = value.index_select(row_dim, torch.tensor(indices, dtype=torch.long, device=value.device))
        flat = value.reshape(batch if row_dim else 1, -1)
        parts.append(flat.to(torch.float64).expand(batch, -1))
    if packed is not None and copied_end < end:
        parts.append(packed[:, copied_end:].expand(batch, -1))
    return torch.cat(parts, 1)


def offsets(properties: WorldProperties) -> dict[str, int]:
    """Return the first entry of each leaf in the packed vector."""
    start, first = 0, {}
    for name, value in properties.items():
        first[name] = start
        start += value.numel()
    return first
