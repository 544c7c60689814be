"""Tasks of DeepMind's Control Suite as states and controls of one world."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, MissingError, State
from physvision.core.checks import check_count
from physvision.envs import require_package


class TimeStep(NamedTuple):
    """Result of one control step, as in dm_env.

    Attributes:
        state: State at the end of the step.
        reward: Sum of the rewards over the step.
        last: If true, the episode has ended.
    """

    state: State
    reward: float
    last: bool


class ControlSuiteEnv:
    """One world of a Control Suite task, simulated by MuJoCo and observed in full.

    | Action | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 … nu − 1 | controls of the task's actuators | the task's | those of the task, mostly −1 … 1 |

    Observation: the whole state, MuJoCo's `qpos` and `qvel`, with their units and order. Reward, termination and time
    limit: those of the task.

    Attributes:
        physics: MuJoCo physics of the suite, which may be changed between episodes: forces, limits.
        control_period: Time between controls, in s.
    """

    def __init__(self, domain: str, task: str, seed: int = 0, action_repeat: int = 1) -> None:
        """Load a task of the suite.

        Args:
            domain: Domain of the suite, for example `cartpole`.
            task: Task of the domain, for example `swingup`.
            seed: Seed of the initial states.
            action_repeat: Control steps of the suite under one control.

        Raises:
            MissingError: dm_control is not installed, or cannot read the models of the installed MuJoCo.
        """
        suite = require_package("dm_control.suite", "environments")
        try:
            self._env: Any = suite.load(domain, task, task_kwargs={"random": seed})
        except AttributeError as error:  # dm_control reads a field that MuJoCo 4 removed
            raise MissingError(
                f"dm_control cannot read the models of this MuJoCo ({error}); pip install 'physvision[environments]' "
                "installs one that it can read"
            ) from error
        self._action_repeat = check_count("action_repeat", action_repeat)
        self.physics: Any = self._env.physics
        self.control_period: float = action_repeat * self._env.control_timestep()

    def reset(self) -> TimeStep:
        """Start a new episode."""
        self._env.reset()
        return TimeStep(self._state(), 0.0, False)

    def step(self, control: Float[Tensor, " nu"]) -> TimeStep:
        """Apply a control for one control period, or until the episode ends."""
        shape = self._env.action_spec().shape
        if control.shape != shape or not bool(control.isfinite().all()):
            raise InputError(f"control: expected finite numbers of shape {shape}, got {control.tolist()}")
        reward, last = 0.0, False
        for _ in range(self._action_repeat):
            result = self._env.step(control.numpy())
            reward, last = reward + float(result.reward or 0.0), result.last()
            if last:
                break
        return TimeStep(self._state(), reward, last)

    def _state(self) -> State:
        data = self.physics.data
        return State(torch.tensor(data.qpos[None]).double(), torch.tensor(data.qvel[None]).double())
