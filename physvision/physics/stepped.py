"""Rollouts that are a loop over one step in torch: the learned baselines and the hybrid."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import torch
from torch import Tensor

from physvision.core import State, Status, Trajectory
from physvision.physics.engine import Engine, Overrides
from physvision.physics.properties import Properties


class SteppedEngine(Engine):
    """An engine whose rollout is a loop over one step in torch. A subclass defines `_advance`."""

    @abstractmethod
    def _advance(
        self, state: State, control: Tensor | None, properties: Properties | None
    ) -> tuple[State, Status | None]:
        """The state one step later, and the status of what was solved for it, if anything was.

        Args:
            state: where every world is.
            control: held over the step; None for none.
            properties: in place of the engine's own, checked; None for its own.
        """

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        known = None if properties is None else self.checked(properties, state.batch)
        states, solves = [state], []
        for step in range(steps):
            before = states[-1].detach() if truncate and step and step % truncate == 0 else states[-1]
            after, status = self._advance(before, None if controls is None else controls[:, step], known)
            states.append(after)
            solves.append(status)
        q, v = torch.stack([s.q for s in states], 1), torch.stack([s.v for s in states], 1)
        return Trajectory(q, v, _status(q.detach(), v.detach(), solves), self.dt)


class LearnedEngine(SteppedEngine):
    """An engine that is all network: no physical properties. A subclass defines `advance`."""

    def __init__(self, size: int, dt: float, controls: int = 0) -> None:
        super().__init__()
        self.nq = self.nv = size
        self.nu, self.dt = controls, dt

    @abstractmethod
    def advance(self, state: State, control: Tensor | None) -> State:
        """The state one step later."""

    def _advance(self, state: State, control: Tensor | None, properties: Properties | None) -> tuple[State, None]:
        return self.advance(state, control), None

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """All zeros."""
        like = next(self.parameters()).to(dtype)
        return State(like.new_zeros(batch, self.nq), like.new_zeros(batch, self.nv))


def _status(q: Tensor, v: Tensor, solves: list[Status | None]) -> Status:
    """Worlds fail where they stop being finite, and where a step's own solve failed; the rest is what solves tell."""
    good = torch.isfinite(q).all(-1) & torch.isfinite(v).all(-1)
    told = None
    for step, solved in enumerate(solves):
        if solved is not None:
            good[:, step + 1] &= solved.converged
            told = solved if told is None else told.then(solved, step)
    converged = good.all(1)
    first_bad = torch.where(converged, -1, (~good).int().argmax(1))
    if told is None:
        return Status(converged, torch.zeros_like(q[:, 0, 0]), torch.zeros_like(first_bad), first_bad)
    return replace(told, converged=converged, first_failed_step=first_bad)
