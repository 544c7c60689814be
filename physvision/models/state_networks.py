"""Networks that read states, for learned baselines and learned forces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import Coordinates, InputError, State
from physvision.core.checks import check_count, check_positive
from physvision.models.networks import output_layer, perceptron
from physvision.physics import LearnedEngine


class StateNetwork(nn.Module):
    """A network that reads states, and controls if there are any, and gives `outputs` numbers for each velocity.

    A subclass defines `forward`; the numbers of its last linear layer come out.
    """

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
            raise InputError(
                f"ignored_positions: expected indices below {coordinates.size}, got {list(ignored_positions)}"
            )
        self.ignored_positions = list(ignored_positions)
        self.coordinates, self.outputs = coordinates, check_count("outputs", outputs)
        self.controls = check_count("controls", controls, 0)
        self.velocity_scale = check_positive("velocity_scale", velocity_scale)

    @abstractmethod
    def forward(
        self, state: State, control: Float[Tensor, "batch controls"] | None = None
    ) -> Float[Tensor, "batch outputs size"]:
        """Compute outputs of order one for each velocity; None for zero controls."""

    @property
    def output_layer(self) -> nn.Linear:
        """The last linear layer."""
        return output_layer(self)

    def _masked_positions(self, q: Tensor) -> Float[Tensor, "batch q"]:
        """Replace ignored positions by zero."""
        return (
            q.index_fill(1, torch.tensor(self.ignored_positions, device=q.device), 0.0) if self.ignored_positions else q
        )

    def _controls(self, state: State, control: Tensor | None) -> Float[Tensor, "batch controls"]:
        """Select the controls that are read."""
        if control is None:
            return state.q.new_zeros(state.batch, self.controls)
        return control if self.controls else control[:, :0]


def feature_scales(coordinates: Coordinates, position_scale: float) -> Float[Tensor, " features"]:
    """Scales that divide position features: one for angles, `position_scale` for the others."""
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
        """Build the layers of the network.

        Args:
            coordinates: Meaning of the positions: number of them, and which are angles.
            outputs: numbers for each velocity: two for a `NetworkEngine`, one for a `LearnedForce`.
            controls: Number of controls read beside the state.
            hidden: width of each of two hidden layers.
            velocity_scale: Magnitude of a large velocity; network inputs are around one.
            position_scale: Magnitude of a large position, for positions that are not angles.
            ignored_positions: Positions without effect, such as that of a car on a level road.
        """
        super().__init__(coordinates, outputs, controls, velocity_scale, ignored_positions)
        self.register_buffer("scales", feature_scales(coordinates, position_scale), persistent=False)
        read = coordinates.features + coordinates.size + controls
        self.layers = perceptron([read, hidden, hidden, outputs * coordinates.size])

    def forward(
        self, state: State, control: Float[Tensor, "batch controls"] | None = None
    ) -> Float[Tensor, "batch outputs size"]:
        """Compute outputs of order one for each velocity; None for zero controls."""
        position = self.coordinates.encode(self._masked_positions(state.q)) / self.scales
        velocity = state.v / self.velocity_scale
        inputs = torch.cat([position, velocity, self._controls(state, control)], -1)
        return self.layers(inputs).unflatten(-1, (self.outputs, -1))


class StateGraph(StateNetwork):
    """A graph network after Sanchez-Gonzalez et al., *Graph networks as learnable physics engines* (2018).

    Nodes are bodies, edges go both ways between those that touch or are connected. The network encodes, passes messages
    `message_passing_steps` times (edges from their ends, nodes from the sum of their edges, all from one global vector)
    and decodes the outputs of every body. Bodies have equally many positions; every node reads the controls.
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
        """Build the layers of the network.

        Args:
            coordinates: Meaning of the positions, those of one body next to each other.
            bodies: number of nodes.
            outputs: numbers for each velocity: two for a `NetworkEngine`, one for a `LearnedForce`.
            controls: Number of controls read beside the state.
            links: which bodies are connected: each to the next, all to all, or pairs.
            hidden: width of all vectors.
            message_passing_steps: Number of message-passing steps.
            velocity_scale: Magnitude of a large velocity; network inputs are around one.
            ignored_positions: Positions without effect, such as that of a car on a level road.
        """
        super().__init__(coordinates, outputs, controls, velocity_scale, ignored_positions)
        self.bodies, self.message_passing_steps = (
            check_count("bodies", bodies),
            check_count("message_passing_steps", message_passing_steps),
        )
        if coordinates.size % bodies:
            raise InputError(f"bodies: {coordinates.size} positions cannot be shared out evenly among {bodies}")
        pairs = _pairs(links, bodies)
        self.register_buffer("senders", torch.tensor([a for a, _ in pairs], dtype=torch.long), persistent=False)
        self.register_buffer("receivers", torch.tensor([b for _, b in pairs], dtype=torch.long), persistent=False)
        per_body = coordinates.size // bodies
        # The one-hot body tells a chain's first link, which hangs from the world, from its last.
        self.node_encoder = perceptron([3 * per_body + bodies + controls, hidden, hidden])
        self.edge_encoder = perceptron([2 * hidden, hidden, hidden])
        self.edge_update = perceptron([4 * hidden, hidden, hidden])
        self.node_update = perceptron([3 * hidden, hidden, hidden])
        self.global_update = perceptron([3 * hidden, hidden, hidden])
        self.decoder = perceptron([hidden, hidden, outputs * per_body])
        self.summary = nn.Parameter(torch.zeros(hidden))

    def forward(
        self, state: State, control: Float[Tensor, "batch controls"] | None = None
    ) -> Float[Tensor, "batch outputs size"]:
        """Compute outputs of order one for each velocity; None for zero controls."""
        nodes = self.node_encoder(self._node_features(state, self._controls(state, control)))
        ends = torch.cat([nodes[:, self.senders], nodes[:, self.receivers]], -1)
        edges = self.edge_encoder(ends)
        whole = self.summary.expand(state.batch, -1)
        for _ in range(self.message_passing_steps):
            nodes, edges, whole = self._pass(nodes, edges, whole)
        return self.decoder(nodes).unflatten(-1, (self.outputs, -1)).transpose(1, 2).flatten(2)

    def _node_features(self, state: State, control: Tensor) -> Float[Tensor, "batch bodies features"]:
        """Features of each node: positions (cosine and sine, or value and zero), velocity, one-hot body."""
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
        connected = [(body, body + 1) for body in range(bodies - 1)]
    elif links == "complete":
        connected = [(a, b) for a in range(bodies) for b in range(a + 1, bodies)]
    else:
        connected = [(int(a), int(b)) for a, b in links]
    if any(a == b or not (0 <= a < bodies and 0 <= b < bodies) for a, b in connected):
        raise InputError(f"links: expected pairs of different bodies from 0 to {bodies - 1}, got {links}")
    return [*connected, *((b, a) for a, b in connected)]


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
