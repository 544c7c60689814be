"""Networks that read states: what learned baselines and learned forces are made of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import Coordinates, InputError, State
from physvision.core.checks import check_count, check_positive
from physvision.models.networks import perceptron


class StateNetwork(nn.Module):
    """A network that reads states, and controls if there are any, and gives `outputs` numbers for each velocity.

    A subclass defines `forward` and sets `last`, the layer whose numbers come out.
    """

    output_layer: nn.Linear

    def __init__(
        self,
        coordinates: Coordinates,
        outputs: int,
        controls: int,
        velocity_scale: float,
        ignored_positions: Sequence[int],
    ) -> None:
        super().__init__()
        if not set(ignored_positions) <= set(range(coordinates.size)):
            raise InputError(f"ignored_positions: expected indices of the {coordinates.size} positions, got {list(ignored_positions)}")
        self.ignored_positions = list(ignored_positions)
        self.coordinates, self.outputs = coordinates, check_count("outputs", outputs)
        self.controls = check_count("controls", controls, 0)
        self.velocity_scale = check_positive("velocity_scale", velocity_scale)

    @abstractmethod
    def forward(
        self, state: State, control: Float[Tensor, "batch controls"] | None = None
    ) -> Float[Tensor, "batch outputs size"]:
        """Numbers around one for each velocity; no control means zero."""

    def zero_init_output(self) -> None:
        """Make the network give zeros, from which it can learn at once."""
        for parameter in self.output_layer.parameters():
            nn.init.zeros_(parameter)

    def _masked_positions(self, q: Tensor) -> Float[Tensor, "batch q"]:
        """The positions, with zeros for those that do not matter."""
        return q.index_fill(1, torch.tensor(self.ignored_positions, device=q.device), 0.0) if self.ignored_positions else q

    def _held(self, state: State, control: Tensor | None) -> Float[Tensor, "batch controls"]:
        """The controls that are read."""
        if control is None:
            return state.q.new_zeros(state.batch, self.controls)
        return control if self.controls else control[:, :0]


def feature_scales(coordinates: Coordinates, position_scale: float) -> Float[Tensor, " features"]:
    """By what the features of positions are divided: one for angles, and what a large position is for the others."""
    scales = torch.ones(coordinates.features)
    scales[2 * len(coordinates.angles) :] = check_positive("position_scale", position_scale)
    return scales


class StatePerceptron(StateNetwork):
    """Two fully connected hidden layers."""

    scales: Tensor

    def __init__(
        self,
        coordinates: Coordinates,
        outputs: int = 2,
        controls: int = 0,
        hidden: int = 256,
        velocity_scale: float = 1.0,
        position_scale: float = 1.0,
        ignored_positions: Sequence[int] = (),
    ) -> None:
        """Build the network.

        Args:
            coordinates: what the positions are.
            outputs: numbers for each velocity: two for a `NetworkEngine`, one for a `LearnedForce`.
            controls: how many are read beside the state.
            hidden: width of each of two hidden layers.
            velocity_scale: what a large velocity is, so that the network sees numbers around one.
            position_scale: the same of positions that are not angles.
            ignored_positions: positions that do not matter, as where a car is on a level road.
        """
        super().__init__(coordinates, outputs, controls, velocity_scale, ignored_positions)
        self.register_buffer("scales", feature_scales(coordinates, position_scale), persistent=False)
        read = coordinates.features + coordinates.size + controls
        self.layers = perceptron([read, hidden, hidden, outputs * coordinates.size])

    @property
    def output_layer(self) -> nn.Linear:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The layer whose numbers come out."""
        layer = self.layers[-1]
        assert isinstance(layer, nn.Linear)
        return layer

    def forward(
        self, state: State, control: Float[Tensor, "batch controls"] | None = None
    ) -> Float[Tensor, "batch outputs size"]:
        """Numbers around one for each velocity; no control means zero."""
        position = self.coordinates.encode(self._masked_positions(state.q)) / self.scales
        velocity = state.v / self.velocity_scale
        seen = torch.cat([position, velocity, self._held(state, control)], -1)
        return self.layers(seen).unflatten(-1, (self.outputs, -1))


