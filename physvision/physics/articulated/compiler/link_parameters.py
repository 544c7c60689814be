"""From properties, as people think of them, to the parameters of links, as the kernels read them."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.kernels.layout import SHAPES, ArrayField
from physvision.physics.articulated.arrays import PARAMETERS
from physvision.physics.articulated.model.fluid import drag
from physvision.physics.articulated.model.kinematic_tree import Model
from physvision.physics.articulated.model.properties import TreeProperties

Parameters = dict[str, Tensor]  # by the names of `layout.PARAMETERS`, in their order, the world's dimension first


class Packing:
    """The constant poses between bodies and links, in one dtype on one device."""

    def __init__(self, model: Model, dtype: torch.dtype, device: torch.device) -> None:
        def tensor(values: np.ndarray) -> Tensor:
            return torch.as_tensor(values, dtype=dtype, device=device)

        def index(values: np.ndarray) -> Tensor:
            return torch.as_tensor(values, dtype=torch.long, device=device)

        bodies = model.bodies
        # A row behind the last body stands for the world, and for "no displacement" within a chain of links.
        self.placed = index(np.where(model.placed_body < 0, bodies, model.placed_body))
        carrier = np.where(model.placed_body < 0, bodies, model.body_parent[model.placed_body])
        self.carrier = index(np.where(carrier < 0, bodies, carrier))
        within = model.placed_body < 0
        before = np.maximum(model.parent, 0)
        # Within a chain the carrier is the link before, whose frame is constant in the body's.
        self.chain_rotation = tensor(np.where(within[:, None, None], model.frame_rotation[before], np.eye(3)))
        self.chain_offset = tensor(np.where(within[:, None], model.frame_offset[before], 0.0))
        self.zero_rotation = tensor(model.zero_rotation)
        self.zero_offset = tensor(model.zero_offset)
        self.body_link = index(np.where(model.body_link < 0, model.links, model.body_link))
        # A row behind the last link stands for the world, whose bodies are placed by what they are fixed to.
        frames = np.concatenate([model.frame_rotation, np.eye(3)[None]])
        rotation = frames[model.body_link].swapaxes(-1, -2)
        offset = -(rotation @ np.concatenate([model.frame_offset, np.zeros((1, 3))])[model.body_link][..., None])[
            ..., 0
        ]
        self.body_rotation, self.body_offset = tensor(rotation), tensor(offset)
        self.body_parent = [int(parent) for parent in model.body_parent]
        self.fixed = [int(body) for body in np.flatnonzero(model.fixed)]
        self.membership = tensor(model.body_link == np.arange(model.links)[:, None])
        self.identity = torch.eye(3, dtype=dtype, device=device)
        self.drag_axes = None if model.drag_axes is None else tensor(model.drag_axes)
        none = torch.zeros(bodies, 3, dtype=dtype, device=device)
        self.no_drag = {"drag_axes": torch.zeros(bodies, 3, 3, dtype=dtype, device=device)}
        self.no_drag |= dict.fromkeys(("viscous_force", "viscous_moment", "dynamic_force", "dynamic_moment"), none)
        self.quaternions = [int(start) for start in model.quaternions]

    def pack(self, properties: TreeProperties, batch: int) -> Parameters:
        """The parameters of the links for `batch` worlds; what worlds share is expanded, not copied."""
        p = properties
        body_rotation, body_offset = self.bodies_in_links(p)
        rotation, offset = self._link_placements(p, body_rotation, body_offset)
        center = _apply(body_rotation, p.center_of_mass) + body_offset
        moment = p.mass.unsqueeze(-1) * center
        turned = body_rotation @ ((p.inertia + p.inertia.mT) / 2) @ body_rotation.mT
        squared = (center * center).sum(-1)[..., None, None] * self.identity
        spread = squared - center.unsqueeze(-1) * center.unsqueeze(-2)
        inertia = turned + p.mass[..., None, None] * spread
        made = {
            "mass": _apply(self.membership, p.mass),
            "moment": self.membership @ moment,
            "center": center,
            "inertia": (self.membership @ inertia.flatten(-2)).unflatten(-1, (3, 3)),
            "rotation": rotation.mT,
            "offset": offset,
            "spring_reference": self.normalized(p.spring_reference),
            **self._drag(p, body_rotation),
        }
        return {
            name: expanded(made[name] if name in made else getattr(p, name), batch, field)
            for name, field in PARAMETERS.items()
        }

    def _drag(self, p: TreeProperties, body_rotation: Tensor) -> Parameters:
        """The drag of a medium, where the model has one."""
        if self.drag_axes is None:
            return self.no_drag
        return {"drag_axes": body_rotation @ self.drag_axes, **drag(p.drag_size, p.medium)}

    def bodies_in_links(
        self, p: TreeProperties
    ) -> tuple[Float[Tensor, "... bodies 3 3"], Float[Tensor, "... bodies 3"]]:
        """Rotation and offset of each body's frame in the link that it is part of (or in the world)."""
        if not self.fixed:
            return self.body_rotation, self.body_offset
        placed = rotation_matrix(p.orientation)
        rotations, offsets = list(self.body_rotation), list(self.body_offset)
        for body in self.fixed:
            parent = self.body_parent[body]
            turn, shift = placed[..., body, :, :], p.position[..., body, :]
            if parent >= 0:
                shift = _apply(rotations[parent], shift) + offsets[parent]
                turn = rotations[parent] @ turn
            rotations[body], offsets[body] = turn, shift
        return torch.stack(torch.broadcast_tensors(*rotations), -3), torch.stack(torch.broadcast_tensors(*offsets), -2)

    def _link_placements(self, p: TreeProperties, body_rotation: Tensor, body_offset: Tensor) -> tuple[Tensor, Tensor]:
        """Rotation and offset of each link's frame at q = 0 in that of the link that carries it.

        The way leads from the carrying link to the body on it, on to the link's own body, and to the link in that.
        Within a chain of links it leads from the link before, inside the body, to the link.
        """
        none = p.position.new_zeros(3)
        placed_rotation = with_row(rotation_matrix(p.orientation), self.identity)[..., self.placed, :, :]
        placed_offset = with_row(p.position, none)[..., self.placed, :]
        carrier_rotation = with_row(body_rotation, self.identity)[..., self.carrier, :, :]
        carrier_offset = with_row(body_offset, none)[..., self.carrier, :]
        back = self.chain_rotation.mT
        turn = back @ carrier_rotation @ placed_rotation
        shift = _apply(carrier_rotation, placed_offset) + carrier_offset - self.chain_offset
        return turn @ self.zero_rotation, _apply(back, shift) + _apply(turn, self.zero_offset)

    def normalized(self, q: Float[Tensor, "... nq"]) -> Float[Tensor, "... nq"]:
        """`q` with its quaternions of length one."""
        if not self.quaternions:
            return q
        if not q.requires_grad and not torch._C._are_functorch_transforms_active():
            found = q.clone()  # fewer operations than joining pieces takes
            self.shorten(found, found)
            return found
        pieces, done = [], 0
        for start in self.quaternions:
            quaternion = q[..., start : start + 4]
            pieces += [q[..., done:start], quaternion / torch.linalg.vector_norm(quaternion, dim=-1, keepdim=True)]
            done = start + 4
        return torch.cat([*pieces, q[..., done:]], -1)

    def shorten(self, values: Float[Tensor, "... nq"], q: Float[Tensor, "... nq"]) -> None:
        """Divide the rows of `values` that belong to quaternions by the lengths of those of `q`, in place.

        Of positions themselves this makes unit quaternions; of a gradient along these, which is tangent to the sphere,
        one to numbers of any length.
        """
        if not self.quaternions:
            return
        if not values.is_cpu:
            for start in self.quaternions:
                turn = q[..., start : start + 4]
                values[..., start : start + 4].div_(torch.linalg.vector_norm(turn, dim=-1, keepdim=True))
            return
        # On few numbers numpy takes a third of the time.
        those, given = values.numpy(), q.detach().numpy()
        with np.errstate(divide="ignore", invalid="ignore"):  # what has no length becomes no number
            for start in self.quaternions:
                turn = given[..., start : start + 4]
                those[..., start : start + 4] /= np.sqrt(np.add.reduce(turn * turn, -1, keepdims=True))

    def body_poses(
        self,
        placed: tuple[Tensor, Tensor],
        rotation: Float[Tensor, "batch links 3 3"],
        position: Float[Tensor, "batch links 3"],
    ) -> Float[Tensor, "batch bodies 4 4"]:
        """Poses of bodies from where they are in their links, by `bodies_in_links`, and the poses of these."""
        body_rotation, body_offset = placed
        carrier = with_row(rotation, self.identity)[:, self.body_link]
        origin = with_row(position, position.new_zeros(3))[:, self.body_link]
        place = origin + _apply(carrier, body_offset)
        top = torch.cat([carrier @ body_rotation, place.unsqueeze(-1)], -1)
        bottom = top.new_tensor([0.0, 0.0, 0.0, 1.0]).expand(*top.shape[:2], 1, 4)
        return torch.cat([top, bottom], -2)


def rotation_matrix(orientation: Float[Tensor, "... 4"]) -> Float[Tensor, "... 3 3"]:
    """The matrix of a quaternion (w, x, y, z) of any length but zero."""
    w, x, y, z = (orientation / orientation.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
    ]
    return torch.stack(rows, -2)


def with_row(values: Tensor, row: Tensor) -> Tensor:
    """`values` with one more body behind the last, whose entry is `row`."""
    where = -1 - row.dim()
    shape = list(values.shape)
    shape[where] = 1
    return torch.cat([values, row.expand(shape)], where)


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def expanded(value: Tensor, batch: int, field: ArrayField) -> Tensor:
    """The numbers of `batch` worlds; what they share is one memory for all."""
    if value.dim() == len(field.rows) + len(SHAPES[field.entry]):
        return value.contiguous().unsqueeze(0).expand(batch, *value.shape)
    return value.contiguous()
