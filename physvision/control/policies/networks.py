"""Policy networks: from an observation and a hidden state to an output and the next hidden state."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn


class Policy(nn.Module):
    """Base class of policies, with a hidden state that may be empty.

    Attributes:
        hidden_size: Length of the hidden state.
        output: Linear layer that computes the output.
    """

    hidden_size: int = 0
    output: nn.Linear

    def forward(
        self, obs: Float[Tensor, "batch obs"], hidden: Float[Tensor, "batch hidden"]
    ) -> tuple[Float[Tensor, "batch outputs"], Float[Tensor, "batch hidden"]]:
        """Return the output and the hidden state of the next control step."""
        raise NotImplementedError

    def initial_hidden(self, like: Tensor) -> Float[Tensor, "batch hidden"]:
        """Return a zero hidden state for as many worlds as a tensor has rows."""
        return like.new_zeros(len(like), self.hidden_size)

    def zero_output(self) -> None:
        """Set the output layer to zero; the layers below it stay."""
        for parameter in self.output.parameters():
            nn.init.zeros_(parameter)


class MlpPolicy(Policy):
    """Multilayer perceptron with ReLU, without a hidden state.

    Attributes:
        hidden: Hidden layers.
    """

    def __init__(self, obs_size: int, hidden_sizes: Sequence[int], output_size: int) -> None:
        """Set up the layers.

        Args:
            obs_size: Length of an observation.
            hidden_sizes: Sizes of the hidden layers.
            output_size: Length of an output.
        """
        super().__init__()
        sizes = (obs_size, *hidden_sizes)
        self.hidden = nn.ModuleList(nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes))
        self.output = nn.Linear(sizes[-1], output_size)

    def forward(self, obs: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output, for observations of several steps at all of them, and the empty hidden state."""
        activations = obs
        for layer in self.hidden:
            activations = layer(activations).relu()
        return self.output(activations), hidden
