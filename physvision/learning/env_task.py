"""Adapter from an environment to a control task, for differentiable rollouts with `control.policies`."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.policies import FeedbackTask
from physvision.core import State
from physvision.envs import Environment
from physvision.learning.actor import sample_tanh_normal


class EnvironmentTask(FeedbackTask):
    """Control task over a window of an environment; its goal is the number of elapsed environment steps."""

    def __init__(
        self,
        env: Environment,
        horizon: int,
        generator: torch.Generator,
        max_acceleration: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Set up the task.

        Args:
            env: Environment to simulate.
            horizon: Environment steps of a window.
            generator: Random generator of the action noise.
            max_acceleration: Largest acceleration over a step, m/s² and rad/s² in one norm, through which gradients
                are propagated; None for no limit.
            dtype: Floating-point type of the observations.
        """
        self.env, self.engine, self.episode_steps, self.frame_skip = env, env.engine, horizon, env.frame_skip
        self._generator, self._max_acceleration, self._dtype = generator, max_acceleration, dtype
        self._action_limit = torch.tensor(env.action_limit)

    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Float[Tensor, "batch 1"]]:
        """Draw initial states of the environment, and return them with zero elapsed steps."""
        return self.env.reset(batch, generator), torch.zeros(batch, 1)

    def observe(self, state: State, elapsed_steps: Float[Tensor, "batch 1"]) -> Tensor:
        """Return the environment's observation."""
        return self.env.observe(state, elapsed_steps[:, 0].long()).to(self._dtype)

    def act(self, state: State, output: Tensor) -> Tensor:
        """Sample the actor's action and scale it to a control."""
        noise = torch.randn(len(output), len(self._action_limit), generator=self._generator)
        return (sample_tanh_normal(output, noise)[0] * self._action_limit).to(state.q)

    def losses(self, state: State, elapsed_steps: Tensor) -> Tensor:
        """Return zeros, because rewards also depend on controls and previous states."""
        return state.q.new_zeros(state.batch)

    def mean_acceleration(self, start: State, end: State) -> Float[Tensor, " batch"]:
        """Return the norm of the mean acceleration over a step."""
        return (end.v - start.v).detach().norm(dim=1) / (self.frame_skip * self.engine.dt)

    def gradient_cut(self, start: State, end: State) -> Bool[Tensor, " batch"] | None:
        """Return true for worlds that accelerate beyond the limit."""
        return None if self._max_acceleration is None else self.mean_acceleration(start, end) > self._max_acceleration
