"""Networks side by side as one product of matrices, and the policy that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.control.policies import Policy
from physvision.core import InputError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": functional.elu,
    "swish": functional.silu,
}
_LEAST, _MOST = -20.0, 2.0  # logarithm of a deviation


class Layers(nn.Module):
    """Several networks of one shape, each with weights of its own, all in one product a layer."""

    def __init__(
        self,
        members: int,
        widths: Sequence[int],
        activation: str = "relu",
        rounded: bool = False,
        levelled: bool = False,
    ) -> None:
        """Draw the weights, as `nn.Linear` does.

        Args:
            members: how many networks.
            widths: numbers that come in, of the layers between, and that go out.
            activation: "relu", "elu" or "swish".
            rounded: whether products between hidden layers of rectifiers are taken of bfloat16, in half of the
                time. What comes in and what goes out stays in single precision.
            levelled: whether what comes out of each layer between is shifted and scaled to mean 0 and deviation 1 over
                its numbers, which bounds what the next one is told; not of rectifiers.
        """
        super().__init__()
        if levelled and activation == "relu":
            raise InputError("activation: expected one other than relu where layers are levelled, got 'relu'")
        self.activation, self.rounded, self.levelled = ACTIVATIONS[activation], rounded, levelled
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for low, high in pairwise(widths):
            for kept, shape in ((self.weights, (members, low, high)), (self.biases, (members, 1, high))):
                kept.append(nn.Parameter(low**-0.5 * (2 * torch.rand(shape) - 1)))

    def forward(self, inputs: Float[Tensor, "*members batch low"], frozen: bool = False) -> Tensor:
        """What each network makes of the same inputs, or of its own: (members, batch, outputs).

        Args:
            inputs: of all networks, (batch, numbers), or of each.
            frozen: whether weights are constants, which saves what their gradients take.
        """
        numbers = [
            each.detach() if frozen else each for pair in zip(self.weights, self.biases, strict=True) for each in pair
        ]
        layer = inputs.expand(len(self.weights[0]), -1, -1) if inputs.ndim == 2 else inputs
        if self.activation is torch.relu:
            return _Rectified.apply(self.rounded, layer, *numbers)  # pyright: ignore[reportReturnType]
        for number, (weight, bias) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
            layer = torch.baddbmm(bias, layer, weight)
            if 2 * number < len(numbers) - 2:
                layer = self.activation(layer)
                # Without a gain and a shift of its own: the next layer's weights hold them.
                layer = functional.layer_norm(layer, layer.shape[-1:]) if self.levelled else layer
        return layer


# pyright: reportIncompatibleMethodOverride=false
class _Rectified(torch.autograd.Function):
    """Layers h' = max(0, h W + b) and a linear last one, as one operation, in half of the time of its parts.

    With g the gradient of a layer's outputs, zero where they were cut off: that of W is hᵀ g, of b Σ g, of h g Wᵀ.
    """

    @staticmethod
    def forward(ctx: Any, rounded: bool, inputs: Tensor, *numbers: Tensor) -> Tensor:
        last = len(numbers) // 2 - 1
        layers, weights = [inputs], []
        for number in range(last + 1):
            kind = torch.bfloat16 if rounded and 0 < number < last else inputs.dtype
            weight, bias = numbers[2 * number].to(kind), numbers[2 * number + 1].to(kind)
            layer = (
                _product(layers[-1].to(kind), weight).add_(bias)
                if number == last
                else torch.baddbmm(bias, layers[-1].to(kind), weight)
            )
            layers.append(layer if number == last else layer.relu_())
            weights.append(weight)
        ctx.save_for_backward(*layers[:-1], *weights)
        return layers[-1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        count = len(ctx.saved_tensors) // 2
        layers, weights = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        found: list[Tensor | None] = []
        for number in reversed(range(count)):
            weight = weights[number]
            gradient, layer = gradient.to(weight.dtype), layers[number].to(weight.dtype)
            if ctx.needs_input_grad[2 + 2 * number]:
                found += [
                    gradient.sum(1, keepdim=True).to(layers[0].dtype),
                    _product(layer.mT, gradient).to(layers[0].dtype),
                ]
            else:
                found += [None, None]
            if number or ctx.needs_input_grad[1]:
                gradient = gradient * weight.mT if weight.shape[2] == 1 else torch.bmm(gradient, weight.mT)
            if number:
                gradient = torch.ops.aten.threshold_backward(gradient, layer, 0)
        return None, gradient if ctx.needs_input_grad[1] else None, *reversed(found)


def follow(slow: nn.Module, fast: nn.Module, share: float) -> None:
    """Move the weights of a network by a share of the way to those of another."""
    ways = [[each.detach() for each in network.parameters()] for network in (slow, fast)]
    torch._foreach_lerp_(ways[0], ways[1], share)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """The product of matrices; where the right one is a column, which libraries are slow at, as a sum."""
    return (left * right.mT).sum(2, keepdim=True) if right.shape[2] == 1 else torch.bmm(left, right)


class Measure(nn.Module):
    """Means and deviations of numbers that come in by batches, and the numbers in units of these.

    Attributes:
        mean: of each number so far.
        square: mean square of its distance from that.
        count: how many rows there were.
    """

    mean: Tensor
    square: Tensor
    count: Tensor

    def __init__(self, numbers: int) -> None:
        """Start with mean 0 and deviation 1.

        Args:
            numbers: in a row.
        """
        super().__init__()
        self.register_buffer("mean", torch.zeros(numbers, dtype=torch.float64))
        self.register_buffer("square", torch.ones(numbers, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    def forward(self, rows: Float[Tensor, "*batch numbers"]) -> Float[Tensor, "*batch numbers"]:
        """The distances from the means, in deviations, at most ten."""
        return ((rows - self.mean.to(rows)) / self.square.clamp(min=1e-5).sqrt().to(rows)).clamp(-10.0, 10.0)

    @torch.no_grad()
    def add(self, rows: Float[Tensor, "batch numbers"]) -> None:
        """Count these rows in."""
        rows = rows.double()
        mean, fresh = rows.mean(0), rows.square().mean(0) - rows.mean(0).square()
        count = self.count + len(rows)
        share, way = len(rows) / count, mean - self.mean
        # The square of a union: the mean of both, and what their means are apart.
        self.square += share * (fresh - self.square + (1 - share) * way.square())
        self.mean += share * way
        self.count.copy_(count)


class Actor(Policy):
    """Puts out means and logarithms of deviations of what `squashed` makes actions of.

    Attributes:
        layers: of the network.
        measure: of what is sensed, if that is put into units of its own deviations.
        spread: logarithms of deviations where they are the same whatever is sensed; None where layers tell them.
    """

    spread: nn.Parameter | None

    def __init__(
        self,
        sensors: int,
        hidden: Sequence[int],
        actions: int,
        activation: str = "relu",
        rounded: bool = False,
        spread: float = 0.0,
        steady: bool = False,
    ) -> None:
        """Draw the weights.

        Args:
            sensors: numbers that it is told.
            hidden: widths of the layers between.
            actions: numbers in an action.
            activation: as of `Layers`.
            rounded: as of `Layers`.
            spread: added to the logarithms of deviations.
            steady: whether what is sensed is measured, layers are levelled, and deviations are the same whatever is
                sensed.
        """
        super().__init__()
        outputs = actions if steady else 2 * actions
        self.layers = Layers(1, (sensors, *hidden, outputs), activation, rounded, levelled=steady)
        self.actions = actions
        self.measure = Measure(sensors) if steady else None
        self.spread = nn.Parameter(torch.full((actions,), spread)) if steady else None
        if not steady:
            with torch.no_grad():
                self.layers.biases[-1][..., actions:] += spread

    def still(self) -> None:
        """Make all outputs zero, whatever is sensed; what is below the last layer stays."""
        nn.init.zeros_(self.layers.weights[-1])
        nn.init.zeros_(self.layers.biases[-1])

    def forward(self, sensed: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Means, then logarithms of deviations; and the empty memory."""
        return self.output_of(sensed), memory

    def output_of(self, sensed: Float[Tensor, "batch sensors"]) -> Float[Tensor, "batch outputs"]:
        """Means, then logarithms of deviations."""
        if self.measure is None or self.spread is None:
            return self.layers(sensed)[0]
        mean = self.layers(self.measure(sensed))[0]
        return torch.cat([mean, self.spread.expand_as(mean)], 1)

    def sample(
        self, sensed: Float[Tensor, "batch sensors"], generator: torch.Generator
    ) -> tuple[Float[Tensor, "batch actions"], Float[Tensor, " batch"]]:
        """Actions, and the logarithms of their densities."""
        noise = torch.randn(len(sensed), self.actions, generator=generator)
        return squashed(self.output_of(sensed), noise)

    @torch.no_grad()
    def best(self, sensed: Float[Tensor, "batch sensors"]) -> Float[Tensor, "batch actions"]:
        """The actions without noise."""
        return self.output_of(sensed)[:, : self.actions].tanh()


def squashed(
    output: Float[Tensor, "batch outputs"], noise: Float[Tensor, "batch actions"]
) -> tuple[Float[Tensor, "batch actions"], Float[Tensor, " batch"]]:
    """Actions a = tanh(u), u normal, and the logarithms of their densities.

    log p(a) = log N(u) − Σ log(1 − a²), with log(1 − tanh² u) = 2 (log 2 − u − softplus(−2u)), which does not overflow.
    """
    mean, spread = output.chunk(2, 1)
    spread = spread.clamp(_LEAST, _MOST)
    whole = mean + noise * spread.exp()
    density = -0.5 * noise.square() - spread - 0.5 * log(2 * torch.pi)
    change = 2 * (log(2) - whole - functional.softplus(-2 * whole))
    return whole.tanh(), (density - change).sum(1)
