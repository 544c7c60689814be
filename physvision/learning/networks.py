"""Ensembles of networks as one matrix product a layer, running normalization, and the stochastic actor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.control.policies import Policy
from physvision.core import InputError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": functional.elu,
    "swish": functional.silu,
}
MIN_LOG_STD, MAX_LOG_STD = -20.0, 2.0  # as in the SAC authors' program
MAX_NORMALIZED = 10.0  # standard deviations at which normalized observations are clipped


class EnsembleMlp(nn.Module):
    """Multilayer perceptrons of one shape with separate weights, evaluated together by one product a layer.

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
        # Weight and bias of each layer in turn as a plain list: to read nn.ParameterList takes as long as a product.
        self._layers = [value for pair in zip(self.weights, self.biases, strict=True) for value in pair]

    def forward(self, inputs: Float[Tensor, "*members batch inputs"], frozen: bool = False) -> Tensor:
        """Return the outputs of every network, (networks, batch, outputs).

        Args:
            inputs: Inputs shared by all networks, (batch, inputs), or one batch for each network.
            frozen: If true, the weights are constants, which saves the computation of their gradients.
        """
        layers = [value.detach() for value in self._layers] if frozen else self._layers
        layer = inputs.expand(len(layers[0]), -1, -1) if inputs.ndim == 2 else inputs
        if self.activation is torch.relu:
            return _ReluMlp.apply(self.bf16, layer, *layers)  # pyright: ignore[reportReturnType]
        last = len(layers) // 2 - 1
        for index, (weight, bias) in enumerate(zip(layers[::2], layers[1::2], strict=True)):
            dtype = torch.bfloat16 if self.bf16 and 0 < index < last else inputs.dtype
            layer = torch.baddbmm(bias.to(dtype), layer.to(dtype), weight.to(dtype))
            if index < last:
                layer = self.activation(layer)
                # Without learned gain and bias, which the weights of the next layer can represent.
                layer = functional.layer_norm(layer, layer.shape[-1:]) if self.layer_norm else layer
        return layer

    @torch.no_grad()
    def forward_cached(
        self, inputs: Float[Tensor, "batch inputs"]
    ) -> tuple[Float[Tensor, "members batch outputs"], ForwardCache]:
        """Return the outputs of ReLU networks and what their written-out backward pass needs, without autograd."""
        return _relu_forward(self.bf16, inputs.expand(len(self._layers[0]), -1, -1), self._layers)

    @torch.no_grad()
    def backward_parameters(self, cache: ForwardCache, gradient: Float[Tensor, "members batch outputs"]) -> None:
        """Write the gradients of weights and biases, given that of the outputs; see `flatten_parameters`."""
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

    def rows(self, start: int) -> ForwardCache:
        """Return the cache of the batch's rows from a start on."""
        return ForwardCache([layer[:, start:] for layer in self.layers], self.weights)


def _relu_forward(bf16: bool, inputs: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, ForwardCache]:
    """Evaluate layers h' = max(0, h W + b) and a linear last one; the parameters are W and b of each layer in turn."""
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
    """Return the gradient of the inputs, and those of W and b of each layer in turn.

    With g the gradient of a layer's outputs, zero where ReLU was inactive: that of W is hᵀ g, of b Σ g, of h g Wᵀ.
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
            # A layer was rounded after its ReLU, so that it is zero at the same units.
            gradient = torch.ops.aten.threshold_backward(gradient, layer, 0).to(cache.weights[index - 1].dtype)
    return gradient if needs_inputs else None, gradients[::-1]


def _narrow_product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply by a matrix of few columns, for which batched products are slow as they stand."""
    columns = right.mT
    if columns.shape[1] == 1:
        return (left * columns).sum(2, keepdim=True)
    return torch.bmm(columns.contiguous(), left.mT).mT


