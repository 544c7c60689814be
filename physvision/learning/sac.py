"""Soft actor–critic (Haarnoja et al., 2018): learns from steps that were recorded, whoever took them.

With twin critics Q_i, slow copies Q̄_i of them, and entropy's weight α, which holds the entropy at a target H:

    critics   Σ_i ½ (Q_i(s, a) − r − γ (1 − end) (min_i Q̄_i(s', a') − α log π(a' | s')))²
    actor     α log π(a | s) − min_i Q_i(s, a)
    α         −log α · (log π(a | s) + H)

Nothing is read back in an update: α is a tensor, and losses are taken only when somebody asks.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.learning.networks import Actor, Layers, Passed, Squash, follow, joined
from physvision.learning.replay import Batch


class Tried(NamedTuple):
    """Actions that the policy took, and what was found of them.

    Attributes:
        seen: where it took them.
        noise: by which they were drawn.
        worth: of each.
        steep: the gradient of the worth by the action, a constant for the actor.
    """

    seen: Float[Tensor, "batch numbers"]
    noise: Float[Tensor, "batch actions"]
    worth: Float[Tensor, " batch"]
    steep: Float[Tensor, "batch actions"]


@dataclass(frozen=True)
class SacSettings:
    """Numbers of soft actor–critic.

    Attributes:
        hidden: widths of all networks.
        learning_rate: of Adam, for all.
        target_rate: share by which the slow critics follow.
        batch: rows in an update.
        discount: γ.
        target_entropy: H; the negative number of actions if not given.
        entropy_weight: α at the start.
        rounded: whether products between hidden layers are taken in bfloat16.
    """

    hidden: tuple[int, ...] = (256, 256)
    learning_rate: float = 3e-4
    target_rate: float = 5e-3
    batch: int = 256
    discount: float = 0.99
    target_entropy: float | None = None
    entropy_weight: float = 1.0
    rounded: bool = True


class Sac:
    """An actor, its critics and what they learn by.

    Attributes:
        actor: the policy.
        critics: both, side by side; from what is seen and done to the value.
    """

    def __init__(self, seen: int, actions: int, settings: SacSettings, generator: torch.Generator) -> None:
        """Draw the weights.

        Args:
            seen: numbers that are seen.
            actions: numbers in an action.
            settings: of the method.
            generator: of all noise.
        """
        self.settings, self.generator = settings, generator
        self.actor = Actor(seen, settings.hidden, actions, rounded=settings.rounded)
        self.critics = Layers(2, (seen + actions, *settings.hidden, 1), rounded=settings.rounded)
        self.slow = deepcopy(self.critics).requires_grad_(False)
        self.weight = nn.Parameter(torch.tensor([log(settings.entropy_weight)]))  # log α
        self.target_entropy = -float(actions) if settings.target_entropy is None else settings.target_entropy
        self._policy = joined([*self.actor.parameters(), self.weight])
        self._of_policy = self._policy.grad
        parts = [self._policy, joined([*self.critics.parameters()])]
        self.optimizer = torch.optim.Adam(parts, settings.learning_rate, fused=True)
        # What was freed in a piece of this size the C library keeps from then on, and need not ask for in each update.
        torch.empty(2**24, dtype=torch.uint8)
        self._error: Tensor | None = None
        self._valued: tuple[Tensor, Tensor] | None = None

    @torch.no_grad()
    def update(self, batch: Batch, tried: Tried | None = None, of_actor: bool = True) -> None:
        """One step of Adam for actor, critics and weight, with the gradients of all at the same weights.

        Args:
            batch: `seen`, `action`, `reward`, `after`, and `end`: 1 where nothing comes after.
            tried: actions whose worth the actor learns of; if not given, it draws some where the batch saw something,
                and the lower critic values them.
            of_actor: whether actor and weight learn too, or the critics alone.
        """
        later, now = self._drawn(batch, tried, of_actor)
        weight = self.weight.exp()
        following = self.slow.forth(torch.cat([batch["after"], later.action], 1))[0].amin(0)[:, 0]
        following = following - weight * later.density
        goal = batch["reward"] + self.settings.discount * (1 - batch["end"]) * following
        value, passed = self.critics.forth(torch.cat([batch["seen"], batch["action"]], 1))
        error = value - goal[:, None]
        self.critics.back(passed, error / len(goal))
        self._error = error
        # Without a gradient Adam leaves them as they are.
        self._policy.grad = None if now is None else self._of_policy
        if now is not None:
            drawn, kept = now
            told = batch["seen"] if tried is None else tried.seen
            valued, steep = self._lower(told, drawn.action) if tried is None else (tried.worth, tried.steep)
            of_output = drawn.back(steep / -len(told), (weight / len(told)).expand(len(told)))
            self.actor.layers.back(kept, of_output[None])
            assert self.weight.grad is not None
            self.weight.grad.copy_(-drawn.density.mean() - self.target_entropy)
            self._valued = drawn.density, valued
        self.optimizer.step()
        follow(self.slow, self.critics, self.settings.target_rate)

    def _drawn(self, batch: Batch, tried: Tried | None, of_actor: bool) -> tuple[Squash, tuple[Squash, Passed] | None]:
        """Actions after the batch's steps, and those that the actor learns of with what its way back needs."""
        later = len(batch["after"])
        told = [] if not of_actor else [batch["seen"] if tried is None else tried.seen]
        output, kept = self.actor.layers.forth(torch.cat([batch["after"], *told]))
        fresh = output.shape[1] if tried is None else later
        noise = torch.randn(fresh, self.actor.actions, generator=self.generator)
        noise = noise if tried is None or not of_actor else torch.cat([noise, tried.noise])
        drawn = Squash.of(output[0], noise)
        return drawn.rows(0, later), (drawn.rows(later), kept.rows(later)) if of_actor else None

    def _lower(self, seen: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """The lower critic's value of actions, and its gradient by them."""
        value, passed = self.critics.forth(torch.cat([seen, action], 1))
        lower = value.amin(0)
        steep = self.critics.back_to_inputs(passed, (value == lower).to(value.dtype))
        return lower[:, 0], steep[:, seen.shape[1] :]

    @property
    def told(self) -> dict[str, Tensor]:
        """The last losses, and the entropy."""
        if self._error is None:
            return {}
        critics = {"critics": 0.5 * self._error.square().mean((1, 2)).sum()}
        if self._valued is None:
            return critics
        density, valued = self._valued
        policy = (self.weight.detach().exp() * density - valued).mean()
        return critics | {"actor": policy, "entropy": -density.mean()}

    def values(self, seen: Tensor, action: Tensor, frozen: bool = False) -> Float[Tensor, "critics batch"]:
        """What both critics think; frozen, they are constants, with gradients to what is seen and done."""
        return self.critics(torch.cat([seen, action], 1), frozen).squeeze(2)

    def state_dict(self) -> dict[str, Any]:
        """All weights, and what the optimizers remember."""
        networks = {name: getattr(self, name).state_dict() for name in ("actor", "critics", "slow")}
        return networks | {"weight": self.weight, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, kept: dict[str, Any]) -> None:
        """Go on from where `state_dict` was called."""
        for name in ("actor", "critics", "slow"):
            getattr(self, name).load_state_dict(kept[name])
        with torch.no_grad():
            self.weight.copy_(kept["weight"])
        self.optimizer.load_state_dict(kept["optimizer"])
