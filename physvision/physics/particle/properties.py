"""The numbers of a particle's law."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties

# The law's numbers as the kernels see them: push and rest along two coordinates, then one each of the others.
LAW = {"push": 0, "rest": 2, "restoring": 4, "velocity_decay": 5, "drag": 6}


@register_properties
@dataclass(frozen=True)
class ParticleProperties(Properties):
    """q̈ = push − restoring · f(q − rest) − velocity_decay · q̇ − drag · |q̇| q̇, f being sine on a circle."""

    push: Tensor = leaf("nv", unit="m/s² or rad/s²", meaning="constant acceleration: gravity, a slope, a motor")
    rest: Tensor = leaf("nv", unit="m or rad", meaning="where nothing drives it back")
    restoring: Tensor = leaf(unit="1/s²", range="not negative", meaning="of a spring k/m, of a pendulum g/l")
    velocity_decay: Tensor = leaf(unit="1/s", meaning="rate at which velocity fades")
    drag: Tensor = leaf(unit="1/m or 1/rad", meaning="quadratic drag")
    mass: Tensor = leaf(unit="kg", range="positive", meaning="scales energies; the motion does not depend on it")
    length: Tensor = leaf(unit="m", range="positive", meaning="radius of the circle")
    radius: Tensor = leaf(unit="m", range="positive", meaning="as it is drawn")


def pack(properties: ParticleProperties, batch: int, coordinates: int) -> Float[Tensor, "batch numbers"]:
    """The law's numbers, float64, a row a world."""
    columns = []
    for name in LAW:
        value = getattr(properties, name).double()
        if name in ("push", "rest"):
            columns.append(torch.nn.functional.pad(value.expand(batch, -1), (0, 2 - coordinates)))
        else:
            columns.append(value.expand(batch).unsqueeze(1))
    return torch.cat(columns, 1)
