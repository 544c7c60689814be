"""A learned model of a game: networks that tell the mean and the deviation of what comes next (Chua et al., 2018).

Each network maps what is seen and done, brought to mean 0 and deviation 1, to means μ and logarithms of variances s of
the change of what is seen and of the reward, in units of their deviations; its loss is Σ ((y − μ)² e^−s + s), with s
kept softly within learned bounds. Each draws rows of its own; those that predict held-out rows best are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.learning.networks import Layers
from physvision.learning.replay import Batch


@dataclass(frozen=True)
class DynamicsSettings:
    """Numbers of the model.

    Attributes:
        members: how many networks.
        elites: how many of them are used.
        hidden: widths of their layers.
        learning_rate: of Adam.
        batch: rows of an update, for each network.
        held: share of rows that are kept for judging.
        patience: updates without a gain of a hundredth before training ends. In passes over the rows, of a small record
            these would be a dozen updates, and the first ones after a change of units make all networks worse.
        most: updates of a fit at most.
        rounded: whether products between hidden layers are taken of bfloat16.
    """

    members: int = 7
    elites: int = 5
    hidden: tuple[int, ...] = (200, 200, 200, 200)
    learning_rate: float = 1e-3
    batch: int = 256
    held: float = 0.1
    patience: int = 200
    most: int = 1000
    rounded: bool = True


class Dynamics(nn.Module):
    """The networks and the scale of what goes through them."""

    def __init__(self, seen: int, actions: int, settings: DynamicsSettings, generator: torch.Generator) -> None:
        """Draw the weights.

        Args:
            seen: numbers that are seen.
            actions: numbers in an action.
            settings: of the networks.
            generator: of rows and of noise.
        """
        super().__init__()
        self.settings, self._generator = settings, generator
        widths = (seen + actions, *settings.hidden, 2 * (seen + 1))
        self.layers = Layers(settings.members, widths, "swish", settings.rounded)
        self.bounds = nn.Parameter(torch.tensor([[-10.0], [0.5]]).repeat(1, seen + 1))
        shapes = {"mean": seen + actions, "scale": seen + actions, "change": seen + 1, "spread": seen + 1}
        shapes |= {"lowest": seen, "highest": seen}
        for name, size in shapes.items():
            self.register_buffer(name, torch.ones(size) if name in ("scale", "spread") else torch.zeros(size))
        self.register_buffer("elites", torch.arange(settings.elites))
        self.optimizer = torch.optim.Adam(self.parameters(), settings.learning_rate, fused=True)

    def forward(self, inputs: Float[Tensor, "*members batch numbers"]) -> tuple[Tensor, Tensor]:
        """Means and logarithms of variances of each network, in units of the deviations."""
        mean, spread = self.layers((inputs - self.mean) / self.scale).chunk(2, 2)
        least, most = self.bounds
        spread = most - functional.softplus(most - spread)
        return mean, least + functional.softplus(spread - least)

    def fit(self, rows: Batch, near: Callable[[], Batch] | None = None) -> dict[str, float]:
        """Learn from steps until those that are held out are predicted no better; the errors and the updates.

        Each network ends as it was when it predicted them best.

        Args:
            rows: `seen`, `action`, `reward`, `after`.
            near: makes what each pass over the rows learns in their place, a neighbour of each; they themselves if not
                given. Those of held rows are not learned.
        """
        inputs, targets = _numbers(rows)
        self._scale(inputs, targets)
        # The same ones in each fit: those that an earlier one learned would not tell what this one learns.
        self.lowest, self.highest = rows["seen"].amin(0), rows["seen"].amax(0)
        held = torch.arange(len(inputs)) % round(1 / self.settings.held) == 0
        used, judging = torch.nonzero(~held)[:, 0], (inputs[held], self._scaled(targets[held]))
        told = inputs, self._scaled(targets)
        best = torch.full((self.settings.members,), torch.inf)
        kept = [each.detach().clone() for each in self.layers.parameters()]
        updates, gained = 0, 0
        while updates - gained < self.settings.patience and updates < self.settings.most:
            if near is not None:
                inputs, targets = _numbers(near())
                told = inputs, self._scaled(targets)
            mixed = torch.rand(self.settings.members, len(used), generator=self._generator).argsort(1)
            for part in used[mixed].split(self.settings.batch, 1):
                self._learn(*(each[part] for each in told))
                updates += 1
            with torch.no_grad():
                error = (self(judging[0])[0] - judging[1]).square().mean((1, 2))
                gained = updates if bool((error < 0.99 * best).any()) else gained
                better, best = error < best, torch.minimum(error, best)
                for old, new in zip(kept, self.layers.parameters(), strict=True):
                    old[better] = new[better]
        with torch.no_grad():
            for old, new in zip(kept, self.layers.parameters(), strict=True):
                new.copy_(old)
        self.elites: Tensor = best.argsort()[: self.settings.elites]
        return {"model": float(best.mean()), "model_updates": float(updates)}

    def _scale(self, inputs: Tensor, targets: Tensor) -> None:
        """Take the units from what was recorded."""
        self.mean, self.scale = inputs.mean(0), inputs.std(0).clamp_min(1e-6)
        self.change, self.spread = targets.mean(0), targets.std(0).clamp_min(1e-6)

    def _scaled(self, targets: Tensor) -> Tensor:
        """What the networks are to say, in units of deviations."""
        return (targets - self.change) / self.spread

    def _learn(self, inputs: Tensor, targets: Tensor) -> None:
        mean, spread = self(inputs)
        loss = ((mean - targets).square() * (-spread).exp() + spread).mean((1, 2)).sum()
        loss = loss + 0.01 * (self.bounds[1] - self.bounds[0]).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def step(self, seen: Tensor, action: Tensor) -> tuple[Float[Tensor, "batch numbers"], Float[Tensor, " batch"]]:
        """What comes after, and the reward, each row by a network drawn among the best, with its noise."""
        count = len(seen)
        inputs = torch.cat([seen, action], 1)
        # Every elite takes its share of the rows, which are in no order.
        which = torch.randperm(count, generator=self._generator)
        changes = torch.empty(count, len(self.change))
        for elite, part in zip(self.elites.tolist(), which.tensor_split(len(self.elites)), strict=True):
            mean, spread = self._of(elite, inputs[part])
            noise = torch.randn(mean.shape, generator=self._generator)
            changes[part] = (mean + noise * (0.5 * spread).exp()) * self.spread + self.change
        return seen + changes[:, :-1], changes[:, -1]

    def knows(self, seen: Float[Tensor, "batch numbers"]) -> Bool[Tensor, " batch"]:
        """Whether all numbers are within what was recorded, or no farther from it than its own width."""
        width = self.highest - self.lowest
        return ((seen >= self.lowest - width) & (seen <= self.highest + width)).all(1)

    def _of(self, member: int, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What one network says."""
        alone = (inputs - self.mean) / self.scale
        for number, (weight, bias) in enumerate(zip(self.layers.weights, self.layers.biases, strict=True)):
            alone = torch.addmm(bias[member], alone, weight[member])
            alone = self.layers.activation(alone) if number + 1 < len(self.layers.weights) else alone
        mean, spread = alone.chunk(2, 1)
        least, most = self.bounds
        spread = most - functional.softplus(most - spread)
        return mean, least + functional.softplus(spread - least)

    def get_extra_state(self) -> dict[str, Any]:
        """What Adam remembers."""
        return self.optimizer.state_dict()

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Have Adam remember it."""
        self.optimizer.load_state_dict(state)


def _numbers(rows: Batch) -> tuple[Tensor, Tensor]:
    """What the networks are told, and what they are to say."""
    inputs = torch.cat([rows["seen"], rows["action"]], 1)
    return inputs, torch.cat([rows["after"] - rows["seen"], rows["reward"][:, None]], 1)
