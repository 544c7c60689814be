"""Ensembles of networks with one batched matrix product for each layer, and updates of their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import InputError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": functional.elu,
    "swish": functional.silu,
}


class EnsembleMlp(nn.Module):
    """Multilayer perceptrons of one shape with separate weights, evaluated by one batched product for each layer.

    Attributes:
        weights: Weight matrices of each layer, (networks, inputs, outputs).
        biases: Biases of each layer, (networks, 1, outputs).
    """

    def __init__(
        self,
        ensemble_size: int,
        layer_sizes: Sequence[int],
        activation: str = "relu",
        bf16: bool = False,
        layer_norm: bool = False,
    ) -> None:
        """Initialize the weights as `nn.Linear` does.

        Args:
            ensemble_size: Number of networks.
            layer_sizes: Sizes of the input, the hidden layers and the output.
            activation: Activation of the hidden layers: "relu", "elu" or "swish".
            bf16: If true, products between hidden layers are computed in bfloat16, in half the time; the first and the
                last layer stay in single precision.
            layer_norm: If true, the output of each hidden layer is normalized to mean 0 and standard deviation 1 over
                its units, without learned gain and bias. Not available for "relu".
        """
        super().__init__()
        if layer_norm and activation == "relu":
            raise InputError("activation: expected 'elu' or 'swish' with layer_norm, got 'relu'")
        self.activation, self.bf16, self.layer_norm = ACTIVATIONS[activation], bf16, layer_norm
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for inputs, outputs in pairwise(layer_sizes):
            for parameters, rows in ((self.weights, inputs), (self.biases, 1)):
                values = torch.rand(ensemble_size, rows, outputs)
                parameters.append(nn.Parameter(inputs**-0.5 * (2 * values - 1)))
        # Alternating weights and biases in a plain list, because reading nn.ParameterList takes as long as a product.
        self._layers = [value for pair in zip(self.weights, self.biases, strict=True) for value in pair]

    def forward(self, inputs: Float[Tensor, "*members batch inputs"], frozen_weights: bool = False) -> Tensor:
        """Return the outputs of every network, (networks, batch, outputs).

        Args:
            inputs: Inputs shared by all networks, (batch, inputs), or one batch for each network.
            frozen_weights: If true, the weights are constants, and their gradients are not computed.
        """
        layers = [value.detach() for value in self._layers] if frozen_weights else self._layers
        layer = inputs.expand(len(layers[0]), -1, -1) if inputs.ndim == 2 else inputs
        if self.activation is torch.relu:
            return _ReluMlp.apply(self.bf16, layer, *layers)  # pyright: ignore[reportReturnType]
        last = len(layers) // 2 - 1
        for index, (weight, bias) in enumerate(zip(layers[::2], layers[1::2], strict=True)):
            dtype = torch.bfloat16 if self.bf16 and 0 < index < last else inputs.dtype
            layer = torch.baddbmm(bias.to(dtype), layer.to(dtype), weight.to(dtype))
            if index < last:
                layer = self.activation(layer)
                # No learned gain and bias, because the weights of the next layer can represent them.
                layer = functional.layer_norm(layer, layer.shape[-1:]) if self.layer_norm else layer
        return layer

    @torch.no_grad()
    def forward_with_cache(
        self, inputs: Float[Tensor, "batch inputs"]
    ) -> tuple[Float[Tensor, "members batch outputs"], ForwardCache]:
        """Return the outputs of ReLU networks and the cache for their explicit backward pass, without autograd."""
        return _relu_forward(self.bf16, inputs.expand(len(self._layers[0]), -1, -1), self._layers)

    @torch.no_grad()
    def backward_parameters(self, cache: ForwardCache, gradient: Float[Tensor, "members batch outputs"]) -> None:
        """Store gradients of weights and biases, given that of the outputs, in `grad`; see `flatten_parameters`."""
        for parameter, parameter_gradient in zip(self._layers, _relu_backward(cache, gradient)[1], strict=True):
            assert parameter.grad is not None
            parameter.grad.copy_(parameter_gradient)

    @torch.no_grad()
    def backward_inputs(self, cache: ForwardCache, gradient: Tensor) -> Float[Tensor, "batch inputs"]:
        """Return the gradient of the shared inputs, given that of the outputs."""
        input_gradient, _ = _relu_backward(cache, gradient, needs_parameters=False, needs_inputs=True)
        assert input_gradient is not None
        return input_gradient.sum(0)


class ForwardCache(NamedTuple):
    """Activations and weights of a forward pass of ReLU networks, for the backward pass.

    Attributes:
        layers: Inputs of each layer, (networks, batch, inputs).
        weights: Weights of each layer in the precision of the product.
    """

    layers: list[Tensor]
    weights: list[Tensor]

    def slice_batch(self, start: int) -> ForwardCache:
        """Return the cache of the rows of the batch from `start` on."""
        return ForwardCache([layer[:, start:] for layer in self.layers], self.weights)


def _relu_forward(bf16: bool, inputs: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, ForwardCache]:
    """Evaluate layers h' = max(0, h W + b), the last one without ReLU; parameters alternate between W and b."""
    last = len(parameters) // 2 - 1
    layer, cache = inputs, ForwardCache([], [])
    for index in range(last + 1):
        dtype = torch.bfloat16 if bf16 and 0 < index < last else inputs.dtype
        weight, bias, layer = parameters[2 * index].to(dtype), parameters[2 * index + 1].to(dtype), layer.to(dtype)
        cache.layers.append(layer)
        cache.weights.append(weight)
        if index < last:
            layer = torch.baddbmm(bias, layer, weight).relu_()
        else:
            layer = _narrow_product(layer, weight).add_(bias)
    return layer, cache