def _transposed_product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply a transposed matrix by one of few columns, for which batched products are slow as they stand."""
    return torch.bmm(right.mT, left.mT).mT


# pyright: reportIncompatibleMethodOverride=false
class _ReluMlp(torch.autograd.Function):
    """`_relu_forward` and `_relu_backward` as one autograd operation, in half the time of separate ones."""

    @staticmethod
    def forward(ctx: Any, bf16: bool, inputs: Tensor, *parameters: Tensor) -> Tensor:
        outputs, cache = _relu_forward(bf16, inputs, parameters)
        ctx.save_for_backward(*cache.layers, *cache.weights)
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        count = len(ctx.saved_tensors) // 2
        cache = ForwardCache(list(ctx.saved_tensors[:count]), list(ctx.saved_tensors[count:]))
        needs_inputs, needs_parameters = ctx.needs_input_grad[1:3]
        input_gradient, gradients = _relu_backward(cache, gradient, needs_parameters, needs_inputs)
        parameter_gradients = [value.to(gradient.dtype) for value in gradients] or [None] * (2 * count)
        return None, input_gradient, *parameter_gradients


@torch.no_grad()
def flatten_parameters(parameters: Sequence[nn.Parameter]) -> nn.Parameter:
    """Lay parameters and their gradients side by side in one tensor, so that an optimizer steps them at once.

    The parameters become views of it, until they are copied or moved to another device.
    """
    flat = nn.Parameter(torch.cat([parameter.flatten() for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    sizes = [parameter.numel() for parameter in parameters]
    views = zip(parameters, flat.detach().split(sizes), flat.grad.split(sizes), strict=True)
    for parameter, values, gradient in views:
        parameter.data, parameter.grad = values.view_as(parameter), gradient.view_as(parameter)
    return flat


def polyak_update(target: nn.Module, online: nn.Module, tau: float) -> None:
    """Move the weights of a target network by a fraction tau towards those of the online network."""
    weights = [[parameter.detach() for parameter in network.parameters()] for network in (target, online)]
    torch._foreach_lerp_(weights[0], weights[1], tau)


class RunningNormalizer(nn.Module):
    """Normalization of rows by the mean and variance of all rows so far.

    Attributes:
        mean: Mean of each entry.
        variance: Variance of each entry.
        count: Number of rows.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, size: int) -> None:
        """Start with mean 0 and variance 1.

        Args:
            size: Length of a row.
        """
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    def forward(self, rows: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
        """Return the distances from the mean in standard deviations, clipped to ±`MAX_NORMALIZED`."""
        normalized = (rows - self.mean.to(rows)) / self.variance.clamp(min=1e-5).sqrt().to(rows)
        return normalized.clamp(-MAX_NORMALIZED, MAX_NORMALIZED)

    @torch.no_grad()
    def update(self, rows: Float[Tensor, "batch size"]) -> None:
        """Include more rows in the mean and variance."""
        rows = rows.double()
        mean, variance = rows.mean(0), rows.square().mean(0) - rows.mean(0).square()
        count = self.count + len(rows)
        fraction, delta = len(rows) / count, mean - self.mean
        # Variance of a union: mean of both variances, plus the spread of the two means.
        self.variance += fraction * (variance - self.variance + (1 - fraction) * delta.square())
        self.mean += fraction * delta
        self.count.copy_(count)


class Actor(Policy):
    """A stochastic policy: a network whose outputs are means and logarithms of standard deviations.

    `sample_tanh_normal` turns the outputs into actions in [−1, 1].

    Attributes:
        layers: Network from observations to outputs.
        action_size: Length of an action.
        normalizer: Running normalization of observations; None without.
        log_std: State-independent logarithms of standard deviations; None if the network computes them.
    """

    log_std: nn.Parameter | None

    def __init__(
        self,
        obs_size: int,
        hidden_sizes: Sequence[int],
        action_size: int,
        activation: str = "relu",
        *,
        bf16: bool = False,
        init_log_std: float = 0.0,
        normalize_obs: bool = False,
        layer_norm: bool = False,
        state_independent_std: bool = False,
    ) -> None:
        """Initialize the weights.

        Args:
            obs_size: Length of an observation.
            hidden_sizes: Sizes of the hidden layers.
            action_size: Length of an action.
            activation: Activation of the hidden layers, see `EnsembleMlp`.
            bf16: If true, products between hidden layers are computed in bfloat16.
            init_log_std: Initial logarithm of the standard deviations, added to the network's if it computes them.
            normalize_obs: If true, observations are normalized by their running mean and standard deviation.
            layer_norm: If true, hidden layers are normalized, see `EnsembleMlp`.
            state_independent_std: If true, standard deviations are parameters; otherwise the network computes them.
        """
        super().__init__()
        outputs = action_size if state_independent_std else 2 * action_size
        self.layers = EnsembleMlp(1, (obs_size, *hidden_sizes, outputs), activation, bf16, layer_norm)
        self.action_size = action_size
        self.normalizer = RunningNormalizer(obs_size) if normalize_obs else None
        self.log_std = nn.Parameter(torch.full((action_size,), init_log_std)) if state_independent_std else None
        if not state_independent_std:
            with torch.no_grad():
                self.layers.biases[-1][..., action_size:] += init_log_std

    def zero_output(self) -> None:
        """Set the last layer to zero, so that all its outputs are zero."""
        nn.init.zeros_(self.layers.weights[-1])
        nn.init.zeros_(self.layers.biases[-1])

    def forward(self, obs: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and logarithms of standard deviations, side by side, and the empty hidden state."""
        return self.distribution(obs), hidden

    def distribution(self, obs: Float[Tensor, "batch obs"]) -> Float[Tensor, "batch outputs"]:
        """Return means and logarithms of standard deviations, side by side."""
        outputs = self.layers(obs if self.normalizer is None else self.normalizer(obs))[0]
        return outputs if self.log_std is None else torch.cat([outputs, self.log_std.expand_as(outputs)], 1)

    def sample(
        self, obs: Float[Tensor, "batch obs"], generator: torch.Generator
    ) -> tuple[Float[Tensor, "batch actions"], Float[Tensor, " batch"]]:
        """Draw actions and return them with their log-probabilities."""
        noise = torch.randn(len(obs), self.action_size, generator=generator)
        return sample_tanh_normal(self.distribution(obs), noise)

    @torch.no_grad()
    def deterministic_action(self, obs: Float[Tensor, "batch obs"]) -> Float[Tensor, "batch actions"]:
        """Return the actions without noise."""
        return self.distribution(obs)[:, : self.action_size].tanh()


def sample_tanh_normal(
    output: Float[Tensor, "batch outputs"], noise: Float[Tensor, "batch actions"]
) -> tuple[Float[Tensor, "batch actions"], Float[Tensor, " batch"]]:
    """Return actions a = tanh(u) of a normal u, and their log-probabilities.

    Args:
        output: Means and logarithms of standard deviations of u, side by side.
        noise: Standard normal noise that u is made of.
    """
    return _TanhNormal.apply(output, noise)  # pyright: ignore[reportReturnType]


class TanhNormalSample(NamedTuple):
    """A sample of the tanh-normal distribution, with what its backward pass needs.

    With m the mean and s the logarithm of the standard deviation: a = tanh(u), u = m + e^s n, and
    log p(a) = log N(u) − Σ log(1 − a²), where log(1 − tanh² u) = 2 (log 2 − u − softplus(−2u)) does not overflow.

    Attributes:
        action: Action a.
        log_prob: Log-probability log p(a).
        scaled_noise: Noise in units of u, e^s n.
        unclipped: If true, s is within its bounds.
    """

    action: Float[Tensor, "batch actions"]
    log_prob: Float[Tensor, " batch"]
    scaled_noise: Float[Tensor, "batch actions"]
    unclipped: Bool[Tensor, "batch actions"]

    @classmethod
    def draw(cls, output: Tensor, noise: Tensor) -> TanhNormalSample:
        """Return the sample of m and s, side by side, and of the noise n."""
        mean, raw_log_std = output.chunk(2, 1)
        log_std = raw_log_std.clamp(MIN_LOG_STD, MAX_LOG_STD)
        scaled_noise = noise * log_std.exp()
        pre_tanh = mean + scaled_noise
        normal_log_prob = -0.5 * noise.square() - log_std - 0.5 * log(2 * torch.pi)
        log_slope = 2 * (log(2) - pre_tanh - functional.softplus(-2 * pre_tanh))
        return cls(pre_tanh.tanh(), (normal_log_prob - log_slope).sum(1), scaled_noise, raw_log_std == log_std)

    def backward(self, action_gradient: Tensor, log_prob_gradient: Tensor) -> Float[Tensor, "batch outputs"]:
        """Return the gradient of m and s.

        With g and h the gradients of a and log p: that of m is g (1 − a²) + 2 h a, that of s is e^s n times it, less h.
        """
        h = log_prob_gradient[:, None]
        mean_gradient = action_gradient * (1 - self.action.square()) + 2 * h * self.action
        return torch.cat([mean_gradient, (mean_gradient * self.scaled_noise - h) * self.unclipped], 1)

    def rows(self, start: int, end: int | None = None) -> TanhNormalSample:
        """Return the sample's rows from a start up to an end."""
        return TanhNormalSample(*(value[start:end] for value in self))


class _TanhNormal(torch.autograd.Function):
    """`TanhNormalSample` as one autograd operation."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        sample = TanhNormalSample.draw(output, noise)
        ctx.save_for_backward(*sample)
        return sample.action, sample.log_prob

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, action_gradient: Tensor, log_prob_gradient: Tensor) -> tuple[Tensor, None]:
        return TanhNormalSample(*ctx.saved_tensors).backward(action_gradient, log_prob_gradient), None
