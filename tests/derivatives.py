"""Compare gradients with central differences: whole Jacobians, whose rows a map makes one batch of."""

# pyright: reportAssignmentType=false

from collections.abc import Callable

import torch
from torch import Tensor


def assert_gradients(
    function: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: tuple[Tensor, ...] | list[Tensor],
    eps: float,
    atol: float,
    rtol: float,
) -> None:
    """Assert that the Jacobian to every input is that of differences, and that a backward pass alone gives the same."""

    def row(*values: Tensor) -> Tensor:
        outputs = function(*values)
        return torch.cat([output.flatten() for output in (outputs if isinstance(outputs, tuple) else (outputs,))])

    values = [value.detach() for value in inputs]
    at, pull = torch.func.vjp(row, *values)
    jacobians = torch.func.vmap(pull)(torch.eye(at.numel(), dtype=at.dtype))
    for place, (value, jacobian) in enumerate(zip(values, jacobians, strict=True)):
        moves = eps * torch.eye(value.numel(), dtype=value.dtype).reshape(-1, *value.shape)

        def moved(move: Tensor, place: int = place, value: Tensor = value) -> Tensor:
            return row(*values[:place], value + move, *values[place + 1 :])

        with torch.no_grad():
            ahead, behind = torch.func.vmap(moved)(torch.cat([moves, -moves])).chunk(2)
        differences = (ahead - behind).mT.reshape(jacobian.shape) / (2 * eps)
        torch.testing.assert_close(jacobian, differences, atol=atol, rtol=rtol)
    weights = torch.randn_like(at)
    candidates = [value.clone().requires_grad_() for value in values]
    plain = torch.autograd.grad(row(*candidates), candidates, weights, materialize_grads=True)
    for gradient, jacobian in zip(plain, jacobians, strict=True):
        torch.testing.assert_close(gradient, torch.tensordot(weights, jacobian, 1), atol=1e-11, rtol=1e-9)
