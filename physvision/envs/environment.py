"""A differentiable environment: an engine with its reset, observation, reward and termination functions in PyTorch."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.core import MissingError, State
from physvision.physics import Engine


class StepResult(NamedTuple):
    """Result of one environment step.

    Attributes:
        state: State at the end of the step.
        reward: Reward of the step.
        terminated: If true, the episode has reached a terminal state; failed worlds are terminated too.
        failed: If true, the engine could not simulate the step.
    """

    state: State
    reward: Float[Tensor, " batch"]
    terminated: Bool[Tensor, " batch"]
    failed: Bool[Tensor, " batch"]


@dataclass(frozen=True)
class Environment:
    """A batched environment whose steps have gradients; it keeps no state of its own.

    Attributes:
        engine: Engine that simulates the mechanism.
        reset: Function that draws initial states of a number of worlds with a random generator.
        observe_state: Function from states to observations, without the elapsed time.
        reward: Function from initial states, final states and controls of steps to rewards.
        action_limit: Largest control of each actuator, in the actuator's unit; the smallest is its negative.
        max_episode_steps: Environment steps after which an episode is truncated.
        frame_skip: Engine steps in one environment step, all under one control.
        termination: Function that returns true for observations that end the episode; None if no state is terminal.
        time_aware: If true, the elapsed fraction of the episode is the last entry of the observation, and the time
            limit is a terminal state; otherwise the time limit only truncates.
        contact_flags: Function that returns true for active contacts and joint stops of states; None for mechanisms
            without contacts.
        randomize: Function that draws properties of a number of worlds around the engine's with a random generator, for
            domain randomization; None if the environment has none.
        max_speed: Largest velocity that a step of the engine resolves, in m/s or rad/s; faster worlds have failed.
    """

    engine: Engine
    reset: Callable[[int, torch.Generator], State]
    observe_state: Callable[[State], Tensor]
    reward: Callable[[State, State, Tensor], Tensor]
    action_limit: tuple[float, ...]
    max_episode_steps: int
    frame_skip: int = 1
    termination: Callable[[Tensor], Tensor] | None = None
    time_aware: bool = False
    contact_flags: Callable[[State], Tensor] | None = None
    randomize: Callable[[int, torch.Generator], dict[str, Tensor]] | None = None
    max_speed: float = math.inf

    def observe(self, state: State, elapsed_steps: Int[Tensor, " batch"]) -> Float[Tensor, "batch obs"]:
        """Return the observations of states after a number of environment steps."""
        obs = self.observe_state(state)
        return torch.cat([obs, elapsed_steps[:, None].to(obs) / self.max_episode_steps], 1) if self.time_aware else obs

    def is_terminal(self, obs: Float[Tensor, "*batch obs"]) -> Bool[Tensor, " *batch"]:
        """Return true for observations of terminal states."""
        terminal = torch.zeros(obs.shape[:-1], dtype=torch.bool) if self.termination is None else self.termination(obs)
        # The limit is reached half a step early, because a learned model predicts the elapsed time with an error.
        return terminal | (obs[..., -1] > 1 - 0.5 / self.max_episode_steps) if self.time_aware else terminal

    def step(self, state: State, control: Float[Tensor, "batch nu"]) -> StepResult:
        """Simulate one environment step; controls are clipped to the action limits."""
        limit = control.new_tensor(self.action_limit)
        clipped = control.clamp(-limit, limit)
        rollout = self.engine.rollout(state, self.frame_skip, clipped.unsqueeze(1).expand(-1, self.frame_skip, -1))
        end, status = rollout.final, rollout.status
        failed = ~(end.q.isfinite().all(1) & end.v.isfinite().all(1)) | (end.v.detach().abs() > self.max_speed).any(1)
        if status is not None and not status.is_pending:
            failed = failed | ~status.converged
        terminated = failed if self.termination is None else failed | self.termination(self.observe_state(end))
        return StepResult(end, self.reward(state, end, clipped), terminated, failed)


def require_package(module: str, extra: str) -> ModuleType:
    """Import a module of an optional dependency.

    Args:
        module: Dotted name of the module.
        extra: Optional extra of physvision that installs the package of the module.

    Raises:
        MissingError: The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingError(
            f'{package} is required but not installed; install it with: pip install "physvision[{extra}]"'
        ) from error
