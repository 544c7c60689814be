"""Vectorized environment: many worlds simulated in one launch, with resets of finished worlds."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.core import State
from physvision.envs.environment import Environment


class Transitions(NamedTuple):
    """One transition of every world.

    Attributes:
        state: State at the start.
        obs: Observation at the start.
        reward: Reward of the step; zero if the world failed.
        next_obs: Observation at the end; that of the start if the world failed.
        terminated: If true, the episode reached a terminal state.
        truncated: If true, the episode reached its time limit.
        failed: If true, the engine could not simulate the step, and the transition must not be used for learning.
    """

    state: State
    obs: Float[Tensor, "batch obs"]
    reward: Float[Tensor, " batch"]
    next_obs: Float[Tensor, "batch obs"]
    terminated: Bool[Tensor, " batch"]
    truncated: Bool[Tensor, " batch"]
    failed: Bool[Tensor, " batch"]


class VectorEnv:
    """Worlds of one environment that are stepped together.

    Attributes:
        env: Environment of all worlds.
        num_envs: Number of worlds.
        state: Current state of every world.
        elapsed_steps: Environment steps of every world since its last reset.
        failures: Number of simulation failures so far, each followed by a reset.
    """

    def __init__(self, env: Environment, num_envs: int, generator: torch.Generator) -> None:
        """Reset all worlds to initial states.

        Args:
            env: Environment of all worlds.
            num_envs: Number of worlds.
            generator: Random generator of this and all later resets.
        """
        self.env, self.num_envs, self._generator = env, num_envs, generator
        self.state: State = env.reset(num_envs, generator)
        self.elapsed_steps: Int[Tensor, " batch"] = torch.zeros(num_envs, dtype=torch.int64)
        self.failures = 0

    def observations(self) -> Float[Tensor, "batch obs"]:
        """Return the current observation of every world."""
        return self.env.observe(self.state, self.elapsed_steps)

    @torch.no_grad()
    def step(self, control: Float[Tensor, "batch nu"]) -> Transitions:
        """Step every world; finished worlds are not reset automatically, see `reset`."""
        start, obs = self.state, self.observations()
        result = self.env.step(start, control.to(start.q))
        self.set_states(result.state, result.failed)
        reward = torch.where(result.failed, 0.0, result.reward)
        truncated = self.elapsed_steps >= self.env.max_episode_steps
        return Transitions(start, obs, reward, self.observations(), result.terminated, truncated, result.failed)

    def set_states(self, state: State, failed: Bool[Tensor, " batch"], steps: int | Int[Tensor, " batch"] = 1) -> None:
        """Set the states of the worlds after a number of steps; failed worlds keep their previous states."""
        failed_mask, previous, end = failed[:, None], self.state, state.detach()
        self.state = State(*(torch.where(failed_mask, *pair) for pair in ((previous.q, end.q), (previous.v, end.v))))
        self.elapsed_steps = self.elapsed_steps + steps
        self.failures += int(failed.sum())

    def reset(self, mask: Bool[Tensor, " batch"]) -> None:
        """Reset the worlds where the mask is true."""
        if not bool(mask.any()):
            return
        initial, rows = self.env.reset(int(mask.sum()), self._generator), torch.nonzero(mask)[:, 0]
        self.state = State(self.state.q.index_copy(0, rows, initial.q), self.state.v.index_copy(0, rows, initial.v))
        self.elapsed_steps = torch.where(mask, 0, self.elapsed_steps)

    def state_dict(self) -> dict[str, Any]:
        """Return the states and counters of the worlds; the random generator belongs to the caller."""
        return {"q": self.state.q, "v": self.state.v, "elapsed_steps": self.elapsed_steps, "failures": self.failures}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        self.state = State(state["q"], state["v"])
        self.elapsed_steps, self.failures = state["elapsed_steps"], state["failures"]
