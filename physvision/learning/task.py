"""A game as what a policy is to do, so that it is played by the loop that has gradients."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.policies import Task
from physvision.core import State
from physvision.envs import Game
from physvision.learning.networks import squashed


class GameTask(Task):
    """A game as a task, from the states that worlds are in; the aim is how many of its periods have passed."""

    def __init__(
        self,
        game: Game,
        periods: int,
        generator: torch.Generator,
        limit: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Say how it is played.

        Args:
            game: what is played.
            periods: of a window.
            generator: of the noise in actions.
            limit: of accelerations beyond which no signal goes back.
            dtype: of what the actor is told.
        """
        self.game, self.engine, self.periods, self.steps = game, game.engine, periods, game.steps
        self._generator, self._limit, self._dtype, self._high = generator, limit, dtype, torch.tensor(game.high)

    def begin(self, batch: int, generator: torch.Generator) -> tuple[State, Float[Tensor, "batch 1"]]:
        """The game's start."""
        return self.game.begin(batch, generator), torch.zeros(batch, 1)

    def sense(self, state: State, aim: Float[Tensor, "batch 1"]) -> Tensor:
        """What the game shows."""
        return self.game.observe(state, aim[:, 0].long()).to(self._dtype)

    def act(self, state: State, output: Tensor) -> Tensor:
        """The actor's action with its noise."""
        noise = torch.randn(len(output), len(self._high), generator=self._generator)
        return (squashed(output, noise)[0] * self._high).to(state.q)

    def losses(self, state: State, aim: Tensor) -> Tensor:
        """Zeros: a game's rewards also ask for controls and the states before."""
        return state.q.new_zeros(state.batch)

    def stiffness(self, start: State, end: State) -> Float[Tensor, " batch"]:
        """The mean acceleration over a period."""
        return (end.v - start.v).detach().norm(dim=1) / (self.steps * self.engine.dt)

    def cut(self, start: State, end: State) -> Bool[Tensor, " batch"] | None:
        """Worlds that accelerate beyond the limit."""
        return None if self._limit is None else self.stiffness(start, end) > self._limit
