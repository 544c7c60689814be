"""Geometry and elastic energy of elements, in torch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.soft.bending import flatten_edges


def element_edges(
    positions: Float[Tensor, "*batch nodes axes"], elements: Tensor
) -> Float[Tensor, "*batch elements axes edges"]:
    """Edges of each element from its first node, as columns."""
    corners = positions[..., elements, :]
    return (corners[..., 1:, :] - corners[..., :1, :]).mT


def rest_edges(
    rest: Float[Tensor, "*batch nodes axes"], elements: Tensor
) -> Float[Tensor, "*batch elements edges edges"]:
    """Edges of each element at rest, those of cloth along axes in its own plane."""
    edges = element_edges(rest, elements)
    return edges if edges.shape[-1] == edges.shape[-2] else flatten_edges(edges)


def strain_energy(
    deformation: Float[Tensor, "*batch axes edges"],
    law: int,
    shear: Float[Tensor, "*batch"],
    lame_first: Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """Strain energy of each element, J.

    Args:
        deformation: Deformation gradient F = ∂x/∂X, with two columns for cloth.
        law: Index of the stress law in `description.LAWS`.
        shear: Volume times the shear modulus μ.
        lame_first: Volume times Lamé's first parameter λ.
    """
    if law == 2:
        log = torch.linalg.det(deformation).log()
        squares = deformation.square().sum((-1, -2)) - deformation.shape[-1]
        return shear * (squares / 2 - log) + lame_first / 2 * log.square()
    identity = torch.eye(deformation.shape[-1]).to(deformation)
    if law == 0:
        strain = (deformation + deformation.mT) / 2 - identity
    else:
        strain = (deformation.mT @ deformation - identity) / 2
    trace = strain.diagonal(dim1=-2, dim2=-1).sum(-1)
    return shear * strain.square().sum((-1, -2)) + lame_first / 2 * trace.square()
