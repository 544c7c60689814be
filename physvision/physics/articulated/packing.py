"""From properties, as people think of them, to the parameters of links, as the kernels read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.articulated.model import Model
from physvision.physics.articulated.properties import Properties


class Parameters(NamedTuple):
    """What `kernels.tree.Tree` holds of numbers, the world's dimension first."""

    mass: Float[Tensor, "worlds links"]
    moment: Float[Tensor, "worlds links 3"]
    center: Float[Tensor, "worlds links 3"]
    inertia: Float[Tensor, "worlds links 3 3"]
    rotation: Float[Tensor, "worlds links 3 3"]
    offset: Float[Tensor, "worlds links 3"]
    stiffness: Float[Tensor, "worlds links"]
    reference: Float[Tensor, "worlds nq"]
    damping: Float[Tensor, "worlds nv"]
    armature: Float[Tensor, "worlds nv"]
    friction: Float[Tensor, "worlds nv"]
    gravity: Float[Tensor, "worlds 3"]


class Packing:
    """The constant poses between bodies and links, in one dtype on one device."""

    def __init__(self, model: Model, dtype: torch.dtype, device: torch.device) -> None:
        def tensor(values: np.ndarray) -> Tensor:
            return torch.as_tensor(values, dtype=dtype, device=device)

        def index(values: np.ndarray) -> Tensor:
            return torch.as_tensor(values, dtype=torch.long, device=device)

        # A row behind the last stands for "none": no mass, no displacement, no spring.
        self.placed = index(np.where(model.placed_body < 0, model.bodies, model.placed_body))
        self.massive = index(np.where(model.massive_body < 0, model.bodies, model.massive_body))
        self.joint = index(np.where(model.joint < 0, len(model.joint_names), model.joint))
        self.frame_rotation = tensor(model.frame_rotation)
        self.frame_offset = tensor(model.frame_offset)
        self.zero_rotation = tensor(model.zero_rotation)
        self.zero_offset = tensor(model.zero_offset)
        carried = model.parent >= 0
        carrier = np.maximum(model.parent, 0)
        self.carrier_rotation = tensor(np.where(carried[:, None, None], model.frame_rotation[carrier], np.eye(3)))
        self.carrier_offset = tensor(np.where(carried[:, None], model.frame_offset[carrier], 0.0))
        self.identity = torch.eye(3, dtype=dtype, device=device)
        last = model.last_link
        self.last_link = index(last)
        self.body_rotation = self.frame_rotation[self.last_link].mT
        self.body_offset = -(self.body_rotation @ self.frame_offset[self.last_link].unsqueeze(-1)).squeeze(-1)
        self.quaternions = [int(start) for start in model.quaternions]

    def pack(self, properties: Properties, batch: int) -> Parameters:
        """The parameters of the links for `batch` worlds; what worlds share is expanded, not copied."""
        p = properties
        rotation = rotation_matrix(p.orientation)
        rotation = _with_row(rotation, self.identity)[..., self.placed, :, :]
        position = _with_row(p.position, p.position.new_zeros(3))[..., self.placed, :]
        back = self.carrier_rotation.mT
        placement = back @ rotation @ self.zero_rotation
        reach = position + _apply(rotation, self.zero_offset) - self.carrier_offset
        mass = _with_row(p.mass, p.mass.new_zeros(()))[..., self.massive]
        center = _with_row(p.center_of_mass, p.mass.new_zeros(3))[..., self.massive, :]
        # A link without mass has none of this either: its centre is put at its origin.
        empty = (self.massive == p.mass.shape[-1]).unsqueeze(-1)
        center = torch.where(empty, 0.0, _apply(self.frame_rotation.mT, center - self.frame_offset))
        inertia = _with_row((p.inertia + p.inertia.mT) / 2, torch.zeros_like(self.identity))[..., self.massive, :, :]
        inertia = self.frame_rotation.mT @ inertia @ self.frame_rotation
        squared = (center * center).sum(-1)[..., None, None] * self.identity
        spread = squared - center.unsqueeze(-1) * center.unsqueeze(-2)
        parameters = Parameters(
            mass=mass,
            moment=mass.unsqueeze(-1) * center,
            center=center,
            inertia=inertia + mass[..., None, None] * spread,
            rotation=placement.mT,
            offset=_apply(back, reach),
            stiffness=_with_row(p.stiffness, p.stiffness.new_zeros(()))[..., self.joint],
            reference=self.normalized(p.spring_reference),
            damping=p.damping,
            armature=p.armature,
            friction=p.friction,
            gravity=p.gravity,
        )
        return Parameters(
            *(
                _expanded(value, batch, base)
                for value, base in zip(parameters, (1, 2, 2, 3, 3, 2, 1, 1, 1, 1, 1, 1), strict=True)
            )
        )

    def normalized(self, q: Float[Tensor, "*worlds nq"]) -> Float[Tensor, "*worlds nq"]:
        """`q` with its quaternions of length one."""
        if not self.quaternions:
            return q
        pieces, done = [], 0
        for start in self.quaternions:
            quaternion = q[..., start : start + 4]
            pieces += [q[..., done:start], quaternion / quaternion.norm(dim=-1, keepdim=True)]
            done = start + 4
        return torch.cat([*pieces, q[..., done:]], -1)

    def body_poses(
        self, rotation: Float[Tensor, "batch links 3 3"], position: Float[Tensor, "batch links 3"]
    ) -> Float[Tensor, "batch bodies 4 4"]:
        """Poses of bodies from those of links."""
        carried = rotation[:, self.last_link]
        place = position[:, self.last_link] + _apply(carried, self.body_offset)
        top = torch.cat([carried @ self.body_rotation, place.unsqueeze(-1)], -1)
        bottom = top.new_tensor([0.0, 0.0, 0.0, 1.0]).expand(*top.shape[:2], 1, 4)
        return torch.cat([top, bottom], -2)

    def link_wrenches(self, wrenches: Float[Tensor, "batch steps bodies 6"]) -> Float[Tensor, "batch steps links 6"]:
        """Wrenches on bodies, each handed to the link that has the body's mass."""
        none = wrenches.new_zeros(*wrenches.shape[:2], 1, 6)
        return torch.cat([wrenches, none], 2)[:, :, self.massive]


def rotation_matrix(orientation: Float[Tensor, "*worlds 4"]) -> Float[Tensor, "*worlds 3 3"]:
    """The matrix of a quaternion (w, x, y, z) of any length but zero."""
    w, x, y, z = (orientation / orientation.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
    ]
    return torch.stack(rows, -2)


def _with_row(values: Tensor, row: Tensor) -> Tensor:
    """`values` with one more body, whose entry is `row`."""
    where = -1 - row.dim()
    shape = list(values.shape)
    shape[where] = 1
    return torch.cat([values, row.expand(shape)], where)


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _expanded(value: Tensor, batch: int, base: int) -> Tensor:
    if value.dim() == base:
        return value.contiguous().unsqueeze(0).expand(batch, *value.shape)
    return value.contiguous()
