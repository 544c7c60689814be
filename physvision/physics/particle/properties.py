"""Properties of a particle."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties

# First column of each property in the kernels' rows: acceleration and rest_position have two coordinates.
LAW = {"acceleration": 0, "rest_position": 2, "restoring_coefficient": 4, "velocity_decay": 5, "drag": 6}


@register_properties
@dataclass(frozen=True)
class ParticleProperties(Properties):
    """Coefficients of the equation of motion of `Particle`."""

    acceleration: Tensor = leaf("nv", unit="m/s² or rad/s²", meaning="constant acceleration: gravity, a slope, a motor")
    rest_position: Tensor = leaf("nv", unit="m or rad", meaning="position without restoring force")
    restoring_coefficient: Tensor = leaf(
        unit="1/s²", range="not negative", meaning="restoring coefficient: k/m of a spring, g/l of a pendulum"
    )
    velocity_decay: Tensor = leaf(unit="1/s", meaning="linear drag")
    drag: Tensor = leaf(unit="1/m or 1/rad", meaning="quadratic drag")
    mass: Tensor = leaf(unit="kg", range="positive", meaning="mass, which scales energies only")
    length: Tensor = leaf(unit="m", range="positive", meaning="radius of the circle")
    radius: Tensor = leaf(unit="m", range="positive", meaning="radius of the drawn sphere")


def pack(properties: ParticleProperties, batch: int, coordinates: int) -> Float[Tensor, "batch numbers"]:
    """Coefficients for the kernels, float64, a row for each world."""
    columns = []
    for name in LAW:
        value = getattr(properties, name).double()
        if name in ("acceleration", "rest_position"):
            columns.append(torch.nn.functional.pad(value.expand(batch, -1), (0, 2 - coordinates)))
        else:
            columns.append(value.expand(batch).unsqueeze(1))
    return torch.cat(columns, 1)
