"""Drag of a fluid at rest, computed for each body from its equivalent inertia box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from physvision.core import ModelError
from physvision.physics.articulated.model.bodies import Body


@dataclass(frozen=True)
class Fluid:
    """A fluid at rest around the bodies, with the drag of MuJoCo's inertia-box model.

    Attributes:
        density: Density, kg/m³.
        viscosity: Dynamic viscosity, Pa s.
    """

    density: float = 0.0
    viscosity: float = 0.0

    def __post_init__(self) -> None:
        if not (self.density >= 0 and self.viscosity >= 0):
            raise ModelError(f"fluid: density and viscosity must be at least zero, got {self}")


def inertia_boxes(bodies: Sequence[Body], axes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Boxes with the mass and inertia of each body: sizes (bodies, 3), m, and axes (bodies, 3, 3).

    The axes are principal axes; given ones decide between equal moments. The box of a massless body has no size.
    """
    sizes, rotations = np.zeros((len(bodies), 3)), np.tile(np.eye(3), (len(bodies), 1, 1))
    for row, body in enumerate(bodies):
        inertia = np.asarray(body.inertia, float)
        inertia = np.diag(inertia) if inertia.shape == (3,) else (inertia + inertia.T) / 2
        rotation = np.linalg.eigh(inertia)[1] if axes is None else axes[row]
        moments = np.diag(rotation.T @ inertia @ rotation)
        if body.mass > 0:
            squares = 6 * (moments.sum() - 2 * moments) / body.mass
            sizes[row] = np.sqrt(np.maximum(squares, 0.0))
        rotations[row] = rotation * np.sign(np.linalg.det(rotation))
    return sizes, rotations


def drag_coefficients(size: Tensor, fluid: Tensor) -> dict[str, Tensor]:
    """Viscous and quadratic drag coefficients of boxes, for forces and moments along their axes.

    Viscous drag is that of a sphere whose diameter d is the mean size: 3 π η d v and π η d³ ω. Quadratic drag along x
    is that of the face, ½ ρ b c |v| v, and of its rotation, ρ a (b⁴ + c⁴) |ω| ω / 64.

    Args:
        size: Sizes (a, b, c) of the boxes, (..., bodies, 3), m.
        fluid: Density and viscosity, (..., 2).
    """
    density, viscosity = fluid[..., None, 0:1], fluid[..., None, 1:2]
    mean = size.mean(-1, keepdim=True)
    a, b = size.roll(-1, -1), size.roll(-2, -1)
    shape = torch.broadcast_shapes(mean.shape, size.shape)
    return {
        "viscous_force": (3 * torch.pi * viscosity * mean).expand(shape),
        "viscous_moment": (torch.pi * viscosity * mean**3).expand(shape),
        "dynamic_force": density * a * b / 2,
        "dynamic_moment": density * size * (a**4 + b**4) / 64,
    }
