"""A camera bound to what an engine moves: states in, frames out, the drop-in for a decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from physvision.camera.camera import Camera
from physvision.camera.ray_caster import RayCaster
from physvision.core import InputError, Placed, State


class BoundCamera(nn.Module):
    """Frames of an engine's states.

    Args:
        camera: see `Camera`.
        engine: whatever answers `poses(state, properties=…)` with (batch, bodies, 4, 4).
        geometry: what its bodies look like.
        textures: one for each of the geometry, see `RayCaster.forward`; the colours of the geometry by default.
        options: of `RayCaster`.
    """

    _bodies: Tensor
    _local: Tensor

    def __init__(
        self,
        camera: Camera,
        engine: Any,
        geometry: Sequence[Placed],
        *,
        textures: Sequence[Tensor] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.geometry = tuple(geometry)
        for placed in self.geometry:
            if not isinstance(placed, Placed):
                raise InputError(f"geometry: expected physvision.core.Placed, got {type(placed).__name__}")
        self.engine = engine
        self.caster = RayCaster(camera, self.geometry, **options)
        self.textures = textures
        # Row 0 is the world, the bodies follow.
        bodies = [0 if placed.body is None else placed.body + 1 for placed in self.geometry]
        if min(bodies, default=0) < 0:
            raise InputError(f"geometry: expected bodies of 0 or more, or None for the world, got {min(bodies) - 1}")
        self.register_buffer("_bodies", torch.tensor(bodies, dtype=torch.long), persistent=False)
        local = torch.tensor([placed.pose for placed in self.geometry], dtype=torch.float64).reshape(-1, 4, 4)
        self.register_buffer("_local", local, persistent=False)

    def poses(self, state: State, properties: Any | Mapping[str, Tensor] | None = None) -> Tensor:
        """The frame of every shape in the world, (batch, shapes, 4, 4)."""
        bodies = self.engine.poses(state, properties=properties)
        world = torch.eye(4, dtype=bodies.dtype, device=bodies.device).expand(bodies.shape[0], 1, 4, 4)
        if len(self.geometry) and int(self._bodies.max()) > bodies.shape[1]:
            raise InputError(
                f"geometry: body {int(self._bodies.max()) - 1} is not among the engine's {bodies.shape[1]} bodies"
            )
        return torch.cat([world, bodies], 1)[:, self._bodies] @ self._local.to(bodies)

    def forward(self, state: State, properties: Any | Mapping[str, Tensor] | None = None) -> Tensor:
        """Frames (batch, channels, height, width) of a batch of states."""
        return self.caster(self.poses(state, properties), self.textures)
