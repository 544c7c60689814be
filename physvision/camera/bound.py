"""Camera bound to an engine's bodies: states in, frames out, in the place of a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.camera.projection import Projection
from physvision.camera.ray_caster import RayCaster
from physvision.core import Appearance, InputError, State
from physvision.physics import Engine
from physvision.physics.engine import Overrides


class BoundCamera(nn.Module):
    """Camera that renders an engine's states with its properties; learned sizes and lengths have gradients.

    Attributes:
        mechanics: Mechanical engine whose bodies are visible.
        geometry: Rendered shapes of the engine.
    """

    def __init__(
        self,
        camera: Projection,
        engine: Engine,
        shapes: Sequence[int] | None = None,
        *,
        textures: Sequence[Tensor] | None = None,
        **options: Any,
    ) -> None:
        """Bind `camera` to `engine`.

        Args:
            camera: Camera or another projection.
            engine: Engine with mechanics inside; calls without properties use those of this engine.
            shapes: Indices into the mechanics' `geometry` of the shapes to render; None for all.
            textures: Texture of each rendered shape, see `RayCaster.forward`; None for the colors of the geometry.
            options: Further arguments of `RayCaster`.
        """
        super().__init__()
        if engine.mechanics is None:
            raise InputError(f"engine: {type(engine).__name__} has no bodies to render; bind one with mechanics")
        self.mechanics = engine.mechanics
        # In a tuple, so that it is not a submodule: the model trains and saves the engine, once.
        self._engine = (engine,)
        geometry = self.mechanics.geometry
        self.shapes = tuple(range(len(geometry))) if shapes is None else tuple(shapes)
        for index in self.shapes:
            if not 0 <= index < len(geometry):
                raise InputError(
                    f"shapes: expected numbers below {len(geometry)}, of the engine's geometry, got {index}"
                )
        self.geometry = tuple(geometry[index] for index in self.shapes)
        self.caster = RayCaster(camera, self.geometry, **options)
        self.textures = textures

    def appearance(self, state: State, properties: Overrides = None) -> Appearance:
        """Return poses and sizes of all rendered shapes."""
        leaves = self._engine[0].properties if properties is None else properties
        appearance = self.mechanics.appearance(state, leaves)
        if len(self.shapes) == appearance.poses.shape[1]:
            return appearance
        rows = list(self.shapes)
        return Appearance(appearance.poses[:, rows], appearance.sizes[:, rows])

    def forward(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch channels height width"]:
        """Render each state; `properties` as in `Engine.rollout`, the bound engine's own if not given."""
        # Half precision cannot resolve parts of a pixel.
        with torch.autocast(state.q.device.type, enabled=False):
            appearance = self.appearance(state, properties)
            poses = appearance.poses
            textures = None if self.textures is None else [texture.to(poses) for texture in self.textures]
            return self.caster(poses, textures, sizes=appearance.sizes)
