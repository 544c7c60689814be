"""What flow carries, as operations that torch differentiates: fields with ghosts in, rates of change out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from physvision.kernels.launching import Repeated, Shelf, argument
from physvision.physics.fluid import kernels

_CELL = 0.03  # a guess at the microseconds that a cell takes
_SHELF = Shelf()


def _run(kernel: Any, cells: tuple[int, int], spacing: tuple[float, float], given: Any, found: Any) -> None:
    tensors, batch, device = (*given, *found), given[0].shape[0], given[0].device
    if not batch:
        return

    def make() -> Repeated:
        arrays = [argument(each) for each in tensors]
        inputs = [*arrays[: len(given)], *spacing, *arrays[len(given) :]]
        work = _CELL * batch * cells[0] * cells[1]
        return Repeated(kernel, batch, inputs, device, work, inner=(cells[0] + 1, cells[1] + 1))

    key = (kernel, batch, cells, spacing, device)
    launch = _SHELF.take(key, device, make)
    for at, tensor in enumerate(tensors):
        launch.move(at if at < len(given) else at + 2, tensor)
    launch.run()
    _SHELF.give(key, device, launch)


# pyright: reportIncompatibleMethodOverride=false
class _Convect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> tuple[Tensor, Tensor]:
        u, v = u.contiguous(), v.contiguous()
        nx, ny = u.shape[1] - 3, u.shape[2] - 2
        found = u.new_empty(len(u), nx + 1, ny), u.new_empty(len(u), nx, ny + 1)
        _run(kernels.convect, (nx, ny), spacing, (u, v), found)
        ctx.save_for_backward(u, v)
        ctx.spacing = spacing
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, u_rate: Tensor, v_rate: Tensor) -> Any:
        u, v = ctx.saved_tensors
        found = torch.zeros_like(u), torch.zeros_like(v)
        cells = (u.shape[1] - 3, u.shape[2] - 2)
        given = (u_rate.contiguous(), v_rate.contiguous())
        _run(kernels.convect_backward, cells, ctx.spacing, (u, v), (*given, *found))
        return *found, None


class _Carry(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, c: Tensor, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> Tensor:
        c, u, v = c.contiguous(), u.contiguous(), v.contiguous()
        nx, ny = c.shape[1] - 6, c.shape[2] - 6
        rate = c.new_zeros(len(c), nx, ny)
        _run(kernels.carry, (nx, ny), spacing, (c, u, v), (rate,))
        ctx.save_for_backward(c, u, v)
        ctx.spacing = spacing
        return rate

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, rate_bar: Tensor) -> Any:
        fields = ctx.saved_tensors
        cells = (rate_bar.shape[1], rate_bar.shape[2])
        found = tuple(torch.zeros_like(each) for each in fields)
        _run(kernels.carry_backward, cells, ctx.spacing, fields, (rate_bar.contiguous(), *found))
        return *found, None


def convect(u: Tensor, v: Tensor, spacing: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """∇·(u u) at all faces, (batch, nx + 1, ny) and (batch, nx, ny + 1)."""
    found: Any = _Convect.apply(u, v, spacing)
    return found


def carry(c: Tensor, u: Tensor, v: Tensor, spacing: tuple[float, float]) -> Tensor:
    """−∇·(u c) in all cells, (batch, nx, ny)."""
    found: Any = _Carry.apply(c, u, v, spacing)
    return found