class StateGraph(StateNetwork):
    """A graph network after Sanchez-Gonzalez et al., *Graph networks as learnable physics engines* (2018).

    Nodes are bodies, edges go both ways between those that touch or are joined. Encode, `message_passing_steps` message_passing_steps of messages
    (edges from their ends, nodes from the sum of their edges, all from one global vector that sums up the graph),
    decode to the numbers of every body. Bodies carry equally many positions; controls are read by all.
    """

    senders: Tensor
    receivers: Tensor

    def __init__(
        self,
        coordinates: Coordinates,
        bodies: int,
        outputs: int = 2,
        controls: int = 0,
        links: Literal["chain", "complete"] | Sequence[tuple[int, int]] = "chain",
        hidden: int = 64,
        message_passing_steps: int = 3,
        velocity_scale: float = 1.0,
        ignored_positions: Sequence[int] = (),
    ) -> None:
        """Build the network.

        Args:
            coordinates: what the positions are, those of one body next to each other.
            bodies: number of nodes.
            outputs: numbers for each velocity: two for a `NetworkEngine`, one for a `LearnedForce`.
            controls: how many are read beside the state.
            links: which bodies are joined: each to the next, all to all, or pairs.
            hidden: width of all vectors.
            message_passing_steps: how often messages are passed.
            velocity_scale: what a large velocity is, so that the network sees numbers around one.
            ignored_positions: positions that do not matter, as where a car is on a level road.
        """
        super().__init__(coordinates, outputs, controls, velocity_scale, ignored_positions)
        self.bodies, self.message_passing_steps = check_count("bodies", bodies), check_count("message_passing_steps", message_passing_steps)
        if coordinates.size % bodies:
            raise InputError(f"bodies: {coordinates.size} positions cannot be shared out evenly among {bodies}")
        pairs = _pairs(links, bodies)
        self.register_buffer("senders", torch.tensor([a for a, _ in pairs], dtype=torch.long), persistent=False)
        self.register_buffer("receivers", torch.tensor([b for _, b in pairs], dtype=torch.long), persistent=False)
        each = coordinates.size // bodies
        # Which body it is is seen, since a chain's first link hangs from the world and its last one holds nothing.
        self.node_encoder = perceptron([3 * each + bodies + controls, hidden, hidden])
        self.edge_encoder = perceptron([2 * hidden, hidden, hidden])
        self.edge_update = perceptron([4 * hidden, hidden, hidden])
        self.node_update = perceptron([3 * hidden, hidden, hidden])
        self.global_update = perceptron([3 * hidden, hidden, hidden])
        self.decoder = perceptron([hidden, hidden, outputs * each])
        self.summary = nn.Parameter(torch.zeros(hidden))

    @property
    def output_layer(self) -> nn.Linear:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The layer whose numbers come out."""
        layer = self.decoder[-1]
        assert isinstance(layer, nn.Linear)
        return layer

    def forward(
        self, state: State, control: Float[Tensor, "batch controls"] | None = None
    ) -> Float[Tensor, "batch outputs size"]:
        """Numbers around one for each velocity; no control means zero."""
        nodes = self.node_encoder(self._seen(state, self._held(state, control)))
        ends = torch.cat([nodes[:, self.senders], nodes[:, self.receivers]], -1)
        edges = self.edge_encoder(ends)
        whole = self.summary.expand(state.batch, -1)
        for _ in range(self.message_passing_steps):
            nodes, edges, whole = self._pass(nodes, edges, whole)
        return self.decoder(nodes).unflatten(-1, (self.outputs, -1)).transpose(1, 2).flatten(2)

    def _seen(self, state: State, control: Tensor) -> Float[Tensor, "batch bodies features"]:
        """What a node knows: its positions (cosine and sine, or value and zero), its velocity, which body it is."""
        q, angles = self._masked_positions(state.q), list(self.coordinates.angles)
        first, second = q.clone(), torch.zeros_like(q)
        first[:, angles], second[:, angles] = q[:, angles].cos(), q[:, angles].sin()
        parts = [first, second, state.v / self.velocity_scale]
        own = torch.eye(self.bodies, dtype=state.q.dtype, device=state.q.device).expand(state.batch, -1, -1)
        given = control.unsqueeze(1).expand(-1, self.bodies, -1)
        return torch.cat([*(part.unflatten(-1, (self.bodies, -1)) for part in parts), own, given], -1)

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
