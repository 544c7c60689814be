"""Rollouts that are a loop over one step in torch: the learned baselines and the hybrid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State, Status, Trajectory
from physvision.core.checks import check_count
from physvision.physics.engine import Engine, Overrides

Advance = Callable[[State, Tensor | None], tuple[State, Status | None]]


def stepped(
    advance: Advance, state: State, steps: int, controls: Tensor | None, truncate: int | None, dt: float
) -> Trajectory:
    """The states that follow `state`, one call of `advance` a step, and how it went.

    Args:
        advance: the state one step later, and the status of what was solved for it, if anything was.
        state: where every world starts.
        steps: how many steps.
        controls: one a step; None for none.
        truncate: backward, the gradient of each state reaches at most so many steps into the past.
        dt: seconds a step.
    """
    check_count("steps", steps)
    horizon = None if truncate is None else check_count("truncate", truncate)
    states, solves = [state], []
    for step in range(steps):
        before = states[-1].detach() if horizon and step and step % horizon == 0 else states[-1]
        after, status = advance(before, None if controls is None else controls[:, step])
        states.append(after)
        solves.append(status)
    q, v = torch.stack([s.q for s in states], 1), torch.stack([s.v for s in states], 1)
    return Trajectory(q, v, _status(q.detach(), v.detach(), solves), dt)


class LearnedEngine(Engine):
    """An engine that is all network: no controls, no physical properties. A subclass defines `advance`."""

    def __init__(self, size: int, dt: float) -> None:
        super().__init__()
        self.nq = self.nv = size
        self.nu, self.dt = 0, dt

    @abstractmethod
    def advance(self, state: State) -> State:
        """The state one step later."""

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Overrides = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Advance `steps` steps; see `Engine.rollout`. There are no properties and no controls to be given."""
        self._check_state(state)
        self._check_controls(state, steps, controls)
        self.checked(properties)
        trajectory = stepped(lambda state, _: (self.advance(state), None), state, steps, controls, truncate, self.dt)
        assert trajectory.status is not None
        self._report(trajectory.status)
        return trajectory

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """All zeros."""
        like = next(self.parameters()).to(dtype)
        return State(like.new_zeros(batch, self.nq), like.new_zeros(batch, self.nv))


def _status(q: Tensor, v: Tensor, solves: list[Status | None]) -> Status:
    """Worlds fail where they stop being finite, and where a step's own solve failed."""
    good = torch.isfinite(q).all(-1) & torch.isfinite(v).all(-1)
    residual, iterations = torch.zeros_like(q[:, 0, 0]), torch.zeros_like(good[:, 0], dtype=torch.long)
    for step, solved in enumerate(solves, 1):
        if solved is not None:
            good[:, step] &= solved.converged
            residual = torch.maximum(residual, solved.residual)
            iterations = torch.maximum(iterations, solved.iterations)
    converged = good.all(1)
    return Status(converged, residual, iterations, torch.where(converged, -1, (~good).int().argmax(1)))
