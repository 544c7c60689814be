"""Learned models of motion with an engine's shape: what physics is measured against, and a hybrid of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import Coordinates, InputError, State
from physvision.core.checks import check_count, check_positive
from physvision.models.networks import perceptron
from physvision.physics import LearnedEngine


class MlpEngine(LearnedEngine):
    """Fully connected layers that say how the velocity changes in a step; positions follow as its mean rate."""

    scales: Tensor

    def __init__(
        self,
        coordinates: Coordinates,
        dt: float,
        hidden: int = 256,
        velocity_scale: float = 1.0,
        position_scale: float = 1.0,
    ) -> None:
        """Build the network.

        Args:
            coordinates: what the positions are.
            dt: seconds a step.
            hidden: width of each of two hidden layers.
            velocity_scale: what a large velocity is, so that the network sees numbers around one.
            position_scale: the same of positions that are not angles.
        """
        super().__init__(coordinates.size, check_positive("dt", dt))
        self.coordinates, self.velocity_scale = coordinates, check_positive("velocity_scale", velocity_scale)
        scales = torch.ones(coordinates.features)
        scales[2 * len(coordinates.angles) :] = check_positive("position_scale", position_scale)
        self.register_buffer("scales", scales, persistent=False)
        self.network = perceptron([coordinates.features + self.nv, hidden, hidden, self.nq + self.nv])

    def advance(self, state: State) -> State:
        """Old state and correction: q' = q + dt (v + Δq̇), v' = v + Δv."""
        seen = torch.cat([self.coordinates.encode(state.q) / self.scales, state.v / self.velocity_scale], -1)
        rate, change = (self.network(seen) * self.velocity_scale).split([self.nq, self.nv], -1)
        return State(state.q + self.dt * (state.v + rate), state.v + change)


class GraphEngine(LearnedEngine):
    """A graph network after Sanchez-Gonzalez et al., *Graph networks as learnable physics engines* (2018).

    Nodes are bodies, edges go both ways between those that touch or are joined. Encode, `rounds` rounds of messages
    (edges from their ends, nodes from the sum of their edges, all from one global vector that sums up the graph),
    decode to the change of every body's state. Bodies carry equally many positions.
    """

    senders: Tensor
    receivers: Tensor

    def __init__(
        self,
        coordinates: Coordinates,
        dt: float,
        bodies: int,
        links: Literal["chain", "complete"] | Sequence[tuple[int, int]] = "chain",
        hidden: int = 64,
        rounds: int = 3,
        velocity_scale: float = 1.0,
    ) -> None:
        """Build the network.

        Args:
            coordinates: what the positions are, those of one body next to each other.
            dt: seconds a step.
            bodies: number of nodes.
            links: which bodies are joined: each to the next, all to all, or pairs.
            hidden: width of all vectors.
            rounds: how often messages are passed.
            velocity_scale: what a large velocity is, so that the network sees numbers around one.
        """
        super().__init__(coordinates.size, check_positive("dt", dt))
        self.coordinates, self.velocity_scale = coordinates, check_positive("velocity_scale", velocity_scale)
        self.bodies, self.rounds = check_count("bodies", bodies), check_count("rounds", rounds)
        if coordinates.size % bodies:
            raise InputError(f"bodies: {coordinates.size} positions cannot be shared out evenly among {bodies}")
        pairs = _pairs(links, bodies)
        self.register_buffer("senders", torch.tensor([a for a, _ in pairs], dtype=torch.long), persistent=False)
        self.register_buffer("receivers", torch.tensor([b for _, b in pairs], dtype=torch.long), persistent=False)
        each = coordinates.size // bodies
        # Which body it is is seen, since a chain's first link hangs from the world and its last one holds nothing.
        self.node_encoder = perceptron([3 * each + bodies, hidden, hidden])
        self.edge_encoder = perceptron([2 * hidden, hidden, hidden])
        self.edge_update = perceptron([4 * hidden, hidden, hidden])
        self.node_update = perceptron([3 * hidden, hidden, hidden])
        self.global_update = perceptron([3 * hidden, hidden, hidden])
        self.decoder = perceptron([hidden, hidden, 2 * each])
        self.summary = nn.Parameter(torch.zeros(hidden))

    def advance(self, state: State) -> State:
        """Old state and correction: q' = q + dt (v + Δq̇), v' = v + Δv."""
        nodes = self.node_encoder(self._seen(state))
        ends = torch.cat([nodes[:, self.senders], nodes[:, self.receivers]], -1)
        edges = self.edge_encoder(ends)
        whole = self.summary.expand(state.batch, -1)
        for _ in range(self.rounds):
            nodes, edges, whole = self._pass(nodes, edges, whole)
        change = self.decoder(nodes) * self.velocity_scale
        rate, change = (part.flatten(1) for part in change.chunk(2, -1))
        return State(state.q + self.dt * (state.v + rate), state.v + change)

    def _seen(self, state: State) -> Float[Tensor, "batch bodies features"]:
        """What a node knows: its positions (cosine and sine, or value and zero), its velocity and which body it is."""
        first, second = state.q.clone(), torch.zeros_like(state.q)
        angles = list(self.coordinates.angles)
        first[:, angles], second[:, angles] = state.q[:, angles].cos(), state.q[:, angles].sin()
        parts = [first, second, state.v / self.velocity_scale]
        own = torch.eye(self.bodies, dtype=state.q.dtype, device=state.q.device).expand(state.batch, -1, -1)
        return torch.cat([*(part.unflatten(-1, (self.bodies, -1)) for part in parts), own], -1)

    def _pass(self, nodes: Tensor, edges: Tensor, whole: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One full block: edges, then nodes, then the global vector, each added to what it was."""
        shared = whole.unsqueeze(1)
        ends = [nodes[:, self.senders], nodes[:, self.receivers], shared.expand(-1, edges.shape[1], -1)]
        edges = edges + self.edge_update(torch.cat([edges, *ends], -1))
        arrived = torch.zeros_like(nodes).index_add(1, self.receivers, edges)
        nodes = nodes + self.node_update(torch.cat([nodes, arrived, shared.expand(-1, self.bodies, -1)], -1))
        whole = whole + self.global_update(torch.cat([whole, nodes.sum(1), edges.sum(1)], -1))
        return nodes, edges, whole


def _pairs(links: str | Sequence[tuple[int, int]], bodies: int) -> list[tuple[int, int]]:
    if links == "chain":
        joined = [(body, body + 1) for body in range(bodies - 1)]
    elif links == "complete":
        joined = [(a, b) for a in range(bodies) for b in range(a + 1, bodies)]
    else:
        joined = [(int(a), int(b)) for a, b in links]
    if any(a == b or not (0 <= a < bodies and 0 <= b < bodies) for a, b in joined):
        raise InputError(f"links: expected pairs of different bodies from 0 to {bodies - 1}, got {links}")
    return [*joined, *((b, a) for a, b in joined)]
