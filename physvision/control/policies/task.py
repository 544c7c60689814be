"""What a policy is to do: where it starts, what it senses, how its outputs move the engine, what is a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.core import State
from physvision.physics import Engine


class Episode(ABC):
    """What is done in an episode by a batch of worlds, each with an aim of its own.

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
    def losses(self, state: State, aim: Float[Tensor, "batch aims"]) -> Float[Tensor, " batch"]:
        """How bad each world's state is."""


class Task(Episode):
    """A policy is asked once a control period, and told of the state."""

    @abstractmethod
    def sense(self, state: State, aim: Float[Tensor, "batch aims"]) -> Float[Tensor, "batch sensors"]:
        """What the policy is told."""

    @abstractmethod
    def act(self, state: State, output: Float[Tensor, "batch outputs"]) -> Float[Tensor, "batch nu"]:
        """The control that is held over the period."""

    def cut(self, start: State, end: State) -> Bool[Tensor, " batch"] | None:
        """Worlds through whose period from one state to the other no signal is to go back; None for no world ever."""
        return None


class OpenLoop(Episode):
    """A policy is told of the aim and the time alone, so that all its outputs are known before anything moves."""

    @abstractmethod
    def foresee(self, aim: Float[Tensor, "batch aims"]) -> Float[Tensor, "batch #periods sensors"]:
        """What the policy is told in each control period, or once for all of them."""

    @abstractmethod
    def act(self, output: Float[Tensor, "batch #periods outputs"]) -> Float[Tensor, "batch #periods nu"]:
        """The controls that are held over the periods."""
