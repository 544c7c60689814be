"""Which positions are angles: how networks see them and how errors of them are measured, both without jumps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core.checks import check_count
from physvision.core.errors import InputError


@dataclass(frozen=True)
class Coordinates:
    """The positions `q` of a mechanical system whose velocities are their rates.

    Attributes:
        size: how many there are.
        angles: indices of those that are angles, rad; the others are lengths, or whatever the data is in.
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
        """Indices of the positions that are not angles."""
        return tuple(index for index in range(self.size) if index not in self.angles)

    @property
    def features(self) -> int:
        """How many numbers `encode` makes of a position."""
        return self.size + len(self.angles)

    def encode(self, q: Float[Tensor, "*batch q"]) -> Float[Tensor, "*batch features"]:
        """Cosine and sine of each angle, and the other positions as they are: smooth where an angle wraps."""
        angles = q[..., list(self.angles)]
        return torch.cat([angles.cos(), angles.sin(), q[..., list(self.straight)]], -1)

    def decode(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch q"]:
        """The positions that `features` stand for, angles from −π to π; cosine and sine need not have unit length."""
        count = len(self.angles)
        cosines, sines, straight = features.split([count, count, self.size - count], -1)
        found = torch.cat([torch.atan2(sines, cosines), straight], -1)
        order = torch.tensor([*self.angles, *self.straight], device=found.device)
        return found[..., torch.argsort(order)]

    def difference(self, q0: Float[Tensor, "*batch q"], q1: Float[Tensor, "*batch q"]) -> Float[Tensor, "*batch q"]:
        """The shortest way from `q0` to `q1`."""
        return self.unwind(q1 - q0)

    def unwind(self, difference: Float[Tensor, "*batch q"]) -> Float[Tensor, "*batch q"]:
        """`difference` with whole turns of angles taken out; its gradient is one."""
        if not self.angles:
            return difference
        turns = torch.zeros_like(difference)
        chosen = list(self.angles)
        turns[..., chosen] = 2 * torch.pi * torch.round(difference.detach()[..., chosen] / (2 * torch.pi))
        return difference - turns

    def check_mirror(self, name: str) -> None:
        """Refuse the option `name`, a mirror, unless all positions are angles, which change sign in it."""
        if self.straight:
            raise InputError(f"{name}: a mirror turns the sign of angles; these coordinates are not angles alone")

    def mirrored(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        """`features` of angles as a mirror shows them: cosines stay, sines change sign."""
        cosines, sines = features.chunk(2, -1)
        return torch.cat([cosines, -sines], -1)
