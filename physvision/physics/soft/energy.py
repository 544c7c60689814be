"""The energy of strained elements, in torch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def strain_energy(
    deformed: Float[Tensor, "*batch axes edges"],
    law: int,
    shear: Float[Tensor, "*batch"],
    first: Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """Of each element, given F = ∂x/∂X, of cloth two columns, and volume times μ and λ.

    Laws are counted as `body.LAWS` lists them.
    """
    if law == 2:
        log = torch.linalg.det(deformed).log()
        return shear * ((deformed.square().sum((-1, -2)) - deformed.shape[-1]) / 2 - log) + first / 2 * log.square()
    unit = torch.eye(deformed.shape[-1]).to(deformed)
    strain = (deformed + deformed.mT) / 2 - unit if law == 0 else (deformed.mT @ deformed - unit) / 2
    trace = strain.diagonal(dim1=-2, dim2=-1).sum(-1)
    return shear * strain.square().sum((-1, -2)) + first / 2 * trace.square()
