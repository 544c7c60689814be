"""Off-policy learning: soft actor–critic collects transitions in a replay buffer and learns from samples of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch

from physvision.core import TrainingError
from physvision.envs import Environment, Transitions
from physvision.learning.learner import Learner
from physvision.learning.replay_buffer import Batch, ReplayBuffer
from physvision.learning.sac import Sac, SacSettings


@dataclass(frozen=True)
class OffPolicySettings:
    """Settings of soft actor–critic (SAC), without gradients of the engine. Defaults are the SAC and MBPO papers'.

    Attributes:
        sac: Settings of the actor, the critics and their updates.
        num_envs: Worlds that are stepped together; more of them collect more varied data between updates.
        learning_starts: Environment steps with uniformly random actions before learning; more of them explore further.
        updates_per_step: Updates for each environment step of a world; more of them need fewer steps but more time.
        buffer_size: Capacity of the replay buffer, in transitions; a larger one keeps transitions of older policies.
    """

    sac: SacSettings = field(default_factory=SacSettings)
    num_envs: int = 1
    learning_starts: int = 5000
    updates_per_step: int = 1
    buffer_size: int = 1_000_000


class OffPolicyAgent(Learner):
    """Soft actor–critic (SAC): acts with its stochastic policy and learns from all transitions so far.

    Use it where the engine's gradients are not wanted, or as the base of `Mbpo`. The module `sac` describes the method.

    Attributes:
        sac: Actor, critics and their updates.
        replay_buffer: Real transitions with their initial states.
    """

    def __init__(self, env: Environment, settings: OffPolicySettings, seed: int) -> None:
        """Start with an empty replay buffer.

        Args:
            env: Environment to train on.
            settings: Settings of collection and learning.
            seed: Seed of all random numbers.
        """
        super().__init__(env, settings.num_envs, seed)
        self.settings, self.action_limit = settings, torch.tensor(env.action_limit)
        obs_size, action_size, engine = self.worlds.observations().shape[1], len(env.action_limit), env.engine
        self.sac = Sac(obs_size, action_size, settings.sac, self.generator)
        self.actor = self.sac.actor
        self._field_sizes = {"obs": obs_size, "action": action_size, "reward": 0, "next_obs": obs_size, "terminated": 0}
        field_sizes = self._field_sizes | {"q": engine.nq, "v": engine.nv, "elapsed_steps": 0}
        dtypes = {"q": torch.float64, "v": torch.float64, "elapsed_steps": torch.int64}
        self.replay_buffer = ReplayBuffer(settings.buffer_size, field_sizes, dtypes)

    def advance(self) -> None:
        """Step every world and perform the updates that are due."""
        self.collect()
        if self.env_steps > self.settings.learning_starts:
            for _ in range(self.settings.updates_per_step * self.worlds.num_envs):
                self.update()

    def collect(self) -> Transitions:
        """Step every world and store the transitions, except those of failed worlds."""
        with torch.no_grad():
            if self.env_steps < self.settings.learning_starts:
                action = 2 * torch.rand(self.worlds.num_envs, len(self.action_limit), generator=self.generator) - 1
            else:
                action, _ = self.actor.sample(self.worlds.observations().float(), self.generator)
        elapsed = self.worlds.elapsed_steps
        transitions = self.worlds.step(action * self.action_limit)
        state, terminated = transitions.state, transitions.terminated | (transitions.truncated & self.env.time_aware)
        rows = {"action": action, "terminated": terminated, "q": state.q, "v": state.v, "elapsed_steps": elapsed}
        rows |= {"obs": transitions.obs, "reward": transitions.reward, "next_obs": transitions.next_obs}
        self.replay_buffer.add({name: value[~transitions.failed] for name, value in rows.items()})
        self.worlds.reset(transitions.terminated | transitions.truncated)
        self.env_steps += self.worlds.num_envs
        return transitions

    def update(self) -> None:
        """Update the networks once."""
        self.sac.update(self.batch())

    def batch(self) -> Batch:
        """Draw the transitions of the next update."""
        return self.replay_buffer.sample(self.settings.sac.batch_size, self.generator)

    def metrics(self) -> dict[str, float]:
        """Return the last losses and the number of simulation failures."""
        losses = {name: float(value) for name, value in self.sac.metrics().items()}
        for name, value in losses.items():
            if not isfinite(value):
                raise TrainingError(
                    f"{name}: expected a finite loss, got {value} after {self.env_steps} environment steps; "
                    "try a lower learning rate"
                )
        return losses | {"failures": float(self.worlds.failures)}

    def modules(self) -> dict[str, Any]:
        """Return the networks and the replay buffer."""
        return {"sac": self.sac, "replay_buffer": self.replay_buffer}
