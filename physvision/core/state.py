"""The state of what moves, its course over time, and what the engine says of how it went."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.export import register_dataclass


@dataclass(frozen=True)
class State:
    """Positions and velocities of a batch of worlds at one moment.

    Attributes:
        q: generalised positions, (batch, nq); metres, radians, unit quaternions (w, x, y, z).
        v: generalised velocities, (batch, nv); metres and radians a second.
    """

    q: Float[Tensor, "batch nq"]
    v: Float[Tensor, "batch nv"]

    @property
    def batch(self) -> int:
        """Number of worlds."""
        return self.q.shape[0]

    def to(self, *args, **kwargs) -> State:
        """The same state on another device or in another dtype; arguments as in `torch.Tensor.to`."""
        return State(self.q.to(*args, **kwargs), self.v.to(*args, **kwargs))

    def detach(self) -> State:
        """The same state, cut off from the graph that made it."""
        return State(self.q.detach(), self.v.detach())

    def repeat(self, times: int) -> State:
        """Each world `times` times, copies of one world next to each other."""
        return State(self.q.repeat_interleave(times, 0), self.v.repeat_interleave(times, 0))


@dataclass(frozen=True)
class Status:
    """How a rollout went, world by world.

    Attributes:
        converged: whether every step of the world could be solved and stayed finite, (batch,).
        residual: the largest residual of any step's solve, (batch,); zero where nothing is solved by iteration.
        iterations: the largest number of iterations of any step, (batch,).
        first_bad_step: the first step that failed, (batch,); -1 where none did. The initial state is step 0.
    """

    converged: Bool[Tensor, " batch"]
    residual: Float[Tensor, " batch"]
    iterations: Int[Tensor, " batch"]
    first_bad_step: Int[Tensor, " batch"]

    def failed(self) -> list[int]:
        """Indices of the worlds that failed; waits for the device."""
        return torch.nonzero(~self.converged).flatten().tolist()


@dataclass(frozen=True)
class Trajectory:
    """States on a fixed grid of times, the initial state first.

    Attributes:
        q: generalised positions, (batch, steps + 1, nq).
        v: generalised velocities, (batch, steps + 1, nv).
        status: how the simulation went; None for trajectories that were observed, not simulated.
    """

    q: Float[Tensor, "batch times nq"]
    v: Float[Tensor, "batch times nv"]
    status: Status | None = None

    @property
    def batch(self) -> int:
        """Number of worlds."""
        return self.q.shape[0]

    @property
    def steps(self) -> int:
        """Number of steps: one less than there are states."""
        return self.q.shape[1] - 1

    def state(self, step: int) -> State:
        """The state after `step` steps; negative numbers count from the end."""
        return State(self.q[:, step], self.v[:, step])

    @property
    def final(self) -> State:
        """The last state."""
        return self.state(-1)

    def flatten(self) -> State:
        """All states of all worlds as one batch, (batch · (steps + 1)), times of one world next to each other."""
        return State(self.q.flatten(0, 1), self.v.flatten(0, 1))


for _node in (State, Status, Trajectory):
    register_dataclass(_node)
