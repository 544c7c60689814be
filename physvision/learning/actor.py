"""The stochastic actor: a network with a tanh-normal distribution of actions and normalized observations."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.control.policies import Policy
from physvision.learning.networks import EnsembleMlp

MIN_LOG_STD, MAX_LOG_STD = -20.0, 2.0  # as in the SAC authors' code
MAX_NORMALIZED = 10.0  # standard deviations at which normalized observations are clipped


class RunningNormalizer(nn.Module):
    """Normalization of rows by the mean and variance of all rows so far.

    Attributes:
        mean: Mean of each entry.
        variance: Variance of each entry.
        count: Number of rows so far.
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
        """Update the mean and variance with more rows."""
        rows = rows.double()
        mean, variance = rows.mean(0), rows.square().mean(0) - rows.mean(0).square()
        count = self.count + len(rows)
        fraction, delta = len(rows) / count, mean - self.mean
        # Variance of a union: weighted mean of both variances, plus the variance of the two means.
        self.variance += fraction * (variance - self.variance + (1 - fraction) * delta.square())
        self.mean += fraction * delta
        self.count.copy_(count)


class Actor(Policy):
    """A stochastic policy: a network whose outputs are means and logarithms of standard deviations.

    `sample_tanh_normal` turns the outputs into actions in [−1, 1].

    Attributes:
        network: Network from observations to outputs.
        action_size: Length of an action.
        normalizer: Running normalization of observations; None if they are not normalized.
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
        """Initialize the weights of the network.

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
        output_size = action_size if state_independent_std else 2 * action_size
        self.network = EnsembleMlp(1, (obs_size, *hidden_sizes, output_size), activation, bf16, layer_norm)
        self.action_size = action_size
        self.normalizer = RunningNormalizer(obs_size) if normalize_obs else None
        self.log_std = nn.Parameter(torch.full((action_size,), init_log_std)) if state_independent_std else None
        if not state_independent_std:
            with torch.no_grad():
                self.network.biases[-1][..., action_size:] += init_log_std

    def zero_output(self) -> None:
        """Set the last layer to zero, so that all its outputs are zero."""
        nn.init.zeros_(self.network.weights[-1])
        nn.init.zeros_(self.network.biases[-1])

    def forward(self, obs: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return concatenated means and logarithms of standard deviations, and the unchanged, empty hidden state."""
        return self.distribution(obs), hidden

    def distribution(self, obs: Float[Tensor, "batch obs"]) -> Float[Tensor, "batch outputs"]:
        """Return means and logarithms of standard deviations, concatenated."""
        outputs = self.network(obs if self.normalizer is None else self.normalizer(obs))[0]
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
    """Return actions a = tanh(u) of a normally distributed u, and their log-probabilities.

    Args:
        output: Means and logarithms of standard deviations of u, concatenated.
        noise: Standard normal noise from which u is computed.
    """
    return _TanhNormal.apply(output, noise)  # pyright: ignore[reportReturnType]


class TanhNormalSample(NamedTuple):
    """A sample of the tanh-normal distribution with the quantities that its backward pass needs.

    With m the mean, s the logarithm of the standard deviation and n the noise: a = tanh(u), u = m + e^s n, and
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
        """Return the sample for m and s, concatenated in `output`, and for the noise n."""
        mean, raw_log_std = output.chunk(2, 1)
        log_std = raw_log_std.clamp(MIN_LOG_STD, MAX_LOG_STD)
        scaled_noise = noise * log_std.exp()
        pre_tanh = mean + scaled_noise
        normal_log_prob = -0.5 * noise.square() - log_std - 0.5 * log(2 * torch.pi)
        log_derivative = 2 * (log(2) - pre_tanh - functional.softplus(-2 * pre_tanh))
        return cls(pre_tanh.tanh(), (normal_log_prob - log_derivative).sum(1), scaled_noise, raw_log_std == log_std)

    def backward(self, action_gradient: Tensor, log_prob_gradient: Tensor) -> Float[Tensor, "batch outputs"]:
        """Return the gradients with respect to m and s, concatenated.

        With g and h the gradients with respect to a and log p, the gradient with respect to m is g (1 − a²) + 2 h a;
        that with respect to s is e^s n times the gradient with respect to m, minus h.
        """
        h = log_prob_gradient[:, None]
        mean_gradient = action_gradient * (1 - self.action.square()) + 2 * h * self.action
        return torch.cat([mean_gradient, (mean_gradient * self.scaled_noise - h) * self.unclipped], 1)

    def slice_rows(self, start: int, end: int | None = None) -> TanhNormalSample:
        """Return the rows of the sample from `start` up to, but not including, `end`."""
        return TanhNormalSample(*(value[start:end] for value in self))


# pyright: reportIncompatibleMethodOverride=false
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
