"""The kernels as one differentiable function of rays, sizes, light, texels and background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import warp as wp
from torch import Tensor
from torch.autograd.function import once_differentiable

from physvision.camera.patches import Patches
from physvision.physics import precision

KERNELS = "physvision.camera.kernels"
RAYS, EXTENTS, LIGHT = slice(0, 12), slice(12, 15), slice(15, 18)


@dataclass(frozen=True)
class View:
    """What does not change from call to call, or is no number to be differentiated."""

    patches: Patches
    vertices: Tensor
    tables: dict[str, Tensor]
    textures: Tensor
    height: int
    width: int
    pinhole: bool
    soft: bool
    taps: int
    near: float
    ambient: float
    diffuse: float
    lit: bool


def tables_of(patches: Patches, device: torch.device) -> dict[str, Tensor]:
    """The whole numbers of the patches, and where their textures lie, as the kernels read them."""

    def table(rows: list, width: int | None) -> Tensor:
        shape = (len(rows),) if width is None else (len(rows), width)
        return torch.tensor(rows, dtype=torch.int32, device=device).reshape(shape)

    return {
        "kinds": table(patches.kind, None),
        "shapes": table(patches.shape, None),
        "group": table(patches.group, 2),
        "corners": table(patches.corners, 2),
        "wraps": table(patches.wrap, None),
    }


def _scene(view: View, kernels: Any, rays: Tensor, extents: Tensor, light: Tensor, texels: Tensor, background: Tensor):
    batch, count = rays.shape[:2]
    scene = kernels.Scene()
    for name, value in view.tables.items():
        setattr(scene, name, wp.from_torch(value))
    mapping = view.vertices.new_tensor(view.patches.mapping).reshape(count, 4)
    floats = {
        "rays": rays,
        "extents": extents,
        "light": light,
        "texels": texels,
        "background": background,
        "vertices": view.vertices,
        "mapping": mapping,
        "bounds": rays.new_empty(batch, count, 4),
        "lines": rays.new_empty(batch, len(view.vertices), 3),
    }
    for name, value in floats.items():
        setattr(scene, name, wp.from_torch(value.detach()))
    scene.textures = wp.from_torch(view.textures)
    scene.patches, scene.channels = count, background.shape[1]
    scene.width, scene.height = view.width, view.height
    scene.pinhole, scene.soft, scene.lit, scene.taps = int(view.pinhole), int(view.soft), int(view.lit), view.taps
    scene.near, scene.ambient, scene.diffuse = view.near, view.ambient, view.diffuse
    wp.launch(kernels.prepare, dim=(batch, count), inputs=[scene], device=str(rays.device))
    return scene


class Render(torch.autograd.Function):
    """Frames from what the kernels see. The derivation is in `kernels/render.py`."""

    @staticmethod
    def forward(view: View, rays: Tensor, extents: Tensor, light: Tensor, texels: Tensor, background: Tensor) -> Tensor:
        kernels = precision.load(KERNELS, rays.dtype)
        batch, channels = background.shape[:2]
        image = rays.new_zeros(batch, channels, view.height, view.width)
        scene = _scene(view, kernels, rays, extents, light, texels, background)
        size = (batch, view.height, view.width)
        wp.launch(kernels.render, dim=size, inputs=[scene, wp.from_torch(image)], device=str(rays.device))
        return image

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.view = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, image_bar: Tensor) -> tuple[Tensor | None, ...]:
        rays, extents, light, texels, background = ctx.saved_tensors
        kernels = precision.load(KERNELS, rays.dtype)
        view, (batch, count) = ctx.view, rays.shape[:2]
        _, _, _, _, wants_texels, wants_background = ctx.needs_input_grad
        bars = rays.new_zeros(batch, count, 18)
        # What all worlds share is summed as it comes, into one copy.
        texels_bar = torch.zeros_like(_once(texels)) if wants_texels else texels.new_zeros(0, 0, 0)
        background_bar = torch.zeros_like(_once(background)) if wants_background else background.new_zeros(0, 0, 0, 0)
        scene = _scene(view, kernels, rays, extents, light, texels, background)
        outputs = [wp.from_torch(bars), _expanded(texels_bar, texels), _expanded(background_bar, background)]
        wp.launch(
            kernels.render_adjoint,
            dim=(batch, view.height, view.width),
            inputs=[scene, wp.from_torch(image_bar), *outputs],
            device=str(rays.device),
        )
        return (
            None,
            bars[..., RAYS].reshape(batch, count, 4, 3),
            bars[..., EXTENTS],
            bars[..., LIGHT],
            _spread(texels_bar, texels) if wants_texels else None,
            _spread(background_bar, background) if wants_background else None,
        )


def _once(value: Tensor) -> Tensor:
    """One copy of what is expanded over the batch."""
    return value[:1] if value.shape[0] > 1 and value.stride(0) == 0 else value


def _expanded(bar: Tensor, value: Tensor) -> wp.array:
    return wp.from_torch(bar.expand_as(value) if bar.numel() else bar)


def _spread(bar: Tensor, value: Tensor) -> Tensor:
    """The gradient of an expanded tensor: the sum in the first world, none in the others, which autograd adds up."""
    if bar.shape[0] == value.shape[0]:
        return bar
    return torch.cat([bar, bar.new_zeros(1).expand(value.shape[0] - 1, *bar.shape[1:])])


def nearest(view: View, rays: Tensor, extents: Tensor, background: Tensor) -> tuple[Tensor, Tensor]:
    """Depth and shape of what is nearest in the middle of every pixel, both (batch, height, width)."""
    kernels = precision.load(KERNELS, rays.dtype)
    batch = rays.shape[0]
    depth = rays.new_full((batch, view.height, view.width), float("inf"))
    shapes = torch.empty(batch, view.height, view.width, dtype=torch.int32, device=rays.device)
    scene = _scene(view, kernels, rays, extents, rays.new_zeros(batch, 1, 3), rays.new_zeros(batch, 1, 1), background)
    arrays = [scene, wp.from_torch(depth), wp.from_torch(shapes)]
    wp.launch(kernels.nearest, dim=(batch, view.height, view.width), inputs=arrays, device=str(rays.device))
    return depth, shapes
