"""Coordinates with angles: a continuous encoding for networks, and differences without jumps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core.checks import check_count
from physvision.core.errors import InputError


@dataclass(frozen=True)
class Coordinates:
    """Positions `q` of a mechanical system, of which some are angles; velocities are their time derivatives.

    Attributes:
        size: Number of positions.
        angles: Indices of the positions that are angles, rad; the rest are lengths, in the unit of the data.
    """

    size: int
    angles: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_count("size", self.size)
        # YAML knows no tuples.
        object.__setattr__(self, "angles", tuple(self.angles))
        if len(set(self.angles)) != len(self.angles) or not all(0 <= index < self.size for index in self.angles):
            raise InputError(f"angles: expected different indices below {self.size}, got {self.angles}")

    @property
    def straight(self) -> tuple[int, ...]:
        """Indices of all positions that are not angles."""
        return tuple(index for index in range(self.size) if index not in self.angles)

    @property
    def features(self) -> int:
        """Number of features that `encode` returns."""
        return self.size + len(self.angles)

    def encode(self, q: Float[Tensor, "*batch q"]) -> Float[Tensor, "*batch features"]:
        """Encode angles by their cosines and sines and keep the other positions, so that wrapping is smooth."""
        angles = q[..., list(self.angles)]
        return torch.cat([angles.cos(), angles.sin(), q[..., list(self.straight)]], -1)

    def decode(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch q"]:
        """Decode positions, angles in [−π, π]; cosines and sines need not be normalized."""
        count = len(self.angles)
        cosines, sines, straight = features.split([count, count, self.size - count], -1)
        q = torch.cat([torch.atan2(sines, cosines), straight], -1)
        order = torch.tensor([*self.angles, *self.straight], device=q.device)
        return q[..., torch.argsort(order)]

    def difference(self, q0: Float[Tensor, "*batch q"], q1: Float[Tensor, "*batch q"]) -> Float[Tensor, "*batch q"]:
        """Shortest displacement from `q0` to `q1`."""
        return self.unwind(q1 - q0)

    def unwind(self, difference: Float[Tensor, "*batch q"]) -> Float[Tensor, "*batch q"]:
        """Remove whole turns from the angles of `difference`; the gradient is the identity."""
        if not self.angles:
            return difference
        turns = torch.zeros_like(difference)
        angles = list(self.angles)
        turns[..., angles] = 2 * torch.pi * torch.round(difference.detach()[..., angles] / (2 * torch.pi))
        return difference - turns

    def check_mirror(self, name: str) -> None:
        """Raise an error for the mirror option `name` unless all positions are angles, which change sign."""
        if self.straight:
            raise InputError(f"{name}: a mirror turns the sign of angles; these coordinates are not angles alone")

    def mirrored(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        """Mirror the features of angles: cosines stay, sines change sign."""
        cosines, sines = features.chunk(2, -1)
        return torch.cat([cosines, -sines], -1)
