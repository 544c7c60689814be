"""Bending of cloth as links between its nodes, whose stiffness follows from the shape at rest.

This is the Basic Shell Triangle (Oñate and Zárate, 2000), whose unknowns are the nodes' places alone. Where two
triangles meet, the slope of the surface is the mean of theirs, so that by the divergence theorem the second derivatives
of the places x in a triangle of area A are three vectors,

    K = 1/2A Σ l/d (x_d − Σ b x) n ⊗ n                                    over its sides

with l a side's length, n its normal, and, once the neighbour is unfolded into the triangle's plane at rest, d the
distance of the node beyond the side and b its barycentric coordinates. A side at the edge adds nothing. Where cloth is
bent and not strained K is its curvature times its normal, and with its thickness t

    Ψ = t²/12 (μ |K|² + λ/2 |tr K|²)

is the energy of Kirchhoff's plate, for a cloth that is flat at rest around each triangle. K is linear in x with weights
that add up to zero. With W their form, Ψ V = ½ Σ Wᵢⱼ xᵢ · xⱼ = −½ Σ_{i<j} Wᵢⱼ |xᵢ − xⱼ|²: nothing but links.
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
    """Of cloth: pairs of nodes, what lies beyond each triangle's sides, and which pairs a triangle's six nodes make.

    One past the last pair stands for none.
    """

    pairs: np.ndarray
    opposites: np.ndarray
    of_element: np.ndarray

    @classmethod
    def none(cls) -> Links:
        """Those of what is no cloth."""
        return cls(*(np.zeros((0, 2), dtype=np.int64) for _ in range(3)))


def links_of(mesh: Mesh) -> Links:
    """The links of a cloth."""
    six = np.concatenate([mesh.elements, mesh.opposites], 1)
    ends = np.sort(np.stack([six[:, pair] for pair in PAIRS], 1), -1).reshape(-1, 2)
    good = (ends[:, 0] >= 0) & (ends[:, 0] < ends[:, 1])
    pairs, which = np.unique(ends[good], axis=0, return_inverse=True)
    found = np.full(len(ends), len(pairs))
    found[good] = which.ravel()
    return Links(pairs, mesh.opposites, found.reshape(len(six), -1))


def flattened(edges: Float[Tensor, "*batch elements 3 two"]) -> Float[Tensor, "*batch elements two two"]:
    """Edges of triangles in space along two axes of their own, of which the first is the first edge's."""
    first, second = edges.unbind(-1)
    long = first.norm(dim=-1)
    across = torch.linalg.cross(first, second).norm(dim=-1) / long
    along = (first * second).sum(-1) / long
    return torch.stack([long, along, torch.zeros_like(long), across], -1).unflatten(-1, (2, 2))


def link_stiffness(
    rest: Float[Tensor, "*batch nodes 3"],
    elements: Tensor,
    opposites: Tensor,
    links: tuple[int, Tensor],
    shear: Float[Tensor, "*batch elements"],
    first: Float[Tensor, "*batch elements"],
) -> Float[Tensor, "*batch links"]:
    """Of each link; `links` is their number and what they are of the elements.

    `shear` and `first` are μ and λ times the volume and t²/12.
    """
    corners, beyond = rest[..., elements, :], rest[..., torch.where(opposites < 0, elements, opposites), :]
    flat = flattened((corners[..., 1:, :] - corners[..., :1, :]).mT)
    place = torch.cat([torch.zeros_like(flat[..., :1]), flat], -1).mT
    unfolded, columns = [], []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        side, to = corners[..., j, :] - corners[..., i, :], beyond[..., k, :] - corners[..., i, :]
        length = side.norm(dim=-1, keepdim=True)
        x, y = ((place[..., j, :] - place[..., i, :]) / length).unbind(-1)
        outward = torch.stack([y, -x], -1)
        along = (side * to).sum(-1, keepdim=True) / length
        away = torch.linalg.cross(side, to).norm(dim=-1, keepdim=True) / length
        unfolded.append(place[..., i, :] + along * torch.stack([x, y], -1) + away * outward)
        columns.append(length / away * torch.stack([y**2, x**2, -(2**0.5) * x * y], -1))
    shares = torch.linalg.solve(flat, torch.stack(unfolded, -1)).mT
    shares = torch.cat([1 - shares.sum(-1, keepdim=True), shares], -1)
    there = (opposites >= 0).to(rest).unsqueeze(-1)
    curvature = torch.stack(columns, -1) / torch.linalg.det(flat)[..., None, None]
    unit = torch.eye(3).to(rest)
    weights = curvature @ torch.cat([-there * shares, there * unit], -1)
    trace = weights[..., 0, :] + weights[..., 1, :]
    form = 2 * shear[..., None, None] * (weights.mT @ weights)
    form = form + first[..., None, None] * trace.unsqueeze(-1) * trace.unsqueeze(-2)
    pairs = -torch.stack([form[..., i, j] for i, j in PAIRS], -1)
    count, which = links
    flat_pairs = pairs.flatten(-2)
    return flat_pairs.new_zeros(*flat_pairs.shape[:-1], count + 1).index_add(-1, which.flatten(), flat_pairs)[..., :-1]
