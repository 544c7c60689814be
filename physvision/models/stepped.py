"""Engines that are defined by one step in torch: the learned baselines and the hybrid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, State, Status, Trajectory
from physvision.core.checks import check_count
from physvision.physics.engine import Engine


class SteppedEngine(Engine):
    """An Engine whose subclass defines `advance`; a rollout is a loop over it."""

    def advance(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None,
        properties: Any | Mapping[str, Tensor] | None,
    ) -> State:
        """The state one step later; the arguments are checked."""
        raise NotImplementedError

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Any | Mapping[str, Tensor] | None = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Advance `steps` steps; see `Engine.rollout`."""
        self._check_state(state)
        self._check_controls(state, check_count("steps", steps), controls)
        horizon = None if truncate is None else check_count("truncate", truncate)
        states = [state]
        for step in range(steps):
            before = states[-1].detach() if horizon and step and step % horizon == 0 else states[-1]
            states.append(self.advance(before, None if controls is None else controls[:, step], properties))
        q, v = torch.stack([s.q for s in states], 1), torch.stack([s.v for s in states], 1)
        status = _status(q, v)
        self._report(status)
        return Trajectory(q, v, status)


class LearnedEngine(SteppedEngine):
    """An engine that is all network: no controls, no physical properties."""

    def __init__(self, size: int, dt: float) -> None:
        super().__init__()
        self.nq = self.nv = size
        self.nu, self.dt = 0, dt

    @property
    def properties(self) -> None:
        """None: a network knows of no masses and lengths."""
        return

    def initial_state(self, batch: int = 1) -> State:
        """All zeros."""
        like = next(self.parameters())
        return State(like.new_zeros(batch, self.nq), like.new_zeros(batch, self.nv))

    def _refuse(self, properties: Any) -> None:
        if properties is not None:
            raise InputError(f"properties: {type(self).__name__} has none, got {type(properties).__name__}")


def _status(q: Tensor, v: Tensor) -> Status:
    """Worlds fail where they stop being finite; nothing is solved by iteration."""
    finite = torch.isfinite(q.detach()).all(-1) & torch.isfinite(v.detach()).all(-1)
    converged = finite.all(1)
    first = torch.where(converged, -1, (~finite).int().argmax(1))
    return Status(converged, torch.zeros_like(q.detach()[:, 0, 0]), torch.zeros_like(first), first)
