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

from physvision.camera.patches import Patches
from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import array, launch

RAYS, EXTENTS, LIGHT = slice(0, 12), slice(12, 15), slice(15, 18)


# Estimated time of a patch in each pixel on one core, in microseconds, by which work is divided among cores.
PATCH_PIXEL_US = 0.004


@dataclass(frozen=True, eq=False)
class Settings:
    """Constants of a caster, in which frames are not differentiable.

    Attributes:
        kernels: Kernels in the precision of the tensors.
        whole: Whole numbers of the patches, see `kernels/prepare.py`.
        mapping: Coefficients from extents to texture coordinates.
        vertices: Corners of polygons.
        height: Height of the image, in pixels.
        width: Width of the image, in pixels.
        pinhole: If true, rays meet in the pinhole; else they are parallel.
        soft: If true, pixels are averages over their area.
        taps: Maximum number of texture samples along each side of a pixel.
        near: Smallest visible depth, in meters.
        ambient: Ambient factor of the light.
        diffuse: Diffuse factor of the light.
    """

    kernels: Any
    whole: wp.array
    mapping: wp.array
    vertices: wp.array
    height: int
    width: int
    pinhole: bool
    soft: bool
    taps: int
    near: float
    ambient: float
    diffuse: float

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


def constant(rows: Sequence[Sequence[float]], columns: int, dtype: torch.dtype, device: torch.device) -> wp.array:
    """Return a table of the scene, made without torch, whose new tensors have no memory within transforms."""
    numbers = np.array(rows, dtype=str(dtype).removeprefix("torch.")).reshape(-1, columns)
    return wp.array(numbers, device=str(device))


def whole_numbers(patches: Patches, layout: Sequence[tuple[int, int, int]], device: torch.device) -> wp.array:
    """Return a row a patch: kind, shape, first patch, sign, first corner, corners, wrap, texel, rows, columns."""
    rows = [
        (patches.kind[i], patches.shape[i], *patches.group[i], *patches.corners[i], patches.wrap[i], *layout[shape])
        for i, shape in enumerate(patches.shape)
    ]
    return constant(rows, 10, torch.int32, device)


def _scene(view: Settings, rays: Tensor, extents: Tensor, light: Tensor, texels: Tensor, background: Tensor) -> Any:
    kernels, (batch, count) = view.kernels, rays.shape[:2]
    numbers, scene = kernels.Numbers(), kernels.Contents()
    numbers.rays, numbers.extents, numbers.light = array(rays), array(extents), array(light)
    numbers.mapping, numbers.whole = view.mapping, view.whole
    numbers.near, numbers.ambient, numbers.diffuse = view.near, view.ambient, view.diffuse
    numbers.wide, numbers.pinhole = float(view.width + view.height), int(view.pinhole)
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
            array(_expanded(sum, value)) for sum, value in ((texels_bar, texels), (background_bar, background))
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


def _expanded(bar: Tensor, value: Tensor) -> Tensor:
    return bar.expand_as(value) if bar.numel() else bar


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
