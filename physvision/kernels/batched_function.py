"""Autograd functions of batched computations that are not made of torch operations.

An `Operation` computes outputs, and gradients from outputs; all its tensors have the batch in front. Two autograd
functions connect it to torch: gradients, `torch.func.grad`, `vmap` and `jacrev` (a vmap over the backward pass, which
is therefore a function too). vmap folds its dimension into the batch. Forward-mode (`jvp`, `jacfwd`) and second
derivatives are not implemented and raise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from physvision.core.errors import DerivativeError

Tensors = tuple[Any, ...]  # of tensors, or None where there is none


class Operation(ABC):
    """A computation on batches and its adjoint.

    Attributes:
        differentiable: Number of outputs, from the first on, that have gradients.
    """

    differentiable: int

    @abstractmethod
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Compute the outputs from the inputs."""

    @abstractmethod
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Compute the gradients to the inputs, anything where not needed, from those to the outputs, None for zero."""


def apply(operation: Operation, *inputs: Tensor | None) -> tuple[Tensor, ...]:
    """Compute the outputs of an operation, with gradients."""
    if not is_traced(*inputs):
        return operation.forward(*inputs)
    outputs: Any = _applied(_Primal, operation, *inputs)
    return outputs


def is_traced(*inputs: Tensor | None) -> bool:
    """If true, torch traces these tensors: for gradients, in a functional transform, or by dual numbers."""
    if torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0:
        return True
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in inputs)


def _applied(function: Any, *arguments: Any) -> Any:
    """Call `function.apply`, outside of functional transforms without binding default arguments.

    Torch inspects the signature of the function for defaults in each call, which takes a third of a short simulation.
    """
    if torch._C._are_functorch_transforms_active():
        return function.apply(*arguments)
    bare: Any = super(torch.autograd.Function, function)
    return bare.apply(*arguments)


_NO_JVP = (
    "forward-mode derivatives (torch.func.jvp, jacfwd, dual numbers) are not implemented for this computation; use "
    "reverse mode: backward(), torch.func.vjp or jacrev"
)
_NO_SECOND = (
    "second derivatives (backward through a gradient, hessian) are not implemented for this computation; use finite "
    "differences of its gradients, or Gauss–Newton steps from jacrev"
)


# pyright: reportIncompatibleMethodOverride=false
class _Primal(torch.autograd.Function):
    @staticmethod
    def forward(operation: Operation, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        return operation.forward(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
        ctx.operation, ctx.count = inputs[0], len(inputs) - 1
        ctx.save_for_backward(*inputs[1:], *output)
        ctx.mark_non_differentiable(*output[ctx.operation.differentiable :])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        gradients = gradients[: ctx.operation.differentiable]
        if all(gradient is None for gradient in gradients):
            return (None,) * (ctx.count + 1)
        needed = tuple(ctx.needs_input_grad[1:])
        if torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
            gradients_out: Any = _applied(_Adjoint, ctx.operation, needed, *ctx.saved_tensors, *gradients)
        else:  # the gradient itself is not differentiated
            gradients_out = _adjoint(ctx.operation, needed, *ctx.saved_tensors, *gradients)
        return (None, *gradients_out)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise DerivativeError(_NO_JVP)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, operation: Operation, *inputs: Tensor | None) -> tuple:
        outputs = apply(operation, *_folded(info.batch_size, in_dims[1:], inputs))
        return _unfolded(info.batch_size, outputs)


def _adjoint(operation: Operation, needed: tuple[bool, ...], *tensors: Tensor | None) -> Tensors:
    """Gradients to the inputs, from inputs, outputs and the gradients to differentiable outputs."""
    count, differentiable = len(needed), operation.differentiable
    inputs, outputs, bars = tensors[:count], tensors[count:-differentiable], tensors[-differentiable:]
    gradients = operation.backward(inputs, outputs, bars, needed)
    return tuple(gradient if is_needed else None for gradient, is_needed in zip(gradients, needed, strict=True))


class _Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(operation: Operation, needed: tuple[bool, ...], *tensors: Tensor | None) -> Tensors:
        return _adjoint(operation, needed, *tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensors) -> None:
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        raise DerivativeError(_NO_SECOND)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise DerivativeError(_NO_JVP)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple, operation: Operation, needed: tuple[bool, ...], *tensors: Tensor | None
    ) -> tuple:
        gradients: Any = _Adjoint.apply(operation, needed, *_folded(info.batch_size, in_dims[2:], tensors))
        return _unfolded(info.batch_size, gradients)


def _folded(size: int, in_dims: tuple, tensors: Tensors) -> list[Tensor | None]:
    """Fold the mapped dimension of each tensor into the batch."""
    folded: list[Tensor | None] = []
    for tensor, dim in zip(tensors, in_dims, strict=True):
        if tensor is None:
            folded.append(None)
        else:
            front = tensor.unsqueeze(0).expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            # With memory of its own: an operation may share the gradient of shared worlds, and a vmap shares nothing.
            folded.append(front.flatten(0, 1).contiguous())
    return folded


def _unfolded(size: int, tensors: Tensors) -> tuple[Tensors, tuple]:
    values = tuple(None if tensor is None else tensor.unflatten(0, (size, -1)) for tensor in tensors)
    return values, tuple(None if value is None else 0 for value in values)
