"""Kernels as one differentiable function of rays, sizes, light, texels and background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import warp as wp
from torch import Tensor
from typing_extensions import override

from physvision.camera.patches import Patch
from physvision.camera.projection import NEAR_PLANE, Projection
from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import array, launch

RAYS, EXTENTS, LIGHT = slice(0, 12), slice(12, 15), slice(15, 18)


# Estimated time of a patch in each pixel on one core, in microseconds, by which work is divided among cores.
PATCH_PIXEL_US = 0.004
# Whole numbers of a patch, see `kernels/scene.py`.
WHOLE_FIELDS = ("kind", "shape", "first", "sign", "corner", "corners", "wrap", "texel", "rows", "columns")


@dataclass(frozen=True, eq=False)
class Settings:
    """Constants of a caster, in which frames are not differentiable.

    Attributes:
        kernels: Kernels in the precision of the tensors.
        patches: Constant fields of the patches, see `kernels/scene.py`.
        vertices: Corners of polygons.
        height: Height of the image, in pixels.
        width: Width of the image, in pixels.
        soft: If true, pixels are averages over their area.
        taps: Maximum number of texture samples along each side of a pixel.
    """

    kernels: Any
    patches: wp.array
    vertices: wp.array
    height: int
    width: int
    soft: bool
    taps: int

    def launch(self, kernel: Any, scene: Any, arguments: list[Any], like: Tensor, together: int = 1) -> None:
        """Run `kernel` for all pixels.

        Args:
            kernel: Kernel whose first argument is the line of its first thread, among the lines of all worlds.
            scene: Scene to render.
            arguments: Further arguments of the kernel.
            like: Tensor with a row for each world.
            together: Number of lines that one core has to render, since they add to the same numbers.
        """
        # One thread a line on a CPU, where starting a thread costs more than most pixels.
        stripe = 1 if like.is_cuda else self.width
        lines = like.shape[0] * self.height
        cost, inner = PATCH_PIXEL_US * scene.count * lines * self.width, (self.width // stripe,)
        launch(kernel, lines, [stripe, scene, *arguments], like.device, cost, inner, together=together)


def constants(
    kernels: Any,
    patches: Sequence[Patch],
    layout: Sequence[tuple[int, int, int]],
    camera: Projection,
    light: tuple[float, float],
    like: Tensor,
) -> tuple[wp.array, wp.array]:
    """Return constant fields of all patches and corners of all polygons, in the device and precision of a tensor.

    They are made without torch, whose new tensors have no memory within transforms.

    Args:
        kernels: Kernels in the precision of the tensor.
        patches: Patches of the scene.
        layout: First texel, height and width of the texture of each shape.
        camera: Camera, of which the kind of projection is used.
        light: Ambient and diffuse factor of the light.
        like: Tensor in that precision on that device.
    """
    table: Any = np.zeros(len(patches), kernels.Patch.numpy_dtype())
    vertices: list[tuple[float, float]] = []
    for index, patch in enumerate(patches):
        first, corner = index if patch.first is None else patch.first, len(vertices)
        sign = 0 if patch.shift == 0.0 else (1 if patch.shift > 0 else -1)
        table["mapping"][index] = patch.mapping
        numbers = (patch.kind, patch.shape, first, sign, corner, len(patch.vertices), patch.wrap, *layout[patch.shape])
        for name, number in zip(WHOLE_FIELDS, numbers, strict=True):
            table[name][index] = number
        vertices.extend(patch.vertices)
    table["near"], table["ambient"], table["diffuse"] = NEAR_PLANE, *light
    table["pinhole"] = not camera.orthographic
    corners = np.array(vertices, dtype=str(like.dtype).removeprefix("torch.")).reshape(-1, 2)
    device = str(like.device)
    return wp.array(table, dtype=kernels.Patch, device=device), wp.array(corners, device=device)


def _scene(view: Settings, rays: Tensor, extents: Tensor, light: Tensor, texels: Tensor, background: Tensor) -> Any:
    kernels, (batch, count) = view.kernels, rays.shape[:2]
    numbers, scene = kernels.Numbers(), kernels.Contents()
    numbers.rays, numbers.extents, numbers.light = array(rays), array(extents), array(light)
    numbers.patches, numbers.wide = view.patches, float(view.width + view.height)
    scene.patches = wp.empty((batch, count), dtype=kernels.Patch, device=str(rays.device))
    scene.lines = array(rays.new_empty(batch, view.vertices.shape[0], 3))
    scene.vertices, scene.texels, scene.background = view.vertices, array(texels), array(background)
    scene.count, scene.channels = count, background.shape[1]
    scene.width, scene.height = view.width, view.height
    scene.soft, scene.taps = int(view.soft), view.taps if view.soft else 0
    wp.launch(kernels.prepare, dim=(batch, count), inputs=[numbers, scene], device=str(rays.device))
    return scene


@dataclass(frozen=True, eq=False)
class Render(Operation):
    """Frames and front patches from rays, extents, light, texels and background; derived in `kernels/render.py`."""

    view: Settings
    differentiable = 1

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        rays, background = inputs[0], inputs[4]
        image = background.clone(memory_format=torch.contiguous_format)
        fronts = torch.empty(image.shape[0], *image.shape[2:], dtype=torch.int32, device=rays.device)
        scene = _scene(self.view, *inputs)
        self.view.launch(self.view.kernels.render, scene, [array(image), array(fronts)], rays)
        return image, fronts

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        rays, _, _, texels, background = inputs
        batch, count = rays.shape[:2]
        # Each line has its own cotangents, so that the lines of one frame may run on several cores.
        bars = rays.new_zeros(batch * self.view.height, count, 18)
        # Cotangents of tensors that all worlds share are summed into one copy.
        texels_bar = torch.zeros_like(_once(texels)) if needed[3] else texels.new_zeros(0, 0, 0)
        background_bar = torch.zeros_like(_once(background)) if needed[4] else background.new_zeros(0, 0, 0, 0)
        bar = self.view.kernels.Gradients()
        bar.image, bar.patches = array(gradients[0]), array(bars)
        bar.texels, bar.background = (
            array(total.expand_as(value) if total.numel() else total)
            for total, value in ((texels_bar, texels), (background_bar, background))
        )
        together = self.view.height if needed[3] else 1
        if batch > 1 and 1 in (texels_bar.shape[0], background_bar.shape[0]):
            together = batch * self.view.height
        scene = _scene(self.view, *inputs)
        self.view.launch(self.view.kernels.render_adjoint, scene, [array(outputs[1]), bar], rays, together)
        bars = bars.unflatten(0, (batch, self.view.height)).sum(1)
        return (
            bars[..., RAYS].reshape(batch, count, 4, 3),
            bars[..., EXTENTS],
            bars[..., LIGHT],
            _spread(texels_bar, texels) if needed[3] else None,
            _spread(background_bar, background) if needed[4] else None,
        )


def _once(value: Tensor) -> Tensor:
    """Return one copy of a tensor that is expanded over the batch."""
    return value[:1] if value.shape[0] > 1 and value.stride(0) == 0 else value


def _spread(bar: Tensor, value: Tensor) -> Tensor:
    """Return the gradient of an expanded tensor: the sum in the first world, zero in the others."""
    if bar.shape[0] == value.shape[0]:
        return bar
    return torch.cat([bar, bar.new_zeros(1).expand(value.shape[0] - 1, *bar.shape[1:])])


def nearest(view: Settings, rays: Tensor, extents: Tensor, background: Tensor) -> tuple[Tensor, Tensor]:
    """Return depth and shape of the nearest surface at each pixel center, both (batch, height, width)."""
    batch = rays.shape[0]
    depth = rays.new_full((batch, view.height, view.width), float("inf"))
    shapes = torch.empty(batch, view.height, view.width, dtype=torch.int32, device=rays.device)
    scene = _scene(view, rays, extents, rays.new_zeros(batch, 1, 3), rays.new_zeros(batch, 1, 1), background)
    view.launch(view.kernels.nearest, scene, [array(depth), array(shapes)], rays)
    return depth, shapes
