"""Bending of cloth as links between its nodes, with a stiffness from the shape at rest.

This is the Basic Shell Triangle (Oñate and Zárate, 2000), whose unknowns are the positions of the nodes only. Where two
triangles meet, the slope of the surface is the mean of theirs, so that by the divergence theorem the second derivatives
of the positions x in a triangle of area A are three vectors,

    K = 1/2A Σ l/d (x_d − Σ b x) n ⊗ n                                    over its sides

with l a side's length, n its normal, and, once the neighbor is unfolded into the triangle's plane at rest, d the
distance of the node beyond the side and b its barycentric coordinates. A side at the edge adds nothing. Where cloth is
bent and not strained K is its curvature times its normal, and with its thickness t

    Ψ = t²/12 (μ |K|² + λ/2 |tr K|²)

is the energy of Kirchhoff's plate, for cloth that is flat at rest around each triangle. K is linear in x with weights
that add up to zero. With the quadratic form W, Ψ V = ½ Σ Wᵢⱼ xᵢ · xⱼ = −½ Σ_{i<j} Wᵢⱼ |xᵢ − xⱼ|²: a sum over links.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core.mesh import Mesh

PAIRS = list(combinations(range(6), 2))


class Links(NamedTuple):
    """Bending links of cloth.

    Attributes:
        pairs: Nodes at both ends of each link, (links, 2).
        opposites: Node beyond each side of each triangle, −1 for none, (elements, 3).
        element_links: Index of the link between each pair of the six nodes around a triangle, (elements, 15); the
            number of links where there is none.
    """

    pairs: np.ndarray
    opposites: np.ndarray
    element_links: np.ndarray

    @classmethod
    def empty(cls) -> Links:
        """Empty links of a body that is not cloth."""
        return cls(*(np.zeros((0, 2), dtype=np.int64) for _ in range(3)))


def mesh_links(mesh: Mesh) -> Links:
    """Find the links of a mesh of cloth: pairs among the nodes of each triangle and those beyond its sides."""
    stencil = np.concatenate([mesh.elements, mesh.opposites], 1)
    ends = np.sort(np.stack([stencil[:, pair] for pair in PAIRS], 1), -1).reshape(-1, 2)
    valid = (ends[:, 0] >= 0) & (ends[:, 0] < ends[:, 1])
    pairs, inverse = np.unique(ends[valid], axis=0, return_inverse=True)
    element_links = np.full(len(ends), len(pairs))
    element_links[valid] = inverse.ravel()
    return Links(pairs, mesh.opposites, element_links.reshape(len(stencil), -1))


def flatten_edges(edges: Float[Tensor, "*batch elements 3 two"]) -> Float[Tensor, "*batch elements two two"]:
    """Components of the edges of triangles in space along two axes in their planes, the first along the first edge."""
    first, second = edges.unbind(-1)
    length = first.norm(dim=-1)
    across = torch.linalg.cross(first, second).norm(dim=-1) / length
    along = (first * second).sum(-1) / length
    return torch.stack([length, along, torch.zeros_like(length), across], -1).unflatten(-1, (2, 2))


def link_stiffness(
    rest: Float[Tensor, "*batch nodes 3"],
    elements: Tensor,
    opposites: Tensor,
    links: tuple[int, Tensor],
    shear: Float[Tensor, "*batch elements"],
    lame_first: Float[Tensor, "*batch elements"],
) -> Float[Tensor, "*batch links"]:
    """Stiffness of each link, N/m.

    Args:
        rest: Positions of the nodes at rest, m.
        elements: Nodes of each triangle.
        opposites: Node beyond each side of each triangle, −1 for none.
        links: Number of links, and the links between the six nodes of each triangle.
        shear: Shear modulus μ times the volume and t²/12.
        lame_first: Lamé's first parameter λ times the volume and t²/12.
    """
    corners, beyond = rest[..., elements, :], rest[..., torch.where(opposites < 0, elements, opposites), :]
    flat = flatten_edges((corners[..., 1:, :] - corners[..., :1, :]).mT)
    position = torch.cat([torch.zeros_like(flat[..., :1]), flat], -1).mT
    unfolded, columns = [], []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        side, offset = corners[..., j, :] - corners[..., i, :], beyond[..., k, :] - corners[..., i, :]
        length = side.norm(dim=-1, keepdim=True)
        x, y = ((position[..., j, :] - position[..., i, :]) / length).unbind(-1)
        outward = torch.stack([y, -x], -1)
        along = (side * offset).sum(-1, keepdim=True) / length
        distance = torch.linalg.cross(side, offset).norm(dim=-1, keepdim=True) / length
        unfolded.append(position[..., i, :] + along * torch.stack([x, y], -1) + distance * outward)
        columns.append(length / distance * torch.stack([y**2, x**2, -(2**0.5) * x * y], -1))
    barycentric = torch.linalg.solve(flat, torch.stack(unfolded, -1)).mT
    barycentric = torch.cat([1 - barycentric.sum(-1, keepdim=True), barycentric], -1)
    exists = (opposites >= 0).to(rest).unsqueeze(-1)
    curvature = torch.stack(columns, -1) / torch.linalg.det(flat)[..., None, None]
    identity = torch.eye(3).to(rest)
    weights = curvature @ torch.cat([-exists * barycentric, exists * identity], -1)
    trace = weights[..., 0, :] + weights[..., 1, :]
    quadratic_form = 2 * shear[..., None, None] * (weights.mT @ weights)
    quadratic_form = quadratic_form + lame_first[..., None, None] * trace.unsqueeze(-1) * trace.unsqueeze(-2)
    pairs = -torch.stack([quadratic_form[..., i, j] for i, j in PAIRS], -1)
    count, element_links = links
    flat_pairs = pairs.flatten(-2)
    return flat_pairs.new_zeros(*flat_pairs.shape[:-1], count + 1).index_add(-1, element_links.flatten(), flat_pairs)[
        ..., :-1
    ]
