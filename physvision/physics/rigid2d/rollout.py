"""The autograd Function around the two kernels."""

from __future__ import annotations

from typing import Any

import torch
import warp as wp
from torch import Tensor

from physvision.physics.rigid2d.kernels.data import sizes
from physvision.physics.rigid2d.kernels.rollout import backward as backward_kernel
from physvision.physics.rigid2d.kernels.rollout import forward as forward_kernel


class Kernels:
    """The scene on one device, with what a launch needs to know of it."""

    def __init__(self, scene: Any, kept: list[Tensor], device: torch.device) -> None:
        self.scene, self.kept, self.device = scene, kept, device
        self.sizes = sizes(scene.bodies, scene.moving, scene.joint_rows, scene.capacity, scene.operations)

    def scratch(self, batch: int) -> list[Any]:
        """Working memory for one launch; on a GPU the worlds lie next to each other."""
        dtypes = (torch.float64, torch.int32)
        tensors = []
        for size, dtype in zip(self.sizes, dtypes, strict=True):
            if self.device.type == "cuda":
                tensors.append(torch.empty(size, batch, dtype=dtype, device=self.device).t())
            else:
                tensors.append(torch.empty(batch, size, dtype=dtype, device=self.device))
        return tensors

    def launch(self, kernel: Any, batch: int, inputs: list[Any]) -> None:
        """One thread a world."""
        arrays = [wp.from_torch(value.detach()) if isinstance(value, Tensor) else value for value in inputs]
        wp.launch(kernel, dim=batch, inputs=[self.scene, *arrays], device=wp.device_from_torch(self.device))


class Rollout(torch.autograd.Function):
    """States, (batch, steps + 1, …), from the first, the controls and the packed properties; all in float64.

    The backward pass keeps the states and does each step again; the derivation of a step's adjoint stands in
    `kernels.adjoint`.
    """

    @staticmethod
    def forward(
        q: Tensor, v: Tensor, controls: Tensor, theta: Tensor, kernels: Kernels, steps: int
    ) -> tuple[Tensor, ...]:
        """Positions, velocities, operations of each step, residual, iterations and first bad step."""
        batch, n = q.shape
        all_q, all_v = q.new_empty(batch, steps + 1, n), q.new_empty(batch, steps + 1, n)
        all_q[:, 0], all_v[:, 0] = q.detach(), v.detach()
        operations = torch.zeros(batch, steps, dtype=torch.int32, device=q.device)
        residual = q.new_zeros(batch)
        iterations, bad = operations.new_zeros(batch), operations.new_zeros(batch)
        arrays = [theta.detach(), controls.detach(), *kernels.scratch(batch), steps, all_q, all_v]
        kernels.launch(forward_kernel, batch, [*arrays, operations, residual, iterations, bad])
        return all_q, all_v, operations, residual, iterations, bad

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        """Keep what the backward pass needs."""
        _, _, controls, theta, ctx.kernels, ctx.steps = inputs
        ctx.save_for_backward(controls, theta, *output[:3])
        ctx.mark_non_differentiable(*output[2:])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Cotangents of the inputs from those of the outputs."""
        controls, theta, q, v, operations = ctx.saved_tensors
        batch, n = q.shape[0], q.shape[2]
        q_bar, v_bar = q.new_zeros(batch, n), q.new_zeros(batch, n)
        wanted = ctx.needs_input_grad[2]
        # Where nobody asks for the controls' gradient, every step writes to the same place.
        written = controls.new_zeros(batch, ctx.steps if wanted else 1, controls.shape[2])
        controls_bar = written.expand(batch, ctx.steps, -1)
        theta_bar = torch.zeros_like(theta, memory_format=torch.contiguous_format)
        arrays = [theta.detach(), controls.detach(), *ctx.kernels.scratch(batch), ctx.steps, q, v, operations]
        seeds = [gradient.contiguous() for gradient in gradients[:2]]
        ctx.kernels.launch(backward_kernel, batch, [*arrays, *seeds, q_bar, v_bar, controls_bar, theta_bar])
        return q_bar, v_bar, written if wanted else None, theta_bar, None, None

    @staticmethod
    def vmap(  # pyright: ignore[reportIncompatibleMethodOverride]
        info: Any, in_dims: tuple, q: Tensor, v: Tensor, controls: Tensor, theta: Tensor, *rest: Any
    ) -> Any:
        """Fold the mapped dimension into the batch."""
        size = info.batch_size
        folded = [
            (value.expand(size, *value.shape) if dim is None else value.movedim(dim, 0)).flatten(0, 1)
            for value, dim in zip((q, v, controls, theta), in_dims[:4], strict=True)
        ]
        outputs = Rollout.apply(*folded, *rest)
        return tuple(value.unflatten(0, (size, -1)) for value in outputs), (0,) * 6
