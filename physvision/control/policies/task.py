"""Control tasks of a policy: initial states, observations, controls and losses."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.core import State
from physvision.physics import Engine


class ControlTask(ABC):
    """A task for a batch of worlds, each with a goal of its own.

    Attributes:
        engine: Engine that simulates the mechanism.
        episode_steps: Control steps of an episode.
        frame_skip: Engine steps in a control step.
    """

    engine: Engine
    episode_steps: int
    frame_skip: int = 1

    @abstractmethod
    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Float[Tensor, "batch goals"]]:
        """Draw initial states and goals."""

    @abstractmethod
    def losses(self, state: State, goal: Float[Tensor, "batch goals"], /) -> Float[Tensor, " batch"]:
        """Return the loss of each world's state."""


class FeedbackTask(ControlTask):
    """A task whose policy observes the state in each control step."""

    @abstractmethod
    def observe(self, state: State, goal: Float[Tensor, "batch goals"], /) -> Float[Tensor, "batch obs"]:
        """Return the observation of the policy."""

    @abstractmethod
    def act(self, state: State, output: Float[Tensor, "batch outputs"]) -> Float[Tensor, "batch nu"]:
        """Return the control of the step from the policy's output."""

    def gradient_cut(self, start: State, end: State) -> Bool[Tensor, " batch"] | None:
        """Return true for worlds through whose step no gradient passes; None if this task cuts none."""
        return None


class OpenLoopTask(ControlTask):
    """A task whose policy observes the goal and the time alone, so that all controls are known in advance."""

    @abstractmethod
    def observe(self, goal: Float[Tensor, "batch goals"]) -> Float[Tensor, "batch #steps obs"]:
        """Return the observations of all control steps, or a single one for all of them."""

    @abstractmethod
    def act(self, output: Float[Tensor, "batch #steps outputs"]) -> Float[Tensor, "batch #steps nu"]:
        """Return the controls from the policy's outputs."""
