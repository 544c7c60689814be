"""Networks side by side as one product of matrices, and the policy that they make."""

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
            rounded: whether products between hidden layers are taken of bfloat16, in half of the time. What comes in
                and what goes out stays in single precision.
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
        # In turn, as a plain list: to read one of torch's takes as long as a small product.
        self._numbers = [each for pair in zip(self.weights, self.biases, strict=True) for each in pair]

    def forward(self, inputs: Float[Tensor, "*members batch low"], frozen: bool = False) -> Tensor:
        """What each network makes of the same inputs, or of its own: (members, batch, outputs).

        Args:
            inputs: of all networks, (batch, numbers), or of each.
            frozen: whether weights are constants, which saves what their gradients take.
        """
        numbers = [each.detach() for each in self._numbers] if frozen else self._numbers
        layer = inputs.expand(len(numbers[0]), -1, -1) if inputs.ndim == 2 else inputs
        if self.activation is torch.relu:
            return _Rectified.apply(self.rounded, layer, *numbers)  # pyright: ignore[reportReturnType]
        last = len(numbers) // 2 - 1
        for number, (weight, bias) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
            kind = torch.bfloat16 if self.rounded and 0 < number < last else inputs.dtype
            layer = torch.baddbmm(bias.to(kind), layer.to(kind), weight.to(kind))
            if number < last:
                layer = self.activation(layer)
                # Without a gain and a shift of its own: the next layer's weights hold them.
                layer = functional.layer_norm(layer, layer.shape[-1:]) if self.levelled else layer
        return layer

    @torch.no_grad()
    def forth(self, inputs: Float[Tensor, "batch low"]) -> tuple[Float[Tensor, "members batch high"], Passed]:
        """What networks of rectifiers make of the same inputs, without torch's record of it, and what `back` needs."""
        return _forth(self.rounded, inputs.expand(len(self._numbers[0]), -1, -1), self._numbers)

    @torch.no_grad()
    def back(self, passed: Passed, gradient: Float[Tensor, "members batch high"]) -> None:
        """Write the gradients of weights and biases, for which `joined` made room, from that of what `forth` gave."""
        for number, found in zip(self._numbers, _back(passed, gradient)[1], strict=True):
            assert number.grad is not None
            number.grad.copy_(found)

    @torch.no_grad()
    def back_to_inputs(self, passed: Passed, gradient: Tensor) -> Float[Tensor, "batch low"]:
        """The gradient of what came in, of all networks together."""
        found, _ = _back(passed, gradient, of_weights=False, of_inputs=True)
        assert found is not None
        return found.sum(0)


class Passed(NamedTuple):
    """What rectified networks keep of a pass for the way back.

    Attributes:
        layers: what each layer was told, each network's by rows.
        weights: of each layer, as they were multiplied.
    """

    layers: list[Tensor]
    weights: list[Tensor]

    def rows(self, first: int) -> Passed:
        """Of the rows from the first on alone."""
        return Passed([layer[:, first:] for layer in self.layers], self.weights)


def _forth(rounded: bool, inputs: Tensor, numbers: Sequence[Tensor]) -> tuple[Tensor, Passed]:
    """Layers h' = max(0, h W + b) and a linear last one; W and b of each in turn are the numbers."""
    last = len(numbers) // 2 - 1
    layer, passed = inputs, Passed([], [])
    for number in range(last + 1):
        kind = torch.bfloat16 if rounded and 0 < number < last else inputs.dtype
        weight, bias, layer = numbers[2 * number].to(kind), numbers[2 * number + 1].to(kind), layer.to(kind)
        passed.layers.append(layer)
        passed.weights.append(weight)
        layer = torch.baddbmm(bias, layer, weight).relu_() if number < last else _into_few(layer, weight).add_(bias)
    return layer, passed


def _back(
    passed: Passed, gradient: Tensor, of_weights: bool = True, of_inputs: bool = False
) -> tuple[Tensor | None, list[Tensor]]:
    """The gradient of what came in, and those of W and b of each layer in turn.

    With g the gradient of a layer's outputs, zero where they were cut off: that of W is hᵀ g, of b Σ g, of h g Wᵀ.
    """
    found = []
    for number in reversed(range(len(passed.layers))):
        layer, weight = passed.layers[number], passed.weights[number]
        if of_weights:
            product = torch.bmm if found else _from_few
            found += [gradient.sum(1, keepdim=True), product(layer.mT, gradient)]
        if number or of_inputs:
            gradient = gradient * weight.mT if weight.shape[2] == 1 else torch.bmm(gradient, weight.mT)
        if number:
            # A layer was rounded after it was cut off, so that it is zero in the same places.
            gradient = torch.ops.aten.threshold_backward(gradient, layer, 0).to(passed.weights[number - 1].dtype)
    return gradient if of_inputs else None, found[::-1]


