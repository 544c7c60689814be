"""Worlds that play a game side by side, all in one launch; those that end start anew."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.core import State
from physvision.envs.game import Game


class Moves(NamedTuple):
    """A step of every world.

    Attributes:
        start: where it started.
        seen: of its start.
        reward: of the step; zero where the world failed.
        after: what is seen of its end; of a world that failed that is its start.
        lost: whether the game is over.
        over: whether the time of the episode is.
        failed: whether the engine could not simulate the step, so that nothing can be learned of it.
    """

    start: State
    seen: Float[Tensor, "batch numbers"]
    reward: Float[Tensor, " batch"]
    after: Float[Tensor, "batch numbers"]
    lost: Bool[Tensor, " batch"]
    over: Bool[Tensor, " batch"]
    failed: Bool[Tensor, " batch"]


class Worlds:
    """Worlds that play a game.

    Attributes:
        game: its rules.
        state: where each world is.
        played: steps of the game since it started.
        failures: how many worlds failed so far, and were started anew.
    """

    def __init__(self, game: Game, count: int, generator: torch.Generator) -> None:
        """Start the worlds.

        Args:
            game: its rules.
            count: how many.
            generator: of the starts, now and later.
        """
        self.game, self.count, self._generator = game, count, generator
        self.state: State = game.begin(count, generator)
        self.played: Int[Tensor, " batch"] = torch.zeros(count, dtype=torch.int64)
        self.failures = 0

    def seen(self) -> Float[Tensor, "batch numbers"]:
        """What is seen of all worlds as they are."""
        return self.game.observe(self.state, self.played)

    @torch.no_grad()
    def step(self, control: Float[Tensor, "batch nu"]) -> Moves:
        """One step of every world, also of those whose game is over: see `restart`."""
        start, seen = self.state, self.seen()
        found = self.game.step(start, control.to(start.q))
        self.move(found.state, found.failed)
        reward = torch.where(found.failed, 0.0, found.reward)
        over = self.played >= self.game.periods
        return Moves(start, seen, reward, self.seen(), found.lost, over, found.failed)

    def move(self, state: State, failed: Bool[Tensor, " batch"], steps: int | Int[Tensor, " batch"] = 1) -> None:
        """Put the worlds where they have got to in so many steps; those that failed stay, and are counted."""
        last, stay = self.state, failed[:, None]
        self.state = State(torch.where(stay, last.q, state.q.detach()), torch.where(stay, last.v, state.v.detach()))
        self.played = self.played + steps
        self.failures += int(failed.sum())

    def restart(self, which: Bool[Tensor, " batch"]) -> None:
        """Start these worlds anew."""
        if not bool(which.any()):
            return
        fresh, rows = self.game.begin(int(which.sum()), self._generator), torch.nonzero(which)[:, 0]
        self.state = State(self.state.q.index_copy(0, rows, fresh.q), self.state.v.index_copy(0, rows, fresh.v))
        self.played = torch.where(which, 0, self.played)

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs to go on; the generator is its owner's."""
        return {"q": self.state.q, "v": self.state.v, "played": self.played, "failures": self.failures}

    def load_state_dict(self, kept: dict[str, Any]) -> None:
        """Go on from where `state_dict` was called."""
        self.state, self.played, self.failures = State(kept["q"], kept["v"]), kept["played"], kept["failures"]
