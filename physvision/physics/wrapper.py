"""An engine around an engine: what a learned layer and a hybrid have in common."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import State, Status, Trajectory
from physvision.physics.engine import Engine, MechanicalEngine, Overrides
from physvision.physics.properties import Properties


class EngineWrapper(Engine):
    """An engine that forwards the whole contract to another; a subclass changes what it is there for.

    Attributes:
        engine: the one inside.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        self.nq, self.nv, self.nu, self.dt = engine.nq, engine.nv, engine.nu, engine.dt
        self.takes_forces = engine.takes_forces

    @property
    def status(self) -> Status | None:
        """How the last rollout of the engine inside went."""
        return self.engine.status

    @property
    def properties(self) -> Properties:
        """The properties of the engine inside."""
        return self.engine.properties

    @property
    def mechanics(self) -> MechanicalEngine | None:
        """The mechanical engine inside the engine, if there is one."""
        return self.engine.mechanics

    @property
    def learned_values(self) -> dict[str, Tensor]:
        """Physical parameters that the engine inside learns."""
        return self.engine.learned_values

    def physical_parameters(self) -> Iterator[nn.Parameter]:
        """What an optimiser moves for `learned_values`."""
        return self.engine.physical_parameters()

    def checked(
        self, properties: Overrides, batch: int | None = None, device: torch.device | None = None
    ) -> Properties:
        """The properties of the engine inside with these in place, checked once."""
        return self.engine.checked(properties, batch, device)

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """The state that the engine inside starts from."""
        return self.engine.initial_state(batch, dtype)

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        return self.engine._simulate(state, steps, controls, properties, truncate)

    def _pushed(self, state: State, force: Tensor, control: Tensor | None, properties: Overrides) -> Trajectory:
        return self.engine._pushed(state, force, control, properties)

    def _report(self, status: Status) -> None:
        self.engine._report(status)

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """The position reached from `q` by the displacement `dv`."""
        return self.engine.integrate(q, dv)

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """The displacement that leads from `q0` to `q1`."""
        return self.engine.difference(q0, q1)
