"""Tasks of DeepMind's Control Suite as states and controls of an engine, one world."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, MissingError, State
from physvision.core.checks import check_count
from physvision.envs.extras import needed


class Moment(NamedTuple):
    """Where the world is after a control, what the control earned, and whether the episode is over."""

    state: State
    reward: float
    over: bool


class Suite:
    """A task of the suite, whose state is seen whole; controls are as the task's own, most often in [−1, 1].

    Attributes:
        physics: the suite's, which may be changed before an episode: forces, limits.
        period: seconds between controls.
    """

    def __init__(self, domain: str, task: str, seed: int = 0, hold: int = 1) -> None:
        """Load a task.

        Args:
            domain: as `cartpole`.
            task: as `swingup`.
            seed: of the starts.
            hold: control steps of the suite under one control.

        Raises:
            MissingError: dm_control is not installed, or cannot read the models of the MuJoCo that is.
        """
        suite, mujoco = needed("dm_control.suite", "environments"), needed("mujoco", "environments")
        try:
            self._game: Any = suite.load(domain, task, task_kwargs={"random": seed})
        except AttributeError as error:  # of a field that MuJoCo 4 has no more
            raise MissingError(
                f'dm_control does not work with MuJoCo {mujoco.__version__}, try pip install "mujoco<4" ({error})'
            ) from error
        self._hold = check_count("hold", hold)
        self.physics: Any = self._game.physics
        self.period: float = hold * self._game.control_timestep()

    def begin(self) -> Moment:
        """Start an episode."""
        self._game.reset()
        return Moment(self._state(), 0.0, False)

    def act(self, control: Float[Tensor, " nu"]) -> Moment:
        """Hold a control for its period; what is left of an episode that ends is not played."""
        wanted = self._game.action_spec().shape
        if control.shape != wanted or not bool(control.isfinite().all()):
            raise InputError(f"control: expected finite numbers, {wanted}, got {control.tolist()}")
        reward, over = 0.0, False
        for _ in range(self._hold):
            told = self._game.step(control.numpy())
            reward, over = reward + float(told.reward or 0.0), told.last()
            if over:
                break
        return Moment(self._state(), reward, over)

    def _state(self) -> State:
        data = self.physics.data
        return State(torch.tensor(data.qpos[None]).double(), torch.tensor(data.qvel[None]).double())