def _relu_backward(
    cache: ForwardCache, gradient: Tensor, needs_parameters: bool = True, needs_inputs: bool = False
) -> tuple[Tensor | None, list[Tensor]]:
    """Return the gradient of the inputs, and a list that alternates between the gradients of W and b.

    With g the gradient of a layer's outputs, set to zero where its ReLU was inactive, the gradient of W is hᵀ g, that
    of b is Σ g, and that of h is g Wᵀ.
    """
    gradients = []
    for index in reversed(range(len(cache.layers))):
        layer, weight = cache.layers[index], cache.weights[index]
        if needs_parameters:
            product = torch.bmm if gradients else _transposed_product
            gradients += [gradient.sum(1, keepdim=True), product(layer.mT, gradient)]
        if index or needs_inputs:
            gradient = gradient * weight.mT if weight.shape[2] == 1 else torch.bmm(gradient, weight.mT)
        if index:
            # The cached layer was rounded after its ReLU, so that it is still zero at the inactive units.
            gradient = torch.ops.aten.threshold_backward(gradient, layer, 0).to(cache.weights[index - 1].dtype)
    return gradient if needs_inputs else None, gradients[::-1]


def _narrow_product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply by a matrix with few columns, for which a plain batched product is slow."""
    columns = right.mT
    if columns.shape[1] == 1:
        return (left * columns).sum(2, keepdim=True)
    return torch.bmm(columns.contiguous(), left.mT).mT


def _transposed_product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply a transposed matrix by one with few columns, for which a plain batched product is slow."""
    return torch.bmm(right.mT, left.mT).mT


# pyright: reportIncompatibleMethodOverride=false
class _ReluMlp(torch.autograd.Function):
    """`_relu_forward` and `_relu_backward` as one autograd operation, in half the time of separate operations."""

    @staticmethod
    def forward(ctx: Any, bf16: bool, inputs: Tensor, *parameters: Tensor) -> Tensor:
        outputs, cache = _relu_forward(bf16, inputs, parameters)
        ctx.save_for_backward(*cache.layers, *cache.weights)
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        num_layers = len(ctx.saved_tensors) // 2
        cache = ForwardCache(list(ctx.saved_tensors[:num_layers]), list(ctx.saved_tensors[num_layers:]))
        needs_inputs, needs_parameters = ctx.needs_input_grad[1:3]
        input_gradient, gradients = _relu_backward(cache, gradient, needs_parameters, needs_inputs)
        parameter_gradients = [value.to(gradient.dtype) for value in gradients] or [None] * (2 * num_layers)
        return None, input_gradient, *parameter_gradients


@torch.no_grad()
def flatten_parameters(parameters: Sequence[nn.Parameter]) -> nn.Parameter:
    """Concatenate parameters and their gradients in flat tensors, so that an optimizer updates them all at once.

    The parameters become views of the flat parameter, until they are copied or moved to another device.
    """
    flat = nn.Parameter(torch.cat([parameter.flatten() for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    sizes = [parameter.numel() for parameter in parameters]
    views = zip(parameters, flat.detach().split(sizes), flat.grad.split(sizes), strict=True)
    for parameter, values, gradient in views:
        parameter.data, parameter.grad = values.view_as(parameter), gradient.view_as(parameter)
    return flat


def polyak_update(target: nn.Module, online: nn.Module, tau: float) -> None:
    """Move the weights of a target network by a fraction tau toward those of the online network."""
    weights = [[parameter.detach() for parameter in network.parameters()] for network in (target, online)]
    torch._foreach_lerp_(weights[0], weights[1], tau)
