"""Parameters of links, as the kernels read them, from the properties of bodies and joints."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.kernels.layout import SHAPES, ArrayField
from physvision.physics.articulated.arrays import PARAMETERS
from physvision.physics.articulated.model.bodies import JOINT_KINDS
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.model.mechanism import drag_coefficients
from physvision.physics.articulated.model.properties import TreeProperties

Parameters = dict[str, Tensor]  # by the names of `arrays.PARAMETERS`, in their order, the world's dimension first


class LinkParameters:
    """Map from properties to link parameters: constant poses between bodies and links, in one dtype on one device."""

    def __init__(self, tree: KinematicTree, dtype: torch.dtype, device: torch.device) -> None:
        def tensor(values: np.ndarray) -> Tensor:
            return torch.as_tensor(values, dtype=dtype, device=device)

        def index(values: np.ndarray) -> Tensor:
            return torch.as_tensor(values, dtype=torch.long, device=device)

        bodies, self.links = tree.bodies, tree.links
        # The row behind the last body is the world, and the identity within a chain of links.
        self.placed = index(np.where(tree.placed_body < 0, bodies, tree.placed_body))
        carrier = np.where(tree.placed_body < 0, bodies, tree.body_parent[tree.placed_body])
        self.carrier = index(np.where(carrier < 0, bodies, carrier))
        in_chain = tree.placed_body < 0
        previous = np.maximum(tree.parent, 0)
        # Within a chain the carrier is the previous link, whose frame is constant in the body's.
        self.chain_rotation = tensor(np.where(in_chain[:, None, None], tree.frame_rotation[previous], np.eye(3)))
        self.chain_offset = tensor(np.where(in_chain[:, None], tree.frame_offset[previous], 0.0))
        self.zero_rotation = tensor(tree.zero_rotation)
        self.zero_offset = tensor(tree.zero_offset)
        self.body_link = index(np.where(tree.body_link < 0, tree.links, tree.body_link))
        # The row behind the last link is the world, to which bodies are fixed by their poses.
        frames = np.concatenate([tree.frame_rotation, np.eye(3)[None]])
        rotation = frames[tree.body_link].swapaxes(-1, -2)
        frame_offset = np.concatenate([tree.frame_offset, np.zeros((1, 3))])[tree.body_link]
        offset = -(rotation @ frame_offset[..., None])[..., 0]
        self.body_rotation, self.body_offset = tensor(rotation), tensor(offset)
        self.body_parent = [int(parent) for parent in tree.body_parent]
        self.fixed = [int(body) for body in np.flatnonzero(tree.fixed)]
        self.membership = tensor(tree.body_link == np.arange(tree.links)[:, None])
        self.identity = torch.eye(3, dtype=dtype, device=device)
        self.drag_axes = None if tree.drag_axes is None else tensor(tree.drag_axes)
        zeros = torch.zeros(bodies, 3, dtype=dtype, device=device)
        self.no_drag = {"drag_axes": torch.zeros(bodies, 3, 3, dtype=dtype, device=device)}
        self.no_drag |= dict.fromkeys(("viscous_force", "viscous_moment", "dynamic_force", "dynamic_moment"), zeros)
        self.quaternions = [int(start) for start in tree.quaternions]
        links = np.repeat(np.arange(tree.links), np.diff(tree.first_velocity))
        has_source = np.isin(
            np.arange(tree.links), links[[*tree.coupling_source, *tree.coupling_target[tree.coupling_target < tree.nv]]]
        )
        self.is_free = torch.as_tensor((tree.kind == JOINT_KINDS["free"].code) & ~has_source, device=device)
        self.velocity_membership = tensor(links == np.arange(tree.links)[:, None])

    def pack(self, properties: TreeProperties, batch: int, centered: bool = False) -> Parameters:
        """Parameters of the links for `batch` worlds; shared ones are expanded, not copied.

        Args:
            properties: Properties of bodies and joints.
            batch: Number of worlds.
            centered: If true, free links have their origin at their center of mass (see `_link_centers`).
        """
        p = properties
        if centered:
            body_rotation, body_offset, centers = self._centered_bodies(p)
        else:
            body_rotation, body_offset = self._bodies_in_links(p)
            centers = p.position.new_zeros(self.links, 3)
        rotation, offset = self._link_placements(p, body_rotation, body_offset)
        center = _apply(body_rotation, p.center_of_mass) + body_offset
        moment = p.mass.unsqueeze(-1) * center
        rotated = body_rotation @ ((p.inertia + p.inertia.mT) / 2) @ body_rotation.mT
        squared = (center * center).sum(-1)[..., None, None] * self.identity
        parallel_axis = squared - center.unsqueeze(-1) * center.unsqueeze(-2)
        inertia = rotated + p.mass[..., None, None] * parallel_axis
        computed = {
            "mass": _apply(self.membership, p.mass),
            "first_moment": self.membership @ moment,
            "link_center": centers,
            "center": center,
            "inertia": (self.membership @ inertia.flatten(-2)).unflatten(-1, (3, 3)),
            "rotation": rotation.mT,
            "offset": offset,
            "spring_reference": self.normalize(p.spring_reference),
            **self._drag(p, body_rotation),
        }
        return {
            name: expand(computed[name] if name in computed else getattr(p, name), batch, field)
            for name, field in PARAMETERS.items()
        }

    def _drag(self, p: TreeProperties, body_rotation: Tensor) -> Parameters:
        if self.drag_axes is None:
            return self.no_drag
        return {"drag_axes": body_rotation @ self.drag_axes, **drag_coefficients(p.drag_size, p.fluid)}

    def _link_centers(
        self, p: TreeProperties, body_rotation: Tensor, body_offset: Tensor
    ) -> Float[Tensor, "... links 3"]:
        """Center of mass of each free link from the origin of its coordinates; zero for other links.

        It is zero too where something acts on the coordinates themselves: springs, damping, dry friction, armature.
        """
        moment = self.membership @ (p.mass.unsqueeze(-1) * (_apply(body_rotation, p.center_of_mass) + body_offset))
        mass = _apply(self.membership, p.mass)
        resistance = _apply(self.velocity_membership, p.joint_damping + p.friction_loss + p.armature)
        is_centered = self.is_free & (mass > 0) & (resistance + p.joint_stiffness == 0)
        center = moment / torch.where(is_centered, mass, 1.0).unsqueeze(-1)
        return torch.where(is_centered.unsqueeze(-1), center, 0.0)

    def bodies_in_links(
        self, p: TreeProperties, centered: bool = False
    ) -> tuple[Float[Tensor, "... bodies 3 3"], Float[Tensor, "... bodies 3"]]:
        """Rotation and offset of each body's frame in its link, or in the world.

        Args:
            p: Properties of bodies.
            centered: If true, free links have their origin at their center of mass.
        """
        return self._centered_bodies(p)[:2] if centered else self._bodies_in_links(p)

    def _centered_bodies(self, p: TreeProperties) -> tuple[Tensor, Tensor, Tensor]:
        """Rotation and offset of each body's frame in its centered link, and the centers of mass of the links."""
        rotation, offset = self._bodies_in_links(p)
        centers = self._link_centers(p, rotation, offset)
        offset = offset - append_row(centers, centers.new_zeros(3))[..., self.body_link, :]
        return rotation, offset, centers

    def _bodies_in_links(self, p: TreeProperties) -> tuple[Tensor, Tensor]:
        if not self.fixed:
            return self.body_rotation, self.body_offset
        body_rotation = rotation_matrix(p.orientation)
        rotations, offsets = list(self.body_rotation), list(self.body_offset)
        for body in self.fixed:
            parent = self.body_parent[body]
            rotation, offset = body_rotation[..., body, :, :], p.position[..., body, :]
            if parent >= 0:
                offset = _apply(rotations[parent], offset) + offsets[parent]
                rotation = rotations[parent] @ rotation
            rotations[body], offsets[body] = rotation, offset
        return torch.stack(torch.broadcast_tensors(*rotations), -3), torch.stack(torch.broadcast_tensors(*offsets), -2)

    def _link_placements(self, p: TreeProperties, body_rotation: Tensor, body_offset: Tensor) -> tuple[Tensor, Tensor]:
        """Rotation and offset of each link's frame at q = 0 in that of the link that carries it.

        They are composed from the carrying link to the body on it, on to the link's own body, and to the link in that.
        Within a chain they lead from the previous link, inside the body, to the link.
        """
        zeros = p.position.new_zeros(3)
        placed_rotation = append_row(rotation_matrix(p.orientation), self.identity)[..., self.placed, :, :]
        placed_offset = append_row(p.position, zeros)[..., self.placed, :]
        carrier_rotation = append_row(body_rotation, self.identity)[..., self.carrier, :, :]
        carrier_offset = append_row(body_offset, zeros)[..., self.carrier, :]
        inverse = self.chain_rotation.mT
        rotation = inverse @ carrier_rotation @ placed_rotation
        offset = _apply(carrier_rotation, placed_offset) + carrier_offset - self.chain_offset
        return rotation @ self.zero_rotation, _apply(inverse, offset) + _apply(rotation, self.zero_offset)

    def normalize(self, q: Float[Tensor, "... nq"]) -> Float[Tensor, "... nq"]:
        """Positions with unit quaternions."""
        if not self.quaternions:
            return q
        if not q.requires_grad and not torch._C._are_functorch_transforms_active():
            normalized = q.clone()  # takes fewer operations than a concatenation
            self._normalize_in_place(normalized)
            return normalized
        pieces, end = [], 0
        for start in self.quaternions:
            quaternion = q[..., start : start + 4]
            pieces += [q[..., end:start], quaternion / torch.linalg.vector_norm(quaternion, dim=-1, keepdim=True)]
            end = start + 4
        return torch.cat([*pieces, q[..., end:]], -1)

    def _normalize_in_place(self, q: Float[Tensor, "... nq"]) -> None:
        if not q.is_cpu:
            for start in self.quaternions:
                quaternion = q[..., start : start + 4]
                quaternion.div_(torch.linalg.vector_norm(quaternion, dim=-1, keepdim=True))
            return
        # For so few numbers numpy takes a third of torch's time.
        array = q.numpy()
        with np.errstate(divide="ignore", invalid="ignore"):  # a zero quaternion becomes NaN
            for start in self.quaternions:
                quaternion = array[..., start : start + 4]
                quaternion /= np.sqrt(np.add.reduce(quaternion * quaternion, -1, keepdims=True))

    def body_poses(
        self,
        placements: tuple[Tensor, Tensor],
        rotation: Float[Tensor, "batch links 3 3"],
        position: Float[Tensor, "batch links 3"],
    ) -> Float[Tensor, "batch bodies 4 4"]:
        """Poses of the bodies in the world.

        Args:
            placements: Rotation and offset of each body in its link, as of `bodies_in_links`.
            rotation: Rotations of the links.
            position: Origins of the links, m.
        """
        body_rotation, body_offset = placements
        link_rotation = append_row(rotation, self.identity)[:, self.body_link]
        link_origin = append_row(position, position.new_zeros(3))[:, self.body_link]
        origin = link_origin + _apply(link_rotation, body_offset)
        top = torch.cat([link_rotation @ body_rotation, origin.unsqueeze(-1)], -1)
        bottom = top.new_tensor([0.0, 0.0, 0.0, 1.0]).expand(*top.shape[:2], 1, 4)
        return torch.cat([top, bottom], -2)


def rotation_matrix(orientation: Float[Tensor, "... 4"]) -> Float[Tensor, "... 3 3"]:
    """Rotation matrix of a quaternion (w, x, y, z) of any norm but zero."""
    w, x, y, z = (orientation / orientation.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
    ]
    return torch.stack(rows, -2)


def append_row(values: Tensor, row: Tensor) -> Tensor:
    """Append the entry `row` behind the last body or link."""
    dim = -1 - row.dim()
    shape = list(values.shape)
    shape[dim] = 1
    return torch.cat([values, row.expand(shape)], dim)


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def expand(value: Tensor, batch: int, field: ArrayField) -> Tensor:
    """Expand a parameter that is shared by all worlds to `batch` of them, without a copy."""
    if value.dim() == len(field.rows) + len(SHAPES[field.entry]):
        return value.contiguous().unsqueeze(0).expand(batch, *value.shape)
    return value.contiguous()
