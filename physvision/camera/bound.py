"""A camera bound to what an engine moves: states in, frames out, in the place of a decoder."""

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
    """Frames of an engine's states, drawn as its properties make them: learned sizes and lengths have gradients.

    Attributes:
        mechanics: the mechanical engine whose bodies are seen.
        geometry: what is drawn of it.
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
            camera: see `Camera`.
            engine: one with mechanics inside; where a call gives no properties, they are those of this engine.
            shapes: which of the mechanics' `geometry` to draw; all of it if not given.
            textures: one for each shape drawn, see `RayCaster.forward`; the colours of the geometry if not given.
            options: of `RayCaster`.
        """
        super().__init__()
        if engine.mechanics is None:
            raise InputError(f"engine: {type(engine).__name__} has no bodies to be drawn; bind one with mechanics")
        self.mechanics = engine.mechanics
        # Not a part of this module: what the engine learns is the model's to train and to save, once.
        self._engine = (engine,)
        whole = self.mechanics.geometry
        self.shapes = tuple(range(len(whole))) if shapes is None else tuple(shapes)
        for index in self.shapes:
            if not 0 <= index < len(whole):
                raise InputError(f"shapes: expected numbers below {len(whole)}, of the engine's geometry, got {index}")
        self.geometry = tuple(whole[index] for index in self.shapes)
        self.caster = RayCaster(camera, self.geometry, **options)
        self.textures = textures

    def appearance(self, state: State, properties: Overrides = None) -> Appearance:
        """Where every shape that is drawn is, and how large."""
        known = self._engine[0].properties if properties is None else properties
        seen = self.mechanics.appearance(state, known)
        if len(self.shapes) == seen.poses.shape[1]:
            return seen
        rows = list(self.shapes)
        return Appearance(seen.poses[:, rows], seen.sizes[:, rows])

    def forward(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch channels height width"]:
        """The frame of each state; `properties` as in `Engine.rollout`, the bound engine's own if not given."""
        # Half precision does not know parts of a pixel.
        with torch.autocast(state.q.device.type, enabled=False):
            seen = self.appearance(state, properties)
            textures = None if self.textures is None else [texture.to(seen.poses) for texture in self.textures]
            return self.caster(seen.poses, textures, sizes=seen.sizes)
