"""Model-based policy optimization (Janner et al., 2019): soft actor–critic that learns mainly from a world model.

At intervals a model is fitted to all real transitions and rolled out from their states for a few steps; batches consist
mainly of these steps. Policy enhancement (`policy_enhancement`) and sample enhancement (`sample_enhancement`) are
options. Steps that the engine simulates for policy enhancement can replace those of the model; if they replace all of
them, no model is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from physvision.core import InputError, State
from physvision.envs import Environment
from physvision.learning.off_policy import OffPolicyAgent, OffPolicySettings
from physvision.learning.policy_enhancement import engine_rollouts
from physvision.learning.replay_buffer import Batch, ReplayBuffer
from physvision.learning.sac import ActionEvaluation
from physvision.learning.sample_enhancement import SampleEnhancement, SampleEnhancementSettings
from physvision.learning.world_model import WorldModel, WorldModelSettings


@dataclass(frozen=True)
class MbpoSettings:
    """Settings of model-based policy optimization (MBPO). Defaults are the paper's, but a tenth of its model rollouts.

    Attributes:
        off_policy: Settings of data collection and of soft actor–critic.
        model: Settings of the world model.
        model_update_every: Real steps between fits of the model; a larger number saves time.
        num_model_rollouts: Rollouts of the model after each fit; more of them give more varied batches.
        rollout_length: Initial and final length of a model rollout, in steps; longer ones add more model error.
        rollout_schedule: First and last epoch of the growth from the initial to the final length.
        epoch_steps: Real steps of an epoch.
        real_ratio: Fraction of real transitions in a batch; a larger one relies less on the model.
        policy_enhancement: If true, the actor learns from the engine's gradients instead of the critics'.
        horizon: Environment steps of an engine rollout; longer ones rely less on the critic and have larger gradients.
        actor_batch_size: Number of real states from which an actor update starts engine rollouts; None for the batch
            size.
        actor_update_every: Number of critic updates for each actor update, with policy enhancement.
        max_action_grad: Largest norm of an action's gradient from the engine; larger gradients are scaled down to it.
            None for no limit.
        engine_ratio: Fraction of a batch that consists of engine steps in place of model steps.
        sample_enhancement: Settings of augmented transitions.
    """

    off_policy: OffPolicySettings = field(default_factory=OffPolicySettings)
    model: WorldModelSettings = field(default_factory=WorldModelSettings)
    model_update_every: int = 250
    num_model_rollouts: int = 10_000
    rollout_length: tuple[int, int] = (1, 10)
    rollout_schedule: tuple[int, int] = (1, 15)
    epoch_steps: int = 100
    real_ratio: float = 0.05
    policy_enhancement: bool = False
    horizon: int = 1
    actor_batch_size: int | None = None
    actor_update_every: int = 1
    max_action_grad: float | None = None
    engine_ratio: float = 0.0
    sample_enhancement: SampleEnhancementSettings = field(default_factory=SampleEnhancementSettings)


class Mbpo(OffPolicyAgent):
    """Model-based policy optimization, with policy and sample enhancement as options.

    Use it where real steps are expensive, or, with policy enhancement, where the engine's gradients over a horizon are
    well-behaved. Sample enhancement only pays off for transitions without contact changes.

    Attributes:
        model: World model of the environment.
        model_buffer: Steps of the model's rollouts.
        engine_buffer: Steps of the engine's rollouts.
        sample_enhancement: Jacobians of real transitions; None if sample enhancement is off.
        augmented_buffer: Augmented transitions that critics learn from until the next fit.
        discarded_counts: Numbers of discarded branches of engine rollouts, Jacobians, contact changes and model steps.
        counts: Numbers of updates, and of environment steps that the engine simulated in addition to the real ones.
    """

    def __init__(self, env: Environment, settings: MbpoSettings, seed: int) -> None:
        """Start with an empty replay buffer and an unfitted model.

        Args:
            env: Environment to train on.
            settings: Settings of MBPO.
            seed: Seed of all random numbers.
        """
        max_engine_ratio = 1 - settings.real_ratio if settings.policy_enhancement else 0.0
        if settings.engine_ratio > max_engine_ratio:
            condition = "1 − real_ratio" if settings.policy_enhancement else "because policy_enhancement is off"
            raise InputError(
                f"engine_ratio: expected at most {max_engine_ratio:g} ({condition}), got {settings.engine_ratio}"
            )
        super().__init__(env, settings.off_policy, seed)
        self.mbpo_settings = settings
        self.model = WorldModel(self._field_sizes["obs"], len(env.action_limit), settings.model, self.generator)
        batch_size = settings.off_policy.sac.batch_size
        self._num_real = round(settings.real_ratio * batch_size)
        self._num_engine = min(round(settings.engine_ratio * batch_size), batch_size - self._num_real)
        self._num_model = batch_size - self._num_real - self._num_engine
        capacity = settings.num_model_rollouts * settings.rollout_length[1]
        self.model_buffer, self.engine_buffer = (ReplayBuffer(capacity, self._field_sizes) for _ in range(2))
        enhancement = settings.sample_enhancement
        capacity, self.sample_enhancement = 1, None
        if enhancement.augmented_per_real:
            capacity = settings.num_model_rollouts
            self.sample_enhancement = SampleEnhancement(env, enhancement, settings.off_policy.buffer_size)
        self.augmented_buffer = ReplayBuffer(capacity, self._field_sizes)
        self.discarded_counts = Counts(branches=0, jacobians=0, contact_changes=0, model_steps=0)
        self.counts = Counts(updates=0, engine_steps=0)
        self._model_metrics: dict[str, float] = {}

    def advance(self) -> None:
        """Step every world, fit the model if a fit is due, and update the networks."""
        before = self.env_steps
        transitions = self.collect()
        if self.sample_enhancement is not None:
            self.sample_enhancement.add(int((~transitions.failed).sum()))
        start, interval = self.settings.learning_starts, self.mbpo_settings.model_update_every
        if self.env_steps < start:
            return
        if before < start or before // interval < self.env_steps // interval:
            self._update_model()
        for _ in range(self.settings.updates_per_step * self.worlds.num_envs):
            self.update()

    def _update_model(self) -> None:
        """Compute new Jacobians, fit the model to all real and augmented transitions, and roll it out."""
        augment = None
        if self.sample_enhancement is not None:
            stats = self.sample_enhancement.compute_jacobians(self.replay_buffer)
            self.discarded_counts["jacobians"] += stats.failed
            self.discarded_counts["contact_changes"] += stats.dropped
            self.counts["engine_steps"] += stats.engine_steps
            augment = partial(self._augment, torch.arange(self.replay_buffer.size))
        if self._num_model:
            self._model_metrics = self.model.fit(self.replay_buffer.contents(), augment)
        if self.sample_enhancement is not None:
            indices = self.replay_buffer.sample_indices(self.mbpo_settings.num_model_rollouts, self.generator)
            self.augmented_buffer.add(self._augment(indices))
        if self._num_model:
            self._roll_out_model()

    def _augment(self, indices: Tensor) -> Batch:
        """Return real transitions of which a random part is replaced by augmented ones."""
        assert self.sample_enhancement is not None
        return self.sample_enhancement.augment(self.replay_buffer.gather(indices), indices, self.generator)

    @torch.no_grad()
    def _roll_out_model(self) -> None:
        """Roll out the model from real states, as long as observations stay near those of its training data."""
        obs = self.replay_buffer.sample(self.mbpo_settings.num_model_rollouts, self.generator)["obs"]
        for _ in range(self.current_rollout_length()):
            action, _ = self.actor.sample(obs, self.generator)
            next_obs, reward = self.model.predict(obs, action)
            terminated, in_range = self.env.is_terminal(next_obs), self.model.in_training_range(next_obs)
            rows = {"obs": obs, "action": action, "reward": reward, "next_obs": next_obs, "terminated": terminated}
            self.model_buffer.add({name: value[in_range] for name, value in rows.items()})
            self.discarded_counts["model_steps"] += int((~in_range).sum())
            obs = next_obs[in_range & ~terminated]
            if not len(obs):
                break

    def current_rollout_length(self) -> int:
        """Return the current length of a model rollout, in steps."""
        (short, long), (start, end) = self.mbpo_settings.rollout_length, self.mbpo_settings.rollout_schedule
        progress = (self.env_steps / self.mbpo_settings.epoch_steps - start) / max(1, end - start)
        return int(short + min(max(progress, 0.0), 1.0) * (long - short))

    def update(self) -> None:
        """Update the networks once; with policy enhancement, the actor is updated only if an update is due."""
        evaluation, update_actor = None, True
        if self.mbpo_settings.policy_enhancement:
            due = self.counts["updates"] % self.mbpo_settings.actor_update_every == 0
            evaluation = self._evaluate_actions() if due else None
            update_actor = evaluation is not None and len(evaluation.obs) > 0
        self.sac.update(self.batch(), evaluation, update_actor)
        self.counts["updates"] += 1

    def _evaluate_actions(self) -> ActionEvaluation:
        """Roll out the policy with the engine from real states, store the steps and return the action values."""
        settings = self.mbpo_settings
        rows = self.replay_buffer.sample(settings.actor_batch_size or self.settings.sac.batch_size, self.generator)
        start, elapsed = State(rows["q"], rows["v"]), rows["elapsed_steps"]
        rollouts = engine_rollouts(self.sac, self.env, start, elapsed, settings.horizon, settings.max_action_grad)
        self.engine_buffer.add(rollouts.transitions)
        self.discarded_counts["branches"] += len(rollouts.failed_branches)
        self.counts["engine_steps"] += rollouts.engine_steps
        return rollouts.evaluation

    def batch(self) -> Batch:
        """Draw a batch of real or augmented transitions, of engine steps and of model steps."""
        engine = self._num_engine if self.engine_buffer.size else 0
        model = self._num_model if self.model_buffer.size else 0
        real_buffer = self.augmented_buffer if self.sample_enhancement else self.replay_buffer
        num_real = self.settings.sac.batch_size - model - engine
        sources = ((self.model_buffer, model), (real_buffer, num_real), (self.engine_buffer, engine))
        batches = [buffer.sample(count, self.generator) for buffer, count in sources if count]
        return {name: torch.cat([batch[name] for batch in batches]) for name in self._field_sizes}

    def metrics(self) -> dict[str, float]:
        """Return the base class's metrics, the model's error, and the numbers of engine steps and skipped steps."""
        discarded = {f"discarded_{name}": float(value) for name, value in self.discarded_counts.items()}
        engine_steps = {"engine_steps": float(self.counts["engine_steps"])}
        return super().metrics() | self._model_metrics | discarded | engine_steps

    def modules(self) -> dict[str, Any]:
        """Return the base class's modules, the model, the buffers and the counters."""
        names = ["model", "model_buffer", "engine_buffer", "discarded_counts", "counts"]
        names += ["sample_enhancement", "augmented_buffer"] if self.sample_enhancement else []
        return super().modules() | {name: getattr(self, name) for name in names}


class Counts(dict[str, int]):
    """Integer counters by name with a `state_dict`, so that checkpoints include them."""

    def state_dict(self) -> dict[str, int]:
        """Return the counters as a plain dictionary."""
        return dict(self)

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Restore the result of `state_dict`."""
        self.update(state)
