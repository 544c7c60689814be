"""Base class of engines around an engine, such as learned layers and hybrids."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import State, Status, Trajectory
from physvision.physics.engine import Engine, MechanicalEngine, Overrides
from physvision.physics.properties import Properties


class EngineWrapper(Engine):
    """An engine that forwards all methods to an inner engine; a subclass overrides some.

    Attributes:
        engine: Inner engine.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        self.nq, self.nv, self.nu, self.dt = engine.nq, engine.nv, engine.nu, engine.dt
        self.takes_forces, self.control_names = engine.takes_forces, engine.control_names

    @property
    def status(self) -> Status | None:
        """Status of the last rollout of the inner engine."""
        return self.engine.status

    @property
    def properties(self) -> Properties:
        """Properties of the inner engine."""
        return self.engine.properties

    @property
    def mechanics(self) -> MechanicalEngine | None:
        """Mechanical engine inside, or None if there is none."""
        return self.engine.mechanics

    @property
    def control_range(self) -> Float[Tensor, "nu 2"]:
        """Smallest and largest value of each control of the inner engine."""
        return self.engine.control_range

    @property
    def learned_values(self) -> dict[str, Tensor]:
        """Physical parameters that the inner engine learns."""
        return self.engine.learned_values

    def physical_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters behind `learned_values`, for an optimizer."""
        return self.engine.physical_parameters()

    def checked(
        self, properties: Overrides, batch: int | None = None, device: torch.device | None = None
    ) -> Properties:
        """Check properties of the inner engine once."""
        return self.engine.checked(properties, batch, device)

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """Initial state of the inner engine."""
        return self.engine.initial_state(batch, dtype)

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        return self.engine._simulate(state, steps, controls, properties, truncate)

    def _step_with_force(
        self, state: State, force: Tensor, control: Tensor | None, properties: Overrides
    ) -> Trajectory:
        return self.engine._step_with_force(state, force, control, properties)

    def _report(self, trajectory: Trajectory, properties: Overrides) -> Trajectory:
        return self.engine._report(trajectory, properties)

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """Position reached from `q` by the displacement `dv`."""
        return self.engine.integrate(q, dv)

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """Displacement from `q0` to `q1` in the tangent space."""
        return self.engine.difference(q0, q1)
