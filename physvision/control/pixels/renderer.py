"""Camera frames of the pendulum on its cart, with procedural textures and light that may vary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.camera import Camera, RayCaster, noise, stripes
from physvision.core import Box, Plane, Rectangle, State
from physvision.physics import Engine
from physvision.physics.engine import Overrides

CAMERA_POSITION_M, FIELD_OF_VIEW_RAD = (0.0, -2.4, 0.0), 0.4
WALL_DISTANCE_M, RAIL_SIZE_M = 0.35, (1.04, 0.02, 0.024)  # the wall is behind the cart
MOVING_SHAPES = (1, 2)  # cart and pole in the scene's geometry; everything else is rendered once
# Uniform colors of cart and pole: the edges of textures finer than a pixel would have imprecise gradients.
SHAPE_COLORS = ((0.325, 0.525, 0.875), (0.875, 0.475, 0.15))
# A face's own axes are x and y; on the box they are x and z.
FACE_POSE = ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, -1.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True)
class SceneVariation:
    """Variation of light and textures from the plain scene.

    Attributes:
        color_gains: Factors of red, green and blue.
        noise_strengths: Strengths of the noise on wall, cart and pole; colors are 0 to 1.
        seed: Seed of the noise, the same for all worlds.
    """

    color_gains: Float[Tensor, "batch 3"]
    noise_strengths: Float[Tensor, "batch 3"]
    seed: int = 11


class CartPoleRenderer(nn.Module):
    """Differentiable camera of the scene "cart": wall and rail are rendered once, cart and pole in each frame.

    Only the front face of each box is rendered: the others are slivers of a pixel at most.

    Attributes:
        background: Frame of the wall and the rail, (3, height, width).
    """

    background: Tensor

    def __init__(self, engine: Engine, height: int, width: int) -> None:
        """Place the camera in front of an engine of the scene "cart".

        Args:
            engine: Engine of the scene.
            height: Height of a frame, in pixels.
            width: Width of a frame, in pixels.
        """
        super().__init__()
        camera = Camera.pinhole(
            height, width, position=CAMERA_POSITION_M, target=(0.0, 0.0, 0.0), fov=FIELD_OF_VIEW_RAD
        )
        self.register_buffer("background", render_background(camera), persistent=False)
        self.bound = camera.bind(engine, MOVING_SHAPES)
        faces = [Rectangle(placed.shape.sizes[0], placed.shape.sizes[2]) for placed in self.bound.geometry]
        self.caster = RayCaster(camera, faces, background=self.background)

    def forward(self, state: State, variation: SceneVariation | None = None, properties: Overrides = None) -> Tensor:
        """Return frames (batch, 3, height, width) of states, in one launch."""
        shapes = self.bound.appearance(state, properties)
        colors = [shapes.poses.new_tensor(color) for color in SHAPE_COLORS]
        background = self.background.to(shapes.poses)
        if variation is not None:
            strengths = variation.noise_strengths.to(shapes.poses)
            wall, parts = texture_noise(variation.seed, background.shape[-2], background.shape[-1])
            background = background + strengths[:, 0, None, None, None] * wall.to(background)
            colors = [
                color + strength[:, None] * part.to(color)
                for color, strength, part in zip(colors, strengths[:, 1:].unbind(1), parts, strict=True)
            ]
        depth = shapes.sizes[..., 1:2]
        poses = shapes.poses @ shapes.poses.new_tensor(FACE_POSE)
        poses = torch.cat([poses[..., :3], poses[..., 3:] - 0.5 * depth[..., None] * shapes.poses[..., 1:2]], -1)
        sizes = torch.stack([shapes.sizes[..., 0], shapes.sizes[..., 2], 0 * shapes.sizes[..., 1]], -1)
        frames = self.caster(poses, colors, sizes=sizes, background=background)
        return frames if variation is None else frames * variation.color_gains.to(frames)[:, :, None, None]


@cache
def texture_noise(seed: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return smooth noise for the wall, of a frame's size, and color offsets for the cart and the pole."""
    return noise(3, (5, 13), height, width, seed), noise(3, (1, 2), 1, 2, seed + 1)[:, 0].T.contiguous()


@torch.no_grad()
def render_background(camera: Camera) -> Float[Tensor, "3 height width"]:
    """Render the wall and the rail."""
    wall = torch.eye(4, dtype=torch.float64)
    wall[:3, :3] = torch.tensor([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    wall[1, 3] = WALL_DISTANCE_M
    rail = torch.eye(4, dtype=torch.float64)
    rail[1, 3] = 0.05
    wall_texture = 0.55 + 0.15 * noise(3, (9, 9), 64, 64, 3).double()
    rail_texture = stripes((0.3, 0.3, 0.33), (0.45, 0.45, 0.48), 8.0, 8, 64).double()
    caster = RayCaster(camera, [Plane((3.2, 3.2)), Box(RAIL_SIZE_M)], background=(0.5, 0.5, 0.5))
    return caster(torch.stack([wall, rail])[None], [wall_texture, rail_texture])[0].float()
