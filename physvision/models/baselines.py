"""A learned model of motion with an engine's shape: what physics is measured against."""

from __future__ import annotations

from torch import Tensor

from physvision.core import InputError, State
from physvision.core.checks import check_positive
from physvision.models.state_networks import StateNetwork
from physvision.physics import LearnedEngine


class NetworkEngine(LearnedEngine):
    """A network that says how the state changes in a step: q' = q + dt (v + Δq̇), v' = v + Δv."""

    def __init__(self, network: StateNetwork, dt: float) -> None:
        """Step by a network.

        Args:
            network: its two outputs for each velocity are Δq̇ and Δv, in units of its `velocity_scale`.
            dt: seconds a step.
        """
        super().__init__(network.coordinates.size, check_positive("dt", dt), network.controls)
        if network.outputs != 2:
            raise InputError(f"network: expected two outputs for each velocity, got {network.outputs}")
        self.network = network

    def advance(self, state: State, control: Tensor | None) -> State:
        """The state one step later."""
        rate, change = (self.network(state, control) * self.network.velocity_scale).unbind(1)
        return State(state.q + self.dt * (state.v + rate), state.v + change)
