"""The kernels as one differentiable computation of rays, sizes, light, texels and background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import warp as wp
from torch import Tensor
from typing_extensions import override

from physvision.camera.patches import Patches
from physvision.physics import precision
from physvision.physics.batched_function import Operation, Tensors
from physvision.physics.launching import array

KERNELS = "physvision.camera.kernels"
RAYS, EXTENTS, LIGHT = slice(0, 12), slice(12, 15), slice(15, 18)


@dataclass(frozen=True, eq=False)
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
    """The whole numbers of the patches as the kernels read them."""

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
        setattr(scene, name, array(value))
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
        setattr(scene, name, array(value))
    scene.textures = array(view.textures)
    scene.patches, scene.channels = count, background.shape[1]
    scene.width, scene.height = view.width, view.height
    scene.pinhole, scene.soft, scene.lit, scene.taps = int(view.pinhole), int(view.soft), int(view.lit), view.taps
    scene.near, scene.ambient, scene.diffuse = view.near, view.ambient, view.diffuse
    wp.launch(kernels.prepare, dim=(batch, count), inputs=[scene], device=str(rays.device))
    return scene


@dataclass(frozen=True, eq=False)
class Render(Operation):
    """(rays, extents, light, texels, background) → frames. The derivation is in `kernels/render.py`."""

    view: View
    differentiable = 1

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        rays, background = inputs[0], inputs[4]
        kernels = precision.load(KERNELS, rays.dtype)
        image = torch.zeros_like(background, memory_format=torch.contiguous_format)
        scene = _scene(self.view, kernels, *inputs)
        size = (image.shape[0], *image.shape[2:])
        wp.launch(kernels.render, dim=size, inputs=[scene, array(image)], device=str(rays.device))
        return (image,)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        rays, _, _, texels, background = inputs
        kernels = precision.load(KERNELS, rays.dtype)
        batch, count = rays.shape[:2]
        bars = rays.new_zeros(batch, count, 18)
        # What all worlds share is summed as it comes, into one copy.
        texels_bar = torch.zeros_like(_once(texels)) if needed[3] else texels.new_zeros(0, 0, 0)
        background_bar = torch.zeros_like(_once(background)) if needed[4] else background.new_zeros(0, 0, 0, 0)
        scene = _scene(self.view, kernels, *inputs)
        adjoints = [array(bars), array(_expanded(texels_bar, texels)), array(_expanded(background_bar, background))]
        size = (batch, *background.shape[2:])
        image_bar = array(gradients[0].contiguous())
        wp.launch(kernels.render_adjoint, dim=size, inputs=[scene, image_bar, *adjoints], device=str(rays.device))
        return (
            bars[..., RAYS].reshape(batch, count, 4, 3),
            bars[..., EXTENTS],
            bars[..., LIGHT],
            _spread(texels_bar, texels) if needed[3] else None,
            _spread(background_bar, background) if needed[4] else None,
        )


def _once(value: Tensor) -> Tensor:
    """One copy of what is expanded over the batch."""
    return value[:1] if value.shape[0] > 1 and value.stride(0) == 0 else value


def _expanded(bar: Tensor, value: Tensor) -> Tensor:
    return bar.expand_as(value) if bar.numel() else bar


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
    size = (batch, view.height, view.width)
    wp.launch(kernels.nearest, dim=size, inputs=[scene, array(depth), array(shapes)], device=str(rays.device))
    return depth, shapes
