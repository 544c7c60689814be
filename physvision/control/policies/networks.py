"""What a policy is: from what is sensed and what is remembered to outputs and what is remembered next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn


class Policy(nn.Module):
    """A network with a memory, which may be empty.

    Attributes:
        remembered: numbers in the memory.
        output: the layer that outputs come from.
    """

    remembered: int = 0
    output: nn.Linear

    def forward(
        self, sensed: Float[Tensor, "batch sensors"], memory: Float[Tensor, "batch remembered"]
    ) -> tuple[Float[Tensor, "batch outputs"], Float[Tensor, "batch remembered"]]:
        """Outputs, and the memory for the next control period."""
        raise NotImplementedError

    def blank(self, like: Tensor) -> Float[Tensor, "batch remembered"]:
        """The memory at the start, zeros, for as many worlds as a tensor has rows."""
        return like.new_zeros(len(like), self.remembered)

    def still(self) -> None:
        """Make all outputs zero, whatever is sensed; what is below the last layer stays."""
        nn.init.zeros_(self.output.weight)
        if self.output.bias is not None:
            nn.init.zeros_(self.output.bias)


class Dense(Policy):
    """Layers of rectifiers and a linear last one, without a memory.

    Attributes:
        direct: a linear layer from what is sensed to the outputs, beside the others, if there is one.
    """

    direct: nn.Linear | None

    def __init__(
        self, sensors: int, hidden: Sequence[int], outputs: int, bias: bool = True, direct: bool = False
    ) -> None:
        """Set up the layers.

        Args:
            sensors: numbers sensed.
            hidden: widths of the layers between.
            outputs: numbers put out.
            bias: whether layers add a constant.
            direct: whether outputs also depend on what is sensed by a linear layer of their own.
        """
        super().__init__()
        widths = (sensors, *hidden)
        self.hidden = nn.ModuleList(nn.Linear(low, high, bias) for low, high in pairwise(widths))
        self.output = nn.Linear(widths[-1], outputs, bias)
        self.direct = nn.Linear(sensors, outputs, bias) if direct else None

    def still(self) -> None:
        """Make all outputs zero, whatever is sensed; what is below the last layers stays."""
        super().still()
        if self.direct is not None:
            for each in self.direct.parameters():
                nn.init.zeros_(each)

    def forward(self, sensed: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs, and the empty memory; of what is sensed at several times those at all of them."""
        layer = sensed
        for each in self.hidden:
            layer = each(layer).relu()
        output = self.output(layer)
        return (output if self.direct is None else output + self.direct(sensed)), memory


class Recurrent(Policy):
    """A gated recurrent unit, whose state is the memory, and a linear layer."""

    def __init__(self, sensors: int, remembered: int, outputs: int) -> None:
        """Set up the unit.

        Args:
            sensors: numbers sensed.
            remembered: numbers in the memory.
            outputs: numbers put out.
        """
        super().__init__()
        self.remembered = remembered
        self.cell = nn.GRUCell(sensors, remembered)
        self.output = nn.Linear(remembered, outputs)

    def forward(self, sensed: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs, and the unit's new state."""
        memory = self.cell(sensed, memory)
        return self.output(memory), memory
