"""Probabilistic ensemble that predicts the next observation and the reward (PETS; Chua et al., 2018).

Each network maps normalized observations and actions to means μ and log-variances s of the change of the observation
and of the reward, in units of their standard deviations. Its loss is Σ ((y − μ)² e^−s + s), with s softly clamped to
learned bounds. Each network sees the minibatches in its own order; the networks that predict held-out rows best
are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.learning.networks import EnsembleMlp
from physvision.learning.replay_buffer import Batch


@dataclass(frozen=True)
class WorldModelSettings:
    """Settings of the ensemble and of its fit. Defaults are those of MBPO, except for `patience` and `max_updates`.

    Attributes:
        ensemble_size: Number of networks; more of them cover more hypotheses.
        num_elites: Number of best networks that are used to predict; fewer are more accurate, more are more diverse.
        hidden_sizes: Hidden layer sizes; larger ones represent more and cost more.
        learning_rate: Learning rate of Adam; a higher one fits faster and less stably.
        batch_size: Rows of an update, for each network.
        holdout_fraction: Fraction of rows held out for validation; more of them rank networks better.
        patience: Updates without an improvement by 1 % after which a fit ends; more of them fit longer. It counts
            updates and not epochs, because an epoch of a small buffer has only a dozen updates, and the first epochs
            make all networks worse.
        max_updates: Largest number of updates of a fit; more of them fit longer.
        bf16: If true, products between hidden layers are computed in bfloat16.
    """

    ensemble_size: int = 7
    num_elites: int = 5
    hidden_sizes: tuple[int, ...] = (200, 200, 200, 200)
    learning_rate: float = 1e-3
    batch_size: int = 256
    holdout_fraction: float = 0.1
    patience: int = 200
    max_updates: int = 1000
    bf16: bool = True


class WorldModel(nn.Module):
    """Ensemble of networks with the normalization of their inputs and targets.

    Attributes:
        network: Networks of the ensemble.
        log_var_bounds: Learned lower and upper bounds of the log-variances, (2, outputs).
        elite_indices: Indices of the networks that predict, the best first.
    """

    def __init__(self, obs_size: int, action_size: int, settings: WorldModelSettings, generator: torch.Generator):
        """Initialize the networks and their optimizer.

        Args:
            obs_size: Length of an observation.
            action_size: Length of an action.
            settings: Settings of the ensemble and of its fit.
            generator: Random generator of minibatches and of prediction noise.
        """
        super().__init__()
        self.settings, self._generator = settings, generator
        layer_sizes = (obs_size + action_size, *settings.hidden_sizes, 2 * (obs_size + 1))
        self.network = EnsembleMlp(settings.ensemble_size, layer_sizes, "swish", settings.bf16)
        self.log_var_bounds = nn.Parameter(torch.tensor([[-10.0], [0.5]]).repeat(1, obs_size + 1))
        sizes = {"input": obs_size + action_size, "target": obs_size + 1}
        for name, size in sizes.items():
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_std", torch.ones(size))
        for name in ("obs_min", "obs_max"):
            self.register_buffer(name, torch.zeros(obs_size))
        self.register_buffer("elite_indices", torch.arange(settings.num_elites))
        self.optimizer = torch.optim.Adam(self.parameters(), settings.learning_rate, fused=True)

    def forward(self, inputs: Float[Tensor, "*members batch inputs"]) -> tuple[Tensor, Tensor]:
        """Return means and log-variances of each network, in units of the targets' standard deviations."""
        return self._distribution(self.network((inputs - self.input_mean) / self.input_std))

    def fit(self, rows: Batch, augment: Callable[[], Batch] | None = None) -> dict[str, float]:
        """Fit the ensemble until predictions of held-out rows no longer improve; each network keeps its best weights.

        Args:
            rows: Transitions: `obs`, `action`, `reward`, `next_obs`.
            augment: Function that returns replacements of all rows, in their order, for each epoch, for example
                augmented ones; held-out rows are never used for training.

        Returns:
            Mean squared error over held-out rows, in variances of the targets, and the number of updates.
        """
        inputs, targets = _inputs_and_targets(rows)
        self._set_normalization(inputs, targets)
        self.obs_min, self.obs_max = rows["obs"].amin(0), rows["obs"].amax(0)
        # The same rows are held out in every fit, because an earlier fit has been trained on all others.
        held_out = torch.arange(len(inputs)) % round(1 / self.settings.holdout_fraction) == 0
        training_rows = torch.nonzero(~held_out)[:, 0]
        validation = inputs[held_out], self._normalized(targets[held_out])
        training = inputs, self._normalized(targets)
        best_error = torch.full((self.settings.ensemble_size,), torch.inf)
        best_weights = [parameter.detach().clone() for parameter in self.network.parameters()]
        updates, last_improvement = 0, 0
        while updates - last_improvement < self.settings.patience and updates < self.settings.max_updates:
            if augment is not None:
                inputs, targets = _inputs_and_targets(augment())
                training = inputs, self._normalized(targets)
            order = torch.rand(self.settings.ensemble_size, len(training_rows), generator=self._generator).argsort(1)
            for minibatch in training_rows[order].split(self.settings.batch_size, 1):
                self._update(*(values[minibatch] for values in training))
                updates += 1
            with torch.no_grad():
                validation_error = (self(validation[0])[0] - validation[1]).square().mean((1, 2))
                last_improvement = updates if bool((validation_error < 0.99 * best_error).any()) else last_improvement
                improved, best_error = validation_error < best_error, torch.minimum(validation_error, best_error)
                for best, current in zip(best_weights, self.network.parameters(), strict=True):
                    best[improved] = current[improved]
        with torch.no_grad():
            for best, current in zip(best_weights, self.network.parameters(), strict=True):
                current.copy_(best)
        self.elite_indices: Tensor = best_error.argsort()[: self.settings.num_elites]
        return {"model_error": float(best_error.mean()), "model_updates": float(updates)}

    def _set_normalization(self, inputs: Tensor, targets: Tensor) -> None:
        """Set the normalization to the statistics of these rows."""
        self.input_mean, self.input_std = inputs.mean(0), inputs.std(0).clamp_min(1e-6)
        self.target_mean, self.target_std = targets.mean(0), targets.std(0).clamp_min(1e-6)

    def _normalized(self, targets: Tensor) -> Tensor:
        """Return targets in units of their standard deviations."""
        return (targets - self.target_mean) / self.target_std

    def _distribution(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means and the softly clamped log-variances of network outputs."""
        mean, log_var = outputs.chunk(2, -1)
        lower, upper = self.log_var_bounds
        log_var = upper - functional.softplus(upper - log_var)
        return mean, lower + functional.softplus(log_var - lower)

    def _update(self, inputs: Tensor, targets: Tensor) -> None:
        """Take one step of Adam on a minibatch of each network."""
        mean, log_var = self(inputs)
        loss = ((mean - targets).square() * (-log_var).exp() + log_var).mean((1, 2)).sum()
        loss = loss + 0.01 * (self.log_var_bounds[1] - self.log_var_bounds[0]).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def predict(self, obs: Tensor, action: Tensor) -> tuple[Float[Tensor, "batch obs"], Float[Tensor, " batch"]]:
        """Sample next observations and rewards, each row from the distribution of a random elite."""
        inputs = torch.cat([obs, action], 1)
        # Each elite takes an equal share of the rows, in random order.
        order = torch.randperm(len(obs), generator=self._generator)
        deltas = torch.empty(len(obs), len(self.target_mean))
        for elite, rows in zip(self.elite_indices.tolist(), order.tensor_split(len(self.elite_indices)), strict=True):
            mean, log_var = self._evaluate_member(elite, inputs[rows])
            noise = torch.randn(mean.shape, generator=self._generator)
            deltas[rows] = (mean + noise * (0.5 * log_var).exp()) * self.target_std + self.target_mean
        return obs + deltas[:, :-1], deltas[:, -1]

    def in_training_range(self, obs: Float[Tensor, "batch obs"]) -> Bool[Tensor, " batch"]:
        """Return true for observations within the range of the training rows, extended by its width on both sides."""
        obs_range = self.obs_max - self.obs_min
        return ((obs >= self.obs_min - obs_range) & (obs <= self.obs_max + obs_range)).all(1)

    def _evaluate_member(self, member: int, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and log-variances of one network, (batch, outputs)."""
        layer = (inputs - self.input_mean) / self.input_std
        for index, (weight, bias) in enumerate(zip(self.network.weights, self.network.biases, strict=True)):
            layer = torch.addmm(bias[member], layer, weight[member])
            layer = self.network.activation(layer) if index + 1 < len(self.network.weights) else layer
        return self._distribution(layer)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state of the optimizer."""
        return self.optimizer.state_dict()

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state of the optimizer."""
        self.optimizer.load_state_dict(state)


def _inputs_and_targets(rows: Batch) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of the networks for a batch of transitions."""
    inputs = torch.cat([rows["obs"], rows["action"]], 1)
    return inputs, torch.cat([rows["next_obs"] - rows["obs"], rows["reward"][:, None]], 1)
