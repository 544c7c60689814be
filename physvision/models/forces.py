"""Learned generalized forces for effects that an engine does not model; they start at zero.

A force here is a number for each velocity, N m or N, held over a step. An engine takes it beside its controls, before
it solves for contact, so what touches still does not overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import Coordinates, InputError, State
from physvision.core.checks import check_positive
from physvision.models.networks import perceptron, zero_init_output
from physvision.models.state_networks import StateNetwork, feature_scales


class LearnedForce(nn.Module):
    """A force that a network computes from state and controls."""

    scale: Tensor

    def __init__(self, network: StateNetwork, scale: float | Sequence[float] = 1.0) -> None:
        """Use a network as a force.

        Args:
            network: One output a velocity, the force in units of `scale`; its output layer is zeroed.
            scale: Magnitude of a large force, N m or N; one for all velocities, or one for each.
        """
        super().__init__()
        sizes = [scale] if isinstance(scale, float | int) else list(scale)
        if len(sizes) not in (1, network.coordinates.size):
            raise InputError(f"scale: expected one number, or {network.coordinates.size}, got {len(sizes)}")
        if network.outputs != 1:
            raise InputError(f"network: expected one output for each velocity, got {network.outputs}")
        zero_init_output(network)
        self.network = network
        self.register_buffer("scale", torch.tensor([check_positive("scale", size) for size in sizes]), persistent=False)

    def forward(self, state: State, control: Float[Tensor, "batch nu"] | None = None) -> Float[Tensor, "batch nv"]:
        """The force in each state."""
        return self.scale * self.network(state, control)[:, 0]


class PassiveForce(nn.Module):
    """A force that gives no energy away: F = −∂U/∂q − c v, of a learned potential U(q) and learned drags c(q, v) ≥ 0.

    The energy of the engine and U together fall at the rate Σ c v² and grow by controls alone. The drags are a
    network's numbers cut off at zero, whose gradient passes as if they were not cut: so they start at zero and can
    leave it.
    """

    scales: Tensor

    def __init__(
        self,
        coordinates: Coordinates,
        scale: float = 1.0,
        hidden: int = 64,
        velocity_scale: float = 1.0,
        position_scale: float = 1.0,
    ) -> None:
        """Build potential and drag networks.

        Args:
            coordinates: Meaning of the positions: number of them, and which are angles.
            scale: Magnitude of a large force, N m or N.
            hidden: width of each of two hidden layers.
            velocity_scale: Magnitude of a large velocity.
            position_scale: Magnitude of a large position, for positions that are not angles.
        """
        super().__init__()
        self.coordinates, self.scale = coordinates, check_positive("scale", scale)
        self.velocity_scale = check_positive("velocity_scale", velocity_scale)
        self.register_buffer("scales", feature_scales(coordinates, position_scale), persistent=False)
        self.potential = perceptron([coordinates.features, hidden, hidden, 1])
        self.drag = perceptron([coordinates.features + coordinates.size, hidden, hidden, coordinates.size])
        for network in (self.potential, self.drag):
            zero_init_output(network)

    def energy(self, q: Float[Tensor, "batch nq"]) -> Float[Tensor, " batch"]:
        """The learned potential, J."""
        return self.scale * self.potential(self._features(q))[:, 0]

    def drags(self, state: State) -> Float[Tensor, "batch nv"]:
        """The learned drag of each velocity, N m s/rad or N s/m."""
        drag = self.drag(torch.cat([self._features(state.q), state.v / self.velocity_scale], -1))
        return self.scale / self.velocity_scale * (drag + (drag.clamp(min=0.0) - drag).detach())

    def forward(self, state: State, control: Float[Tensor, "batch nu"] | None = None) -> Float[Tensor, "batch nv"]:
        """The force in each state; controls do not matter to it."""
        slope = torch.func.grad(lambda q: self.energy(q).sum())(state.q)
        return -slope - self.drags(state) * state.v

    def _features(self, q: Tensor) -> Tensor:
        return self.coordinates.encode(q) / self.scales
