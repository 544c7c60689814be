"""The camera in front of a pendulum of rods, as a part of a decoder."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from physvision.camera import BoundCamera, Camera
from physvision.core import State
from physvision.core.checks import check_positive
from physvision.core.shapes import Appearance
from physvision.physics import articulated
from physvision.physics.engine import Overrides


class PendulumCamera(BoundCamera):
    """A pinhole camera in front of an n-link pendulum, whose rods have one learned radius."""

    def __init__(
        self,
        links: int,
        size: int,
        distance: float,
        focal: float,
        radius: float = 0.35,
        lengths: Sequence[float] | None = None,
    ) -> None:
        """Bind a camera to the rods of `articulated.chain`.

        Args:
            links: Number of rods.
            size: Side of the image, px.
            distance: Distance of the camera from the plane of motion, m.
            focal: Focal length, px.
            radius: Initial radius of the rods, m.
            lengths: Lengths of the rods where a call gives no properties, m; 1 each if not given.
        """
        camera = Camera.pinhole(size, size, position=(0, -distance, 0), target=(0, 0, 0), focal=focal)
        super().__init__(camera, articulated.chain(list(lengths or [1.0] * links), dt=0.05))
        self.log_radius = nn.Parameter(torch.tensor(check_positive("radius", radius)).log())

    def appearance(self, state: State, properties: Overrides = None) -> Appearance:
        """Poses and sizes of the rods, with the learned radius."""
        bodies = super().appearance(state, properties)
        radius = self.log_radius.exp().to(bodies.sizes).expand(*bodies.sizes.shape[:-1], 1)
        return Appearance(bodies.poses, torch.cat([radius, bodies.sizes[..., 1:]], -1))
