"""Engines whose rollout is a loop over one step in torch: learned baselines and hybrids."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import State, Status, Trajectory, UnsupportedError
from physvision.core.checks import check_shape
from physvision.physics.engine import Engine, Overrides
from physvision.physics.properties import Properties
from physvision.physics.wrapper import EngineWrapper


class SteppedEngine(Engine):
    """An engine whose rollout is a loop over one step in torch. A subclass defines `_advance`."""

    @abstractmethod
    def _advance(
        self, state: State, control: Tensor | None, properties: Properties | None
    ) -> tuple[State, Status | None]:
        """Advance every world by one step.

        Args:
            state: State of every world.
            control: Control over the step; None for zero.
            properties: Checked properties that override the engine's own; None for its own.

        Returns:
            State after the step, and the status of its solver, if it has one.
        """

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        checked = None if properties is None else self.checked(properties, state.batch)
        states, statuses = [state], []
        for step in range(steps):
            before = states[-1].detach() if truncate and step and step % truncate == 0 else states[-1]
            after, status = self._advance(before, None if controls is None else controls[:, step], checked)
            states.append(after)
            statuses.append(status)
        q, v = torch.stack([s.q for s in states], 1), torch.stack([s.v for s in states], 1)
        return Trajectory(q, v, _status(q.detach(), v.detach(), statuses), self.dt)


class LearnedEngine(SteppedEngine):
    """An engine that is a neural network without physical properties. A subclass defines `advance`."""

    def __init__(self, size: int, dt: float, controls: int = 0) -> None:
        super().__init__()
        self.nq = self.nv = size
        self.nu, self.dt = controls, dt

    @abstractmethod
    def advance(self, state: State, control: Tensor | None) -> State:
        """Advance every world by one step."""

    def _advance(self, state: State, control: Tensor | None, properties: Properties | None) -> tuple[State, None]:
        return self.advance(state, control), None

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """State of zeros for every world."""
        like = next(self.parameters()).to(dtype)
        return State(like.new_zeros(batch, self.nq), like.new_zeros(batch, self.nv))


class Hybrid(SteppedEngine, EngineWrapper):
    """An engine with a learned force for unmodeled effects: q̈ = FD(q, v, τ + g(q, v, u)).

    The force acts before the engine solves for contacts and joints, which therefore stay satisfied. With a force that
    is initialized to zero, training starts at the engine; a penalty on `forces` in the loss keeps the force small
    where the engine explains the data.
    """

    def __init__(self, engine: Engine, force: nn.Module) -> None:
        """Add a force to an engine.

        Args:
            engine: Physics engine; it receives the controls and the properties.
            force: Network from a state and its control, or None, to a generalized force, (batch, nv), e.g.
                `LearnedForce` or `PassiveForce` of `physvision.models`.
        """
        super().__init__(engine)
        if not engine.takes_forces:
            raise UnsupportedError(
                f"engine: a {type(engine).__name__} takes no generalized force, so none can be learned"
            )
        self.force = force

    def forces(
        self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"] | None = None
    ) -> Float[Tensor, "batch steps nv"]:
        """Learned force in each step of a trajectory, N m and N."""
        forces = self._force(trajectory[:-1].flatten(), None if controls is None else controls.flatten(0, 1))
        return forces.unflatten(0, (trajectory.batch, trajectory.steps))

    def _advance(
        self, state: State, control: Tensor | None, properties: Properties | None
    ) -> tuple[State, Status | None]:
        run = self.engine._step_with_force(state, self._force(state, control), control, properties)
        return run.final, run.status

    def _step_with_force(
        self, state: State, force: Tensor, control: Tensor | None, properties: Overrides
    ) -> Trajectory:
        return self.engine._step_with_force(state, force + self._force(state, control), control, properties)

    def _force(self, state: State, control: Tensor | None) -> Tensor:
        return check_shape("force", self.force(state, control), (state.batch, self.nv))


def _status(q: Tensor, v: Tensor, statuses: list[Status | None]) -> Status:
    """Status of a rollout: worlds fail where they stop being finite, and where the solver of a step failed."""
    valid = torch.isfinite(q).all(-1) & torch.isfinite(v).all(-1)
    solver = None
    for step, status in enumerate(statuses):
        if status is not None:
            valid[:, step + 1] &= status.converged
            solver = status if solver is None else solver.then(status, step)
    converged = valid.all(1)
    first_failed = torch.where(converged, -1, (~valid).int().argmax(1))
    if solver is None:
        return Status(converged, torch.zeros_like(q[:, 0, 0]), torch.zeros_like(first_failed), first_failed)
    return replace(solver, converged=converged, first_failed_step=first_failed)
