"""Drag of a medium at rest: of each body as of the box of its mass and inertia."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from physvision.core import ModelError
from physvision.physics.articulated.model.kinematic_tree import Body


@dataclass(frozen=True)
class Medium:
    """What bodies move in. Its drag is that of MuJoCo's model of boxes.

    Attributes:
        density: kg/m³.
        viscosity: Pa s.
    """

    density: float = 0.0
    viscosity: float = 0.0


def boxes(bodies: Sequence[Body], axes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, (bodies, 3), and axes, (bodies, 3, 3), of the boxes that have the bodies' masses and inertias.

    Axes are principal ones; given ones decide where moments are equal. Bodies without mass get no size.
    """
    sizes, found = np.zeros((len(bodies), 3)), np.tile(np.eye(3), (len(bodies), 1, 1))
    for row, body in enumerate(bodies):
        inertia = np.asarray(body.inertia, float)
        inertia = np.diag(inertia) if inertia.shape == (3,) else (inertia + inertia.T) / 2
        turn = np.linalg.eigh(inertia)[1] if axes is None else axes[row]
        moments = np.diag(turn.T @ inertia @ turn)
        if body.mass > 0:
            squares = 6 * (moments.sum() - 2 * moments) / body.mass
            sizes[row] = np.sqrt(np.maximum(squares, 0.0))
        found[row] = turn * np.sign(np.linalg.det(turn))
    return sizes, found


def drag(size: Tensor, medium: Tensor) -> dict[str, Tensor]:
    """The viscous and dynamic shares of the drag of boxes, for moments and forces along their axes.

    Viscous is that of a ball whose diameter is the mean d of the sizes: 3 π η d v and π η d³ ω. Dynamic is, along x,
    that of the face, ½ ρ b c |v| v, and of its turning, ρ a (b⁴ + c⁴) |ω| ω / 64.
    """
    density, viscosity = medium[..., None, 0:1], medium[..., None, 1:2]
    mean = size.mean(-1, keepdim=True)
    a, b = size.roll(-1, -1), size.roll(-2, -1)
    return {
        "viscous_force": (3 * torch.pi * viscosity * mean).expand(torch.broadcast_shapes(mean.shape, size.shape)),
        "viscous_moment": (torch.pi * viscosity * mean**3).expand(torch.broadcast_shapes(mean.shape, size.shape)),
        "dynamic_force": density * a * b / 2,
        "dynamic_moment": density * size * (a**4 + b**4) / 64,
    }


def check(medium: Medium) -> None:
    """Raise for a medium that cannot be."""
    if not (medium.density >= 0 and medium.viscosity >= 0):
        raise ModelError(f"medium: density and viscosity are at least zero, got {medium}")
