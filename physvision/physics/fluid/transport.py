"""What flow carries, as operations that torch differentiates: fields with ghosts in, rates of change out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from physvision.kernels.launching import Repeated, Shelf, argument
from physvision.physics.fluid import kernels

_SHELF = Shelf()


def launched(kernel: Any, rows: tuple[int, ...], given: Any, numbers: Any, found: Any, work: float) -> None:
    """Run a kernel for each world and row, with arrays that it reads, numbers, and arrays that it fills in.

    `work` is a guess at the microseconds that a world takes.
    """
    tensors, batch, device = (*given, *found), found[0].shape[0], found[0].device
    if not batch:
        return

    def make() -> Repeated:
        arrays = [argument(each) for each in tensors]
        inputs = [*arrays[: len(given)], *numbers, *arrays[len(given) :]]
        return Repeated(kernel, batch, inputs, device, work * batch, inner=rows)

    key = (kernel, found[0].shape, rows, numbers, device)
    launch = _SHELF.take(key, device, make)
    for at, tensor in enumerate(tensors):
        launch.move(at if at < len(given) else at + len(numbers), tensor)
    launch.run()
    _SHELF.give(key, device, launch)


def on_ring(kernel: Any, given: tuple[Tensor, ...], numbers: tuple[float, ...], found: tuple[Tensor, ...]) -> None:
    """Run a kernel of `momentum` on fields (batch, 2, nx, ny), which it takes for periodic along both axes."""
    nx, ny = found[0].shape[2:]
    parts = ny if found[0].is_cuda else 1
    launched(kernel, (nx, parts), given, (*numbers, parts), found, 2e-3 * nx * ny)


# pyright: reportIncompatibleMethodOverride=false
class _Convect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> tuple[Tensor, Tensor]:
        x = u.new_zeros(len(u), 2, u.shape[1], v.shape[2])
        x[:, 0, :, :-1], x[:, 1, :-1] = u, v
        n = torch.empty_like(x)
        on_ring(kernels.convect, (x,), spacing, (n,))
        ctx.save_for_backward(x)
        ctx.spacing = spacing
        return n[:, 0, 1:-1, 1:-2], n[:, 1, 1:-2, 1:-1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, u_rate: Tensor, v_rate: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        bar, found = torch.zeros_like(x), torch.empty_like(x)
        bar[:, 0, 1:-1, 1:-2], bar[:, 1, 1:-2, 1:-1] = u_rate, v_rate
        on_ring(kernels.convect_backward, (x, bar), ctx.spacing, (found,))
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
