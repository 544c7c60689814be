"""What learns a game, a piece at a time, so that it can be kept and gone on with between any two pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.envs import Game, Worlds
from physvision.learning.networks import Actor


class Learner(ABC):
    """A method at work on a game.

    Attributes:
        game: what is learned.
        worlds: where it is played.
        actor: the policy so far.
        generator: of all that is drawn, but for weights, which are drawn by torch's own, seeded alike.
        steps: of the game so far, in all worlds together.
        dtype: of networks and of what they are told.
    """

    actor: Actor
    dtype: torch.dtype = torch.float32

    def __init__(self, game: Game, worlds: int, seed: int) -> None:
        """Start the worlds.

        Args:
            game: what is to be learned.
            worlds: how many play it.
            seed: of all that is drawn.
        """
        torch.manual_seed(seed)
        self.game, self.generator, self.steps = game, torch.Generator().manual_seed(seed), 0
        self.worlds = Worlds(game, worlds, self.generator)

    @abstractmethod
    def advance(self) -> None:
        """Play for a while, and learn of it."""

    @abstractmethod
    def told(self) -> dict[str, float]:
        """What is worth being drawn, by name."""

    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """What has a `state_dict`, by name."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on as if nothing had happened."""
        kept = {name: part.state_dict() for name, part in ({"worlds": self.worlds} | self.parts()).items()}
        chances = {"generator": self.generator.get_state(), "torch": torch.get_rng_state()}
        return {"steps": self.steps, "parts": kept, "chances": chances}

    def load_state_dict(self, kept: dict[str, Any]) -> None:
        """Go on from where `state_dict` was called."""
        self.steps = kept["steps"]
        for name, part in ({"worlds": self.worlds} | self.parts()).items():
            part.load_state_dict(kept["parts"][name])
        self.generator.set_state(kept["chances"]["generator"])
        torch.set_rng_state(kept["chances"]["torch"])


@torch.no_grad()
def evaluate(game: Game, actor: Actor, episodes: int, seed: int) -> Float[Tensor, " episodes"]:
    """What the policy earns without noise, in so many episodes at once; failed worlds are left out.

    Args:
        game: what is played.
        actor: the policy.
        episodes: how many.
        seed: of their starts.
    """
    worlds = Worlds(game, episodes, torch.Generator().manual_seed(seed))
    playing, good = torch.ones(episodes, dtype=torch.bool), torch.ones(episodes, dtype=torch.bool)
    total, high = torch.zeros(episodes, dtype=torch.float64), torch.tensor(game.high)
    for _ in range(game.periods):
        moves = worlds.step(actor.best(worlds.seen().float()) * high)
        total += torch.where(playing, moves.reward, 0.0)
        good &= ~(playing & moves.failed)
        playing &= ~moves.lost
        if not bool(playing.any()):
            break
    return total[good]
