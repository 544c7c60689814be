"""A game: an engine, where it starts, what is seen of it, and what a step is worth; all in torch, with gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.core import State
from physvision.physics import Engine


class Outcome(NamedTuple):
    """What a step led to.

    Attributes:
        state: at its end.
        reward: of the step.
        lost: whether the game is over for the world; worlds that failed are.
        failed: whether the engine could not simulate the step.
    """

    state: State
    reward: Float[Tensor, " batch"]
    lost: Bool[Tensor, " batch"]
    failed: Bool[Tensor, " batch"]


@dataclass(frozen=True)
class Game:
    """The rules.

    Attributes:
        engine: what moves.
        begin: states of so many worlds to start from, drawn with a generator.
        see: what is seen of states.
        reward: of steps, from the states at their starts, those at their ends and the controls over them.
        high: the largest controls; the least are their negatives.
        periods: steps of the game in an episode.
        steps: steps of the engine, under one control, in a step of the game.
        lost: whether what is seen ends the game; nothing does if not given.
        timed: whether the share of the episode that has passed is seen too, as the last number. The end of its time is
            then an end of the game like any other; otherwise only the record breaks off there.
        touching: of states, which parts touch something; not given where nothing can.
        vary: properties of so many worlds, drawn with a generator around those of the engine, for what is learned to
            bear other worlds; not given where there are none.
        fastest: largest velocity that the engine's step resolves; a world that is faster has failed.
    """

    engine: Engine
    begin: Callable[[int, torch.Generator], State]
    see: Callable[[State], Tensor]
    reward: Callable[[State, State, Tensor], Tensor]
    high: tuple[float, ...]
    periods: int
    steps: int = 1
    lost: Callable[[Tensor], Tensor] | None = None
    timed: bool = False
    touching: Callable[[State], Tensor] | None = None
    vary: Callable[[int, torch.Generator], dict[str, Tensor]] | None = None
    fastest: float = math.inf

    def observe(self, state: State, played: Int[Tensor, " batch"]) -> Float[Tensor, "batch numbers"]:
        """What a player is told of states after so many steps of the game."""
        seen = self.see(state)
        return torch.cat([seen, played[:, None].to(seen) / self.periods], 1) if self.timed else seen

    def is_over(self, seen: Float[Tensor, "*batch numbers"]) -> Bool[Tensor, " *batch"]:
        """Whether the game is over where this is seen."""
        over = torch.zeros(seen.shape[:-1], dtype=torch.bool) if self.lost is None else self.lost(seen)
        # Half a step early: a learned model tells the time with an error.
        return over | (seen[..., -1] > 1 - 0.5 / self.periods) if self.timed else over

    def step(self, state: State, control: Float[Tensor, "batch nu"]) -> Outcome:
        """One step of the game; what lies beyond the bounds of a control is cut off."""
        high = control.new_tensor(self.high)
        held = control.clamp(-high, high)
        moved = self.engine.rollout(state, self.steps, held.unsqueeze(1).expand(-1, self.steps, -1))
        end, status = moved.final, moved.status
        failed = ~(end.q.isfinite().all(1) & end.v.isfinite().all(1)) | (end.v.detach().abs() > self.fastest).any(1)
        if status is not None and not status.is_pending:
            failed = failed | ~status.converged
        lost = failed if self.lost is None else failed | self.lost(self.see(end))
        return Outcome(end, self.reward(state, end, held), lost, failed)
