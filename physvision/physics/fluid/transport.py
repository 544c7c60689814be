"""Advection as differentiable operations from fields with ghost cells to rates of change."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from physvision.kernels.launching import LaunchCache, RecordedLaunch, argument
from physvision.physics.fluid import kernels

_LAUNCHES = LaunchCache()


class Launch:
    """A kernel bound to arrays, launched for each world; `close` frees its packed arguments."""

    def __init__(
        self, kernel: Any, inner_shape: tuple[int, ...], inputs: Any, scalars: Any, outputs: Any, microseconds: float
    ) -> None:
        """Bind a kernel to arrays.

        Args:
            kernel: Kernel with the arguments first world, inputs, numbers and outputs.
            inner_shape: Dimensions of the launch after that of the worlds.
            inputs: Arrays that it reads.
            scalars: Scalar arguments between inputs and outputs.
            outputs: Arrays that it writes, of at least one world.
            microseconds: Estimated time per world, µs.
        """
        self._arrays, self._device = (*inputs, *outputs), outputs[0].device
        self._key = (kernel, outputs[0].shape, inner_shape, scalars, self._device)

        def make() -> RecordedLaunch:
            arrays = [argument(array) for array in self._arrays]
            arguments = [*arrays[: len(inputs)], *scalars, *arrays[len(inputs) :]]
            batch = len(outputs[0])
            return RecordedLaunch(kernel, batch, arguments, self._device, microseconds * batch, inner=inner_shape)

        self._launch = _LAUNCHES.take(self._key, self._device, make)
        for k, tensor in enumerate(self._arrays):
            self._launch.set_memory(k if k < len(inputs) else k + len(scalars), tensor)
        self.run = self._launch.run

    def close(self) -> None:
        """Free the launch for other arrays."""
        _LAUNCHES.give_back(self._key, self._device, self._launch)

    def run_once(self) -> None:
        """Run the kernel once and free the launch."""
        self.run()
        self.close()


def launch_once(
    kernel: Any, inner_shape: tuple[int, ...], inputs: Any, scalars: Any, outputs: Any, microseconds: float
) -> None:
    """Run a kernel once on arrays; arguments as in `Launch`."""
    if len(outputs[0]):
        Launch(kernel, inner_shape, inputs, scalars, outputs, microseconds).run_once()


def periodic_launch(
    kernel: Any, inputs: tuple[Tensor, ...], scalars: tuple[float, ...], outputs: tuple[Tensor, ...]
) -> Launch:
    """Kernel of `momentum` on fields (batch, 2, nx, ny) that are periodic along both axes."""
    nx, ny = outputs[0].shape[2:]
    parts = ny if outputs[0].is_cuda else 1
    return Launch(kernel, (nx, parts), inputs, (*scalars, parts), outputs, 2e-3 * nx * ny)


def _launch_periodic(kernel: Any, inputs: tuple[Tensor, ...], spacing: tuple[float, float], output: Tensor) -> None:
    if len(output):
        periodic_launch(kernel, inputs, (1.0, *spacing), (output,)).run_once()


# pyright: reportIncompatibleMethodOverride=false
class _Convect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> tuple[Tensor, Tensor]:
        x = u.new_zeros(len(u), 2, u.shape[1], v.shape[2])
        x[:, 0, :, :-1], x[:, 1, :-1] = u, v
        n = torch.zeros_like(x)
        _launch_periodic(kernels.convect, (x,), spacing, n)
        ctx.save_for_backward(x)
        ctx.spacing = spacing
        return n[:, 0, 1:-1, 1:-2], n[:, 1, 1:-2, 1:-1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, u_rate: Tensor, v_rate: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        bar, x_bar = torch.zeros_like(x), torch.zeros_like(x)
        bar[:, 0, 1:-1, 1:-2], bar[:, 1, 1:-2, 1:-1] = u_rate, v_rate
        _launch_periodic(kernels.convect_backward, (x, bar), ctx.spacing, x_bar)
        return x_bar[:, 0, :, :-1], x_bar[:, 1, :-1], None


class _Advect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, c: Tensor, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> Tensor:
        c, u, v = c.contiguous(), u.contiguous(), v.contiguous()
        nx, ny = c.shape[1] - 6, c.shape[2] - 6
        rate = c.new_zeros(len(c), nx, ny)
        launch_once(kernels.carry, (nx + 1, ny + 1), (c, u, v), spacing, (rate,), 0.03 * nx * ny)
        ctx.save_for_backward(c, u, v)
        ctx.spacing = spacing
        return rate

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, rate_bar: Tensor) -> Any:
        fields = ctx.saved_tensors
        nx, ny = rate_bar.shape[1:]
        bars = tuple(torch.zeros_like(field) for field in fields)
        arrays = (rate_bar.contiguous(), *bars)
        launch_once(kernels.carry_backward, (nx + 1, ny + 1), fields, ctx.spacing, arrays, 0.1 * nx * ny)
        return *bars, None


def convect(u: Tensor, v: Tensor, spacing: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Momentum flux divergence ∇·(u u) at all faces, (batch, nx + 1, ny) and (batch, nx, ny + 1)."""
    rates: Any = _Convect.apply(u, v, spacing)
    return rates


def advect(c: Tensor, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> Tensor:
    """Advection rate −∇·(u c) of dye in all cells, (batch, nx, ny)."""
    rate: Any = _Advect.apply(c, u, v, spacing)
    return rate
