"""A game: an engine, where it starts, what is seen of it, and what a step is worth; all in torch, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.core import State
from physvision.physics import Engine


class Outcome(NamedTuple):
    """What a step led to.

    Attributes:
        state: at its end.
        seen: of that state.
        reward: of the step.
        lost: whether the game is over for the world; worlds that failed are.
    """

    state: State
    seen: Float[Tensor, "batch numbers"]
    reward: Float[Tensor, " batch"]
    lost: Bool[Tensor, " batch"]


@dataclass(frozen=True)
class Game:
    """The rules.

    Attributes:
        engine: what moves.
        begin: states of so many worlds to start from, drawn with a generator.
        see: what is seen of states.
        reward: of steps, from the states at their ends and the controls over them.
        high: the largest controls; the least are their negatives.
        periods: steps of the game in an episode.
        steps: steps of the engine, under one control, in a step of the game.
        lost: of states, whether they end the game; none does if not given.
    """

    engine: Engine
    begin: Callable[[int, torch.Generator], State]
    see: Callable[[State], Tensor]
    reward: Callable[[State, Tensor], Tensor]
    high: tuple[float, ...]
    periods: int
    steps: int = 1
    lost: Callable[[State], Tensor] | None = None

    def step(self, state: State, control: Float[Tensor, "batch nu"]) -> Outcome:
        """One step of the game; what lies beyond the bounds of a control is cut off."""
        high = control.new_tensor(self.high)
        held = control.clamp(-high, high)
        end = self.engine.rollout(state, self.steps, held.unsqueeze(1).expand(-1, self.steps, -1)).final
        failed = ~(end.q.isfinite().all(1) & end.v.isfinite().all(1))
        over = failed if self.lost is None else failed | self.lost(end)
        return Outcome(end, self.see(end), self.reward(end, held), over)
