"""Soft actor–critic (Haarnoja et al., 2018): off-policy learning from transitions collected by any policy.

With twin critics Q_i, target critics Q̄_i and the entropy coefficient α, which holds the entropy at a target H:

    critics   Σ_i ½ (Q_i(s, a) − r − γ (1 − terminated) (min_i Q̄_i(s', a') − α log π(a' | s')))²
    actor     α log π(a | s) − min_i Q_i(s, a)
    α         −log α · (log π(a | s) + H)

An update copies nothing from the device to the host: α is a tensor, and losses are computed only by `metrics`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.learning.actor import Actor, TanhNormalSample
from physvision.learning.networks import EnsembleMlp, ForwardCache, flatten_parameters, polyak_update
from physvision.learning.replay_buffer import Batch


class ActionEvaluation(NamedTuple):
    """Actions of the policy, their values and the gradients of the values.

    Attributes:
        obs: Observations at which the policy acted.
        noise: Standard normal noise of the actions.
        value: Value of each action.
        action_gradient: Gradient of the value with respect to the action, a constant for the actor.
    """

    obs: Float[Tensor, "batch obs"]
    noise: Float[Tensor, "batch actions"]
    value: Float[Tensor, " batch"]
    action_gradient: Float[Tensor, "batch actions"]


@dataclass(frozen=True)
class SacSettings:
    """Settings of soft actor–critic. Defaults are those of the paper.

    Attributes:
        hidden_sizes: Hidden layer sizes of all networks; larger ones represent more and cost more.
        learning_rate: Learning rate of Adam for all networks; a higher one learns faster and less stably.
        target_tau: Fraction by which target critics move toward the critics in each update; a higher one propagates
            rewards back in time faster and makes targets noisier.
        batch_size: Transitions in an update; more of them make gradients less noisy.
        discount: Discount factor γ; closer to 1 it looks further ahead.
        target_entropy: Target entropy H, in nats; higher explores more; None for the negative length of an action.
        init_entropy_coef: Initial entropy coefficient α; higher explores more at the start.
        bf16: If true, products between hidden layers are computed in bfloat16.
    """

    hidden_sizes: tuple[int, ...] = (256, 256)
    learning_rate: float = 3e-4
    target_tau: float = 5e-3
    batch_size: int = 256
    discount: float = 0.99
    target_entropy: float | None = None
    init_entropy_coef: float = 1.0
    bf16: bool = True


class Sac:
    """Actor, critics and entropy coefficient of soft actor–critic, with their update.

    Attributes:
        actor: Stochastic policy.
        critics: Twin critics, from observation and action to a value, evaluated together.
        target_critics: Copies of the critics that follow them slowly.
        log_alpha: Logarithm of the entropy coefficient.
    """

    def __init__(self, obs_size: int, action_size: int, settings: SacSettings, generator: torch.Generator) -> None:
        """Initialize the networks and their optimizer.

        Args:
            obs_size: Length of an observation.
            action_size: Length of an action.
            settings: Settings of the algorithm.
            generator: Random generator of action noise.
        """
        self.settings, self.generator = settings, generator
        self.actor = Actor(obs_size, settings.hidden_sizes, action_size, bf16=settings.bf16)
        critic_sizes = (obs_size + action_size, *settings.hidden_sizes, 1)
        self.critics = EnsembleMlp(2, critic_sizes, bf16=settings.bf16)
        self.target_critics = deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = nn.Parameter(torch.tensor([log(settings.init_entropy_coef)]))
        self.target_entropy = -float(action_size) if settings.target_entropy is None else settings.target_entropy
        self._actor_parameters = flatten_parameters([*self.actor.parameters(), self.log_alpha])
        self._actor_gradient = self._actor_parameters.grad
        parameters = [self._actor_parameters, flatten_parameters([*self.critics.parameters()])]
        self.optimizer = torch.optim.Adam(parameters, settings.learning_rate, fused=True)
        # Once a block of this size was freed, the C library retains freed memory, so that updates need not request it.
        torch.empty(2**24, dtype=torch.uint8)
        self._td_error: Tensor | None = None
        self._actor_result: tuple[Tensor, Tensor] | None = None  # log-probabilities and values of the last update

    @torch.no_grad()
    def update(self, batch: Batch, evaluation: ActionEvaluation | None = None, update_actor: bool = True) -> None:
        """Take one Adam step for actor, critics and α; all gradients are evaluated at the weights before the step.

        Args:
            batch: Transitions: `obs`, `action`, `reward`, `next_obs`, and `terminated`, 1 at terminal states.
            evaluation: Actions with the values from which the actor learns; if None, the actor acts at the batch's
                observations and the critic with the lower value evaluates its actions.
            update_actor: If true, actor and α are updated too; otherwise only the critics.
        """
        next_sample, actor_pass = self._sample_actions(batch, evaluation, update_actor)
        alpha = self.log_alpha.exp()
        next_inputs = torch.cat([batch["next_obs"], next_sample.action], 1)
        next_value = self.target_critics.forward_with_cache(next_inputs)[0].amin(0)[:, 0]
        next_value = next_value - alpha * next_sample.log_prob
        target = batch["reward"] + self.settings.discount * (1 - batch["terminated"]) * next_value
        value, cache = self.critics.forward_with_cache(torch.cat([batch["obs"], batch["action"]], 1))
        td_error = value - target[:, None]
        self.critics.backward_parameters(cache, td_error / len(target))
        self._td_error = td_error
        # Adam leaves parameters without a gradient unchanged.
        self._actor_parameters.grad = None if actor_pass is None else self._actor_gradient
        if actor_pass is not None:
            sample, cache = actor_pass
            obs = batch["obs"] if evaluation is None else evaluation.obs
            if evaluation is None:
                value, action_gradient = self._lower_critic(obs, sample.action)
            else:
                value, action_gradient = evaluation.value, evaluation.action_gradient
            output_gradient = sample.backward(action_gradient / -len(obs), (alpha / len(obs)).expand(len(obs)))
            self.actor.network.backward_parameters(cache, output_gradient[None])
            assert self.log_alpha.grad is not None
            self.log_alpha.grad.copy_(-sample.log_prob.mean() - self.target_entropy)
            self._actor_result = sample.log_prob, value
        self.optimizer.step()
        polyak_update(self.target_critics, self.critics, self.settings.target_tau)

    def _sample_actions(
        self, batch: Batch, evaluation: ActionEvaluation | None, update_actor: bool
    ) -> tuple[TanhNormalSample, tuple[TanhNormalSample, ForwardCache] | None]:
        """Return next actions, and the actions from which the actor learns with the cache of its forward pass."""
        count = len(batch["next_obs"])
        actor_obs = [] if not update_actor else [batch["obs"] if evaluation is None else evaluation.obs]
        output, cache = self.actor.network.forward_with_cache(torch.cat([batch["next_obs"], *actor_obs]))
        num_noise_rows = output.shape[1] if evaluation is None else count
        noise = torch.randn(num_noise_rows, self.actor.action_size, generator=self.generator)
        noise = noise if evaluation is None or not update_actor else torch.cat([noise, evaluation.noise])
        sample = TanhNormalSample.draw(output[0], noise)
        actor_pass = (sample.slice_rows(count), cache.slice_batch(count)) if update_actor else None
        return sample.slice_rows(0, count), actor_pass

    def _lower_critic(self, obs: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return the lower critic's value of actions, and its gradient with respect to them."""
        value, cache = self.critics.forward_with_cache(torch.cat([obs, action], 1))
        min_value = value.amin(0)
        gradient = self.critics.backward_inputs(cache, (value == min_value).to(value.dtype))
        return min_value[:, 0], gradient[:, obs.shape[1] :]

    def metrics(self) -> dict[str, Tensor]:
        """Return the losses and the entropy of the last update."""
        if self._td_error is None:
            return {}
        critics = {"critic_loss": 0.5 * self._td_error.square().mean((1, 2)).sum()}
        if self._actor_result is None:
            return critics
        log_prob, value = self._actor_result
        actor_loss = (self.log_alpha.detach().exp() * log_prob - value).mean()
        return critics | {"actor_loss": actor_loss, "entropy": -log_prob.mean()}

    def q_values(self, obs: Tensor, action: Tensor, frozen_weights: bool = False) -> Float[Tensor, "critics batch"]:
        """Return the values of both critics; if frozen, gradients only reach observation and action."""
        return self.critics(torch.cat([obs, action], 1), frozen_weights).squeeze(2)

    def state_dict(self) -> dict[str, Any]:
        """Return all weights and the state of the optimizer."""
        networks = {name: getattr(self, name).state_dict() for name in ("actor", "critics", "target_critics")}
        return networks | {"log_alpha": self.log_alpha, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        for name in ("actor", "critics", "target_critics"):
            getattr(self, name).load_state_dict(state[name])
        with torch.no_grad():
            self.log_alpha.copy_(state["log_alpha"])
        self.optimizer.load_state_dict(state["optimizer"])
