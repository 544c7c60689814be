"""Differentiate a batched computation that is not made of torch operations.

An `Operation` says how to compute outputs, and gradients from outputs; all its tensors have the batch in front. Two
autograd Functions make torch's machinery of it: gradients, `torch.func.grad`, `vmap` and `jacrev` (a vmap over the
backward pass, which is why that is a Function too). vmap folds its dimension into the batch. There are no derivatives
forward (`jvp`, `jacfwd`) and no second ones; who asks for them is told.
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
        differentiable: the first so many outputs have gradients.
    """

    differentiable: int

    @abstractmethod
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """The outputs."""

    @abstractmethod
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """The gradients to the inputs, from those to the outputs (None for zero); None where not needed."""


def apply(operation: Operation, *inputs: Tensor | None) -> tuple[Tensor, ...]:
    """Compute the outputs, with gradients."""
    if not is_followed(*inputs):
        return operation.forward(*inputs)
    outputs: Any = _applied(_Primal, operation, *inputs)
    return outputs


def is_followed(*inputs: Tensor | None) -> bool:
    """Whether torch follows what becomes of these: for gradients, in a functional transform, or by dual numbers."""
    if torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0:
        return True
    return torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in inputs)


def _applied(function: Any, *arguments: Any) -> Any:
    """What `function.apply` gives; outside of functional transforms without binding defaults, which there are none of.

    Torch inspects the function's signature for that anew in each call, in a third of the time of a short simulation.
    """
    if torch._C._are_functorch_transforms_active():
        return function.apply(*arguments)
    bare: Any = super(torch.autograd.Function, function)
    return bare.apply(*arguments)


_NO_JVP = (
    "derivatives forward (torch.func.jvp, jacfwd, dual numbers) are not there for this computation; use gradients: "
    "backward(), torch.func.vjp or jacrev"
)
_NO_SECOND = (
    "second derivatives (backward through a gradient, hessian) are not there for this computation; take differences of "
    "its gradients, or Gauss–Newton steps from jacrev"
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
            found: Any = _applied(_Adjoint, ctx.operation, needed, *ctx.saved_tensors, *gradients)
        else:  # nobody asks for a derivative of the gradient
            found = _adjoint(ctx.operation, needed, *ctx.saved_tensors, *gradients)
        return (None, *found)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise DerivativeError(_NO_JVP)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, operation: Operation, *inputs: Tensor | None) -> tuple:
        outputs = apply(operation, *_folded(info.batch_size, in_dims[1:], inputs))
        return _unfolded(info.batch_size, outputs)


def _adjoint(operation: Operation, needed: tuple[bool, ...], *tensors: Tensor | None) -> Tensors:
    """The gradients to the inputs, from these, the outputs and the gradients to those that have one."""
    count, given = len(needed), operation.differentiable
    return operation.backward(tensors[:count], tensors[count:-given], tensors[-given:], needed)


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
    """Each tensor with the mapped dimension in front of the batch, and both made one."""
    folded: list[Tensor | None] = []
    for tensor, dim in zip(tensors, in_dims, strict=True):
        if tensor is None:
            folded.append(None)
        else:
            front = tensor.unsqueeze(0).expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            # With memory of its own: an operation may give what worlds share one gradient, and maps share nothing.
            folded.append(front.flatten(0, 1).contiguous())
    return folded


def _unfolded(size: int, tensors: Tensors) -> tuple[Tensors, tuple]:
    values = tuple(None if tensor is None else tensor.unflatten(0, (size, -1)) for tensor in tensors)
    return values, tuple(None if value is None else 0 for value in values)
