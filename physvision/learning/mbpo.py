"""Model-based policy optimisation (Janner et al., 2019): soft actor–critic that learns mostly of imagined steps.

Every so many steps a model is fitted to all true steps, and played from their states for a few steps; batches are
mostly of what it imagined. Policy and sample enhancement (`enhancement`) are options of the same code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from physvision.core import State
from physvision.envs import Game
from physvision.learning.dynamics import Dynamics, DynamicsSettings
from physvision.learning.enhancement import Neighbourhood, NeighbourSettings, worth_by_engine
from physvision.learning.recorded import Recorded, RecordedSettings
from physvision.learning.replay import Batch, Replay


@dataclass(frozen=True)
class MbpoSettings:
    """How the model is made and used.

    Attributes:
        play: how is played and learned.
        model: numbers of the model.
        refit: true steps between two fits.
        rollouts: imagined after each fit.
        lengths: of them, first and last.
        epochs: between which they grow from the first to the last.
        epoch: true steps of an epoch.
        real: share of true steps in a batch.
        by_engine: whether the worth of actions is told by the engine (policy enhancement).
        near: neighbours of true steps (sample enhancement).
    """

    play: RecordedSettings = field(default_factory=RecordedSettings)
    model: DynamicsSettings = field(default_factory=DynamicsSettings)
    refit: int = 250
    rollouts: int = 10_000
    lengths: tuple[int, int] = (1, 10)
    epochs: tuple[int, int] = (1, 15)
    epoch: int = 100
    real: float = 0.05
    by_engine: bool = False
    near: NeighbourSettings = field(default_factory=NeighbourSettings)


class Mbpo(Recorded):
    """Soft actor–critic with a learned model of the game.

    Attributes:
        model: of the game.
        imagined: steps that it imagined.
        near: what true steps have neighbours by, if they have some.
        around: neighbours of true steps that critics learn from until the next fit.
        unknown: how often the engine's derivative for the policy was no number, and for how many true steps.
    """

    def __init__(self, game: Game, settings: MbpoSettings, seed: int) -> None:
        """Start with an empty record and an unfitted model."""
        super().__init__(game, settings.play, seed)
        self.wanted = settings
        self.model = Dynamics(self._widths["seen"], len(game.high), settings.model, self.generator)
        self.imagined = Replay(settings.rollouts * settings.lengths[1], self._widths)
        self.near = Neighbourhood(game, settings.near, settings.play.capacity) if settings.near.count else None
        self.around = Replay(settings.rollouts if self.near else 1, self._widths)
        self.unknown = Counts(policy=0, samples=0, dropped=0)
        self._model_told: dict[str, float] = {}

    def advance(self) -> None:
        """One step of every world, a fit if it is due, and the updates."""
        before = self.steps
        moves = self.play()
        if self.near is not None:
            self.near.add(int((~moves.failed).sum()))
        if self.steps < self.settings.first:
            return
        due = before < self.settings.first or before // self.wanted.refit < self.steps // self.wanted.refit
        if due:
            self._refit()
        for _ in range(self.settings.updates * self.worlds.count):
            self.learn()

    def _refit(self) -> None:
        """Fit the model to all true steps and their neighbours, and imagine others."""
        if self.near is None:
            self._model_told = self.model.fit(self.record.all())
        else:
            unknown, dropped = self.near.look_around(self.record)
            self.unknown["samples"] += unknown
            self.unknown["dropped"] += dropped
            everywhere = torch.arange(self.record.size)
            self._model_told = self.model.fit(self.record.all(), lambda: self._varied(everywhere))
            self.around.add(self._varied(self.record.draw(self.wanted.rollouts, self.generator)))
        self._imagine()

    def _varied(self, places: Tensor) -> Batch:
        """Neighbours of true steps, drawn anew."""
        assert self.near is not None
        return self.near.vary(self.record.take(places), places, self.generator)

    @torch.no_grad()
    def _imagine(self) -> None:
        """Play the model from true states for as long as is trusted by now."""
        seen = self.record.sample(self.wanted.rollouts, self.generator)["seen"]
        for _ in range(self.trusted()):
            action, _ = self.actor.sample(seen, self.generator)
            after, reward = self.model.step(seen, action)
            end = self.game.is_over(after)
            self.imagined.add({"seen": seen, "action": action, "reward": reward, "after": after, "end": end})
            seen = after[~end]
            if not len(seen):
                break

    def trusted(self) -> int:
        """How many steps are imagined in a row by now."""
        (low, high), (first, last) = self.wanted.lengths, self.wanted.epochs
        share = (self.steps / self.wanted.epoch - first) / max(1, last - first)
        return int(low + min(max(share, 0.0), 1.0) * (high - low))

    def learn(self) -> None:
        """One update; with policy enhancement the actor learns in true states of what the engine says."""
        if not self.wanted.by_engine:
            super().learn()
            return
        rows = self.record.sample(self.settings.sac.batch, self.generator)
        start = State(rows["q"], rows["v"])
        worth, unknown = worth_by_engine(self.agent, self.game, self.high, start, rows["played"])
        self.agent.update(self.batch(), rows["seen"], worth)
        self.unknown["policy"] += len(unknown)

    def batch(self) -> Batch:
        """Mostly imagined steps, and some true ones or neighbours of these."""
        true = round(self.wanted.real * self.settings.sac.batch)
        parts = [self.imagined.sample(self.settings.sac.batch - true, self.generator)]
        parts.append((self.around if self.near else self.record).sample(true, self.generator))
        return {name: torch.cat([part[name] for part in parts]) for name in self._widths}

    def told(self) -> dict[str, float]:
        """Also how well the model predicts, and what the engine could not tell."""
        counts = {f"unknown_{name}": float(value) for name, value in self.unknown.items()}
        return super().told() | self._model_told | (counts if self.wanted.by_engine or self.near else {})

    def parts(self) -> dict[str, Any]:
        """The model and all records too."""
        more = {"model": self.model, "imagined": self.imagined, "unknown": self.unknown}
        return super().parts() | more | ({} if self.near is None else {"near": self.near, "around": self.around})


class Counts(dict[str, int]):
    """Numbers by name, that can be kept."""

    def state_dict(self) -> dict[str, int]:
        """The numbers."""
        return dict(self)

    def load_state_dict(self, kept: Mapping[str, int]) -> None:
        """Take the numbers back."""
        self.update(kept)
