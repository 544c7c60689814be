"""What flow carries, as operations that torch differentiates: fields with ghosts in, rates of change out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from physvision.kernels.launching import LaunchCache, RecordedLaunch, argument
from physvision.physics.fluid import kernels

_SHELF = LaunchCache()


class Launch:
    """A kernel bound to arrays, launched for each world and row; `close` lends its packed arguments to others."""

    def __init__(
        self, kernel: Any, rows: tuple[int, ...], given: Any, numbers: Any, found: Any, microseconds: float
    ) -> None:
        """Bind it.

        Args:
            kernel: its arguments are the first world, arrays that it reads, numbers, and arrays that it fills in.
            rows: of each world.
            given: arrays that it reads.
            numbers: between them.
            found: arrays that it fills in, of at least one world.
            microseconds: a guess at the time of a world.
        """
        self._arrays, self._device = (*given, *found), found[0].device
        self._key = (kernel, found[0].shape, rows, numbers, self._device)

        def make() -> RecordedLaunch:
            arrays = [argument(each) for each in self._arrays]
            inputs = [*arrays[: len(given)], *numbers, *arrays[len(given) :]]
            batch = len(found[0])
            return RecordedLaunch(kernel, batch, inputs, self._device, microseconds * batch, inner=rows)

        self._launch = _SHELF.take(self._key, self._device, make)
        for at, tensor in enumerate(self._arrays):
            self._launch.move(at if at < len(given) else at + len(numbers), tensor)
        self.run = self._launch.run

    def close(self) -> None:
        """It is not run any more."""
        _SHELF.give(self._key, self._device, self._launch)

    def run_once(self) -> None:
        """Run it for the only time."""
        self.run()
        self.close()


def launched(kernel: Any, rows: tuple[int, ...], given: Any, numbers: Any, found: Any, microseconds: float) -> None:
    """Run a kernel once."""
    if len(found[0]):
        Launch(kernel, rows, given, numbers, found, microseconds).run_once()


def on_ring(kernel: Any, given: tuple[Tensor, ...], numbers: tuple[float, ...], found: tuple[Tensor, ...]) -> Launch:
    """A kernel of `momentum` on fields (batch, 2, nx, ny), which it takes for periodic along both axes."""
    nx, ny = found[0].shape[2:]
    parts = ny if found[0].is_cuda else 1
    return Launch(kernel, (nx, parts), given, (*numbers, parts), found, 2e-3 * nx * ny)


def _once(kernel: Any, given: tuple[Tensor, ...], spacing: tuple[float, float], found: Tensor) -> None:
    if len(found):
        on_ring(kernel, given, (1.0, *spacing), (found,)).run_once()


# pyright: reportIncompatibleMethodOverride=false
class _Convect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> tuple[Tensor, Tensor]:
        x = u.new_zeros(len(u), 2, u.shape[1], v.shape[2])
        x[:, 0, :, :-1], x[:, 1, :-1] = u, v
        n = torch.zeros_like(x)
        _once(kernels.convect, (x,), spacing, n)
        ctx.save_for_backward(x)
        ctx.spacing = spacing
        return n[:, 0, 1:-1, 1:-2], n[:, 1, 1:-2, 1:-1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, u_rate: Tensor, v_rate: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        bar, found = torch.zeros_like(x), torch.zeros_like(x)
        bar[:, 0, 1:-1, 1:-2], bar[:, 1, 1:-2, 1:-1] = u_rate, v_rate
        _once(kernels.convect_backward, (x, bar), ctx.spacing, found)
        return found[:, 0, :, :-1], found[:, 1, :-1], None


class _Carry(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, c: Tensor, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> Tensor:
        c, u, v = c.contiguous(), u.contiguous(), v.contiguous()
        nx, ny = c.shape[1] - 6, c.shape[2] - 6
        rate = c.new_zeros(len(c), nx, ny)
        launched(kernels.carry, (nx + 1, ny + 1), (c, u, v), spacing, (rate,), 0.03 * nx * ny)
        ctx.save_for_backward(c, u, v)
        ctx.spacing = spacing
        return rate

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, rate_bar: Tensor) -> Any:
        fields = ctx.saved_tensors
        nx, ny = rate_bar.shape[1:]
        found = tuple(torch.zeros_like(each) for each in fields)
        given = (rate_bar.contiguous(), *found)
        launched(kernels.carry_backward, (nx + 1, ny + 1), fields, ctx.spacing, given, 0.1 * nx * ny)
        return *found, None


def convect(u: Tensor, v: Tensor, spacing: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """∇·(u u) at all faces, (batch, nx + 1, ny) and (batch, nx, ny + 1)."""
    found: Any = _Convect.apply(u, v, spacing)
    return found


def carry(c: Tensor, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> Tensor:
    """−∇·(u c) in all cells, (batch, nx, ny)."""
    found: Any = _Carry.apply(c, u, v, spacing)
    return found