def _into_few(left: Tensor, right: Tensor) -> Tensor:
    """A product with few columns, which libraries are slow at as it stands."""
    few = right.mT
    return (left * few).sum(2, keepdim=True) if few.shape[1] == 1 else torch.bmm(few.contiguous(), left.mT).mT


def _from_few(left: Tensor, right: Tensor) -> Tensor:
    """The same of a left one that lies transposed."""
    return torch.bmm(right.mT, left.mT).mT


# pyright: reportIncompatibleMethodOverride=false
class _Rectified(torch.autograd.Function):
    """`_forth` and `_back` as one operation, in half of the time of its parts."""

    @staticmethod
    def forward(ctx: Any, rounded: bool, inputs: Tensor, *numbers: Tensor) -> Tensor:
        outputs, passed = _forth(rounded, inputs, numbers)
        ctx.save_for_backward(*passed.layers, *passed.weights)
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        count = len(ctx.saved_tensors) // 2
        passed = Passed(list(ctx.saved_tensors[:count]), list(ctx.saved_tensors[count:]))
        of_inputs, of_weights = ctx.needs_input_grad[1:3]
        of_input, found = _back(passed, gradient, of_weights, of_inputs)
        return None, of_input, *([each.to(gradient.dtype) for each in found] or [None] * (2 * count))


@torch.no_grad()
def joined(numbers: Sequence[nn.Parameter]) -> nn.Parameter:
    """Lay numbers side by side in one tensor, and their gradients in its gradient; what is a step for all is one.

    They stay what they are, and are parts of it from then on, until they are copied or sent elsewhere.
    """
    whole = nn.Parameter(torch.cat([number.flatten() for number in numbers]))
    whole.grad = torch.zeros_like(whole)
    sizes = [number.numel() for number in numbers]
    for number, part, of_part in zip(numbers, whole.detach().split(sizes), whole.grad.split(sizes), strict=True):
        number.data, number.grad = part.view_as(number), of_part.view_as(number)
    return whole


def follow(slow: nn.Module, fast: nn.Module, share: float) -> None:
    """Move the weights of a network by a share of the way to those of another."""
    ways = [[each.detach() for each in network.parameters()] for network in (slow, fast)]
    torch._foreach_lerp_(ways[0], ways[1], share)


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
    """Actions a = tanh(u), u normal, and the logarithms of their densities."""
    return _Squashed.apply(output, noise)  # pyright: ignore[reportReturnType]


class Squash(NamedTuple):
    """Of mean m and logarithm s of a deviation: a = tanh(u), u = m + e^s n, and log p(a) = log N(u) − Σ log(1 − a²).

    log(1 − tanh² u) = 2 (log 2 − u − softplus(−2u)), which does not overflow.

    Attributes:
        action: a.
        density: log p(a).
        apart: e^s n.
        free: where s is within its bounds.
    """

    action: Float[Tensor, "batch actions"]
    density: Float[Tensor, " batch"]
    apart: Float[Tensor, "batch actions"]
    free: Bool[Tensor, "batch actions"]

    @classmethod
    def of(cls, output: Tensor, noise: Tensor) -> Squash:
        """Means and logarithms of deviations side by side, and n."""
        mean, told = output.chunk(2, 1)
        spread = told.clamp(_LEAST, _MOST)
        apart = noise * spread.exp()
        whole = mean + apart
        density = -0.5 * noise.square() - spread - 0.5 * log(2 * torch.pi)
        change = 2 * (log(2) - whole - functional.softplus(-2 * whole))
        return cls(whole.tanh(), (density - change).sum(1), apart, told == spread)

    def back(self, of_action: Tensor, of_density: Tensor) -> Float[Tensor, "batch outputs"]:
        """With g and h the gradients of a and log p: that of m is g (1 − a²) + 2 h a, of s e^s n times it, less h."""
        dense = of_density[:, None]
        of_mean = of_action * (1 - self.action.square()) + 2 * dense * self.action
        return torch.cat([of_mean, (of_mean * self.apart - dense) * self.free], 1)

    def rows(self, first: int, end: int | None = None) -> Squash:
        """Of the rows from the first on alone, up to an end if there is one."""
        return Squash(*(each[first:end] for each in self))


class _Squashed(torch.autograd.Function):
    """The same as one operation."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        found = Squash.of(output, noise)
        ctx.save_for_backward(*found)
        return found.action, found.density

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_action: Tensor, of_density: Tensor) -> tuple[Tensor, None]:
        return Squash(*ctx.saved_tensors).back(of_action, of_density), None
