"""Learning from a record of steps: soft actor–critic that plays, records and learns from what it recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch

from physvision.core import TrainingError
from physvision.envs import Game, Moves
from physvision.learning.learner import Learner
from physvision.learning.replay import Batch, Replay
from physvision.learning.sac import Sac, SacSettings


@dataclass(frozen=True)
class RecordedSettings:
    """How soft actor–critic plays and what it keeps.

    Attributes:
        sac: numbers of the method.
        worlds: how many play at once.
        first: steps under random actions before anything is learned.
        updates: for each step of a world.
        capacity: steps that are kept.
    """

    sac: SacSettings = field(default_factory=SacSettings)
    worlds: int = 1
    first: int = 5000
    updates: int = 1
    capacity: int = 1_000_000


class Recorded(Learner):
    """Plays by its policy's chances, and learns from all that was played so far.

    Attributes:
        agent: actor and critics.
        record: the true steps, with the states they started from.
    """

    def __init__(self, game: Game, settings: RecordedSettings, seed: int) -> None:
        """Start with an empty record."""
        super().__init__(game, settings.worlds, seed)
        self.settings, self.high = settings, torch.tensor(game.high)
        seen, engine = self.worlds.seen().shape[1], game.engine
        self.agent = Sac(seen, len(game.high), settings.sac, self.generator)
        self.actor = self.agent.actor
        self._widths = {"seen": seen, "action": len(game.high), "reward": 0, "after": seen, "end": 0}
        exact = {"q": torch.float64, "v": torch.float64, "played": torch.int64}
        self._exact = {"widths": self._widths | {"q": engine.nq, "v": engine.nv, "played": 0}, "dtypes": exact}
        self.record = Replay(settings.capacity, **self._exact)

    def advance(self) -> None:
        """One step of every world, and the updates that are due for it."""
        self.play()
        if self.steps > self.settings.first:
            for _ in range(self.settings.updates * self.worlds.count):
                self.learn()

    def play(self) -> Moves:
        """One step of every world, recorded; of worlds that failed nothing is."""
        with torch.no_grad():
            if self.steps < self.settings.first:
                action = 2 * torch.rand(self.worlds.count, len(self.high), generator=self.generator) - 1
            else:
                action, _ = self.actor.sample(self.worlds.seen().float(), self.generator)
        played = self.worlds.played
        moves = self.worlds.step(action * self.high)
        end = moves.lost | (moves.over & self.game.timed)
        rows = {"seen": moves.seen, "action": action, "reward": moves.reward, "after": moves.after, "end": end}
        rows |= {"q": moves.start.q, "v": moves.start.v, "played": played}
        good = ~moves.failed
        self.record.add({name: value[good] for name, value in rows.items()})
        self.worlds.restart(moves.lost | moves.over)
        self.steps += self.worlds.count
        return moves

    def learn(self) -> None:
        """One update."""
        self.agent.update(self.batch())

    def batch(self) -> Batch:
        """What the next update learns from."""
        return self.record.sample(self.settings.sac.batch, self.generator)

    def told(self) -> dict[str, float]:
        """The last losses, and how many worlds failed."""
        losses = {name: float(value) for name, value in self.agent.told.items()}
        for name, value in losses.items():
            if not isfinite(value):
                raise TrainingError(f"{name}: expected a number, got {value} after {self.steps} steps of the game")
        return losses | {"failures": float(self.worlds.failures)}

    def parts(self) -> dict[str, Any]:
        """The agent and the record."""
        return {"agent": self.agent, "record": self.record}
