"""What a policy is to do: where it starts, what it senses, how its outputs move the engine, what is a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State
from physvision.physics import Engine


class Task(ABC):
    """A task for a batch of worlds, each with an aim of its own.

    Attributes:
        engine: what moves.
        periods: control periods of an episode.
        steps: steps of the engine in a control period.
    """

    engine: Engine
    periods: int
    steps: int = 1

    @abstractmethod
    def begin(self, batch: int, generator: torch.Generator) -> tuple[State, Float[Tensor, "batch aims"]]:
        """States to start from, and aims."""

    @abstractmethod
    def sense(self, state: State, aim: Float[Tensor, "batch aims"]) -> Float[Tensor, "batch sensors"]:
        """What the policy is told."""

    @abstractmethod
    def act(self, state: State, output: Float[Tensor, "batch outputs"]) -> Float[Tensor, "batch nu"]:
        """The control that is held over the period."""

    @abstractmethod
    def losses(self, state: State, aim: Float[Tensor, "batch aims"]) -> Float[Tensor, " batch"]:
        """How bad each world's state is."""
