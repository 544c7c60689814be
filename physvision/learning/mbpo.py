"""Model-based policy optimisation (Janner et al., 2019): soft actor–critic that learns mostly of imagined steps.

Every so many steps a model is fitted to all true steps, and played from their states for a few steps; batches are
mostly of what it imagined. Policy enhancement (`enhancement`) and sample enhancement (`neighbourhood`) are options.
What the engine steps for policy enhancement can take the place of imagined steps; where none of these are left, no
model is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from physvision.core import InputError, State
from physvision.envs import Game
from physvision.learning.dynamics import Dynamics, DynamicsSettings
from physvision.learning.enhancement import played_by_engine
from physvision.learning.neighbourhood import Neighbourhood, NeighbourSettings
from physvision.learning.recorded import Recorded, RecordedSettings
from physvision.learning.replay import Batch, Replay
from physvision.learning.sac import Tried


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
        horizon: steps of the game over which the engine tells it; the critic values what comes after.
        starts: true states in which an update of the actor has the engine begin; a batch of them if not given.
        every: updates of the critics for one of the actor, by the engine.
        steepest: norm of the derivative of an action's worth; longer ones are shortened, none if not given.
        stepped: share of steps that the engine made so in a batch, of the last as many as can be imagined.
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
    horizon: int = 1
    starts: int | None = None
    every: int = 1
    steepest: float | None = None
    stepped: float = 0.0
    near: NeighbourSettings = field(default_factory=NeighbourSettings)


class Mbpo(Recorded):
    """Soft actor–critic with a learned model of the game.

    Attributes:
        model: of the game.
        imagined: steps that it imagined.
        stepped: steps that the engine made for the policy.
        near: what true steps have neighbours by, if they have some.
        around: neighbours of true steps that critics learn from until the next fit.
        unknown: how often the engine's derivative for the policy was no number, and for how many true steps.
        done: updates, and steps of the game that the engine made beside the true ones.
    """

    def __init__(self, game: Game, settings: MbpoSettings, seed: int) -> None:
        """Start with an empty record and an unfitted model."""
        if settings.stepped and not settings.by_engine:
            raise InputError(
                f"stepped: expected 0 where the engine does not step for the policy, got {settings.stepped}"
            )
        if settings.real + settings.stepped > 1:
            raise InputError(f"stepped: expected at most 1 − real, {1 - settings.real}, got {settings.stepped}")
        super().__init__(game, settings.play, seed)
        self.wanted = settings
        self.model = Dynamics(self._widths["seen"], len(game.high), settings.model, self.generator)
        batch = settings.play.sac.batch
        self._true = round(settings.real * batch)
        self._stepped = min(round(settings.stepped * batch), batch - self._true)
        room = settings.rollouts * settings.lengths[1]
        self.imagined, self.stepped = Replay(room, self._widths), Replay(room, self._widths)
        self.near = Neighbourhood(game, settings.near, settings.play.capacity) if settings.near.count else None
        self.around = Replay(settings.rollouts if self.near else 1, self._widths)
        self.unknown = Counts(policy=0, samples=0, dropped=0, imagined=0)
        self.done = Counts(updates=0, steps=0)
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
        if self.near is not None:
            found = self.near.look_around(self.record)
            self.unknown["samples"] += found.unknown
            self.unknown["dropped"] += found.dropped
            self.done["steps"] += found.steps
        imagines = self._true + self._stepped < self.settings.sac.batch
        if imagines:
            near = None if self.near is None else partial(self._varied, torch.arange(self.record.size))
            self._model_told = self.model.fit(self.record.all(), near)
        if self.near is not None:
            self.around.add(self._varied(self.record.draw(self.wanted.rollouts, self.generator)))
        if imagines:
            self._imagine()

    def _varied(self, places: Tensor) -> Batch:
        """Neighbours of true steps, drawn anew."""
        assert self.near is not None
        return self.near.vary(self.record.take(places), places, self.generator)

    @torch.no_grad()
    def _imagine(self) -> None:
        """Play the model from true states for as long as is trusted by now, and where it knows what comes."""
        seen = self.record.sample(self.wanted.rollouts, self.generator)["seen"]
        for _ in range(self.trusted()):
            action, _ = self.actor.sample(seen, self.generator)
            after, reward = self.model.step(seen, action)
            end, known = self.game.is_over(after), self.model.knows(after)
            rows = {"seen": seen, "action": action, "reward": reward, "after": after, "end": end}
            self.imagined.add({name: value[known] for name, value in rows.items()})
            self.unknown["imagined"] += int((~known).sum())
            seen = after[known & ~end]
            if not len(seen):
                break

    def trusted(self) -> int:
        """How many steps are imagined in a row by now."""
        (low, high), (first, last) = self.wanted.lengths, self.wanted.epochs
        share = (self.steps / self.wanted.epoch - first) / max(1, last - first)
        return int(low + min(max(share, 0.0), 1.0) * (high - low))

    def learn(self) -> None:
        """One update; with policy enhancement the actor learns of what the engine says, if it is due."""
        tried, of_actor = None, True
        if self.wanted.by_engine:
            tried = self._try() if self.done["updates"] % self.wanted.every == 0 else None
            of_actor = tried is not None and len(tried.seen) > 0
        self.agent.update(self.batch(), tried, of_actor)
        self.done["updates"] += 1

    def _try(self) -> Tried:
        """Play the policy by the engine from states that were truly visited, and keep the steps."""
        wanted = self.wanted
        rows = self.record.sample(wanted.starts or self.settings.sac.batch, self.generator)
        start = State(rows["q"], rows["v"])
        horizon, steepest = wanted.horizon, wanted.steepest
        found = played_by_engine(self.agent, self.game, self.high, start, rows["played"], horizon, steepest)
        self.stepped.add(found.rows)
        self.unknown["policy"] += len(found.unknown)
        self.done["steps"] += found.steps
        return found.tried

    def batch(self) -> Batch:
        """Some true steps or their neighbours, those of the engine, and imagined ones."""
        count = self.settings.sac.batch
        stepped = self._stepped if self.stepped.size else 0
        imagined = count - self._true - self._stepped if self.imagined.size else 0
        known = self.around if self.near else self.record
        sizes = ((self.imagined, imagined), (known, count - imagined - stepped), (self.stepped, stepped))
        parts = [rows.sample(size, self.generator) for rows, size in sizes if size]
        return {name: torch.cat([part[name] for part in parts]) for name in self._widths}

    def told(self) -> dict[str, float]:
        """Also how well the model predicts, what the engine was asked, and what it could not tell."""
        counts = {f"unknown_{name}": float(value) for name, value in self.unknown.items()}
        counts |= {"engine_steps": float(self.done["steps"])}
        return super().told() | self._model_told | counts

    def parts(self) -> dict[str, Any]:
        """The model and all records too."""
        more = {"model": self.model, "imagined": self.imagined, "stepped": self.stepped}
        more |= {"unknown": self.unknown, "done": self.done}
        return super().parts() | more | ({} if self.near is None else {"near": self.near, "around": self.around})


class Counts(dict[str, int]):
    """Numbers by name, that can be kept."""

    def state_dict(self) -> dict[str, int]:
        """The numbers."""
        return dict(self)

    def load_state_dict(self, kept: Mapping[str, int]) -> None:
        """Take the numbers back."""
        self.update(kept)
