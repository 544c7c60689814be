"""The state of what moves, its course over time, and what the engine says of how it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.export import register_dataclass
from torch.utils import _pytree as pytree

from physvision.core.errors import InputError


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


def _unsaid() -> Any:
    """Stands for numbers of a status that an engine does not tell, until they are filled in."""
    return None


@dataclass(frozen=True)
class Status:
    """How a rollout went, world by world.

    Attributes:
        converged: whether every step of the world could be solved and stayed finite, (batch,).
        residual: the largest residual of any step's solve, (batch,); zero where nothing is solved by iteration.
        iterations: the largest number of iterations of any step, (batch,).
        first_bad_step: the first step that failed, (batch,); -1 where none did. The initial state is step 0.
        crowded: how many steps were too busy to be followed event by event, (batch,); zero for engines without events.
        first_coarse_step: the first step that was too long for its motion, so that energy is not kept, (batch,); −1
            where none was, or where the engine does not judge that. Such a world goes on.
        first_grazing_step: the first step in which bodies graze each other, so that a shift of a micrometre makes or
            undoes a contact and the motion has no derivative, (batch,); −1 where none was, or where the engine does not
            judge that. Such a world goes on.
        softened: how many impacts had less restitution than was asked for, or they would have added energy, (batch,).
        overlap: by how much shapes overlapped at most at the start of any step or event, m, (batch,); zero where the
            engine does not judge that.
    """

    converged: Bool[Tensor, " batch"]
    residual: Float[Tensor, " batch"]
    iterations: Int[Tensor, " batch"]
    first_bad_step: Int[Tensor, " batch"]
    crowded: Int[Tensor, " batch"] = field(default_factory=_unsaid)
    first_coarse_step: Int[Tensor, " batch"] = field(default_factory=_unsaid)
    first_grazing_step: Int[Tensor, " batch"] = field(default_factory=_unsaid)
    softened: Int[Tensor, " batch"] = field(default_factory=_unsaid)
    overlap: Float[Tensor, " batch"] = field(default_factory=_unsaid)

    @classmethod
    def of_good_worlds(cls, make: Callable[[], Status]) -> Status:
        """The status of worlds that all went well, made when somebody first asks for one of its numbers.

        Making it takes as long as some short motions, after which nobody asks.
        """
        status = object.__new__(cls)
        vars(status)["_make"] = make
        return status

    @property
    def is_unmade(self) -> bool:
        """Whether all worlds went well and nobody has asked for more."""
        return "_make" in vars(self)

    def __getattr__(self, name: str) -> Any:
        make = vars(self).pop("_make", None)
        if make is None:
            raise AttributeError(f"Status has no {name!r}")
        vars(self).update(vars(make()))
        return getattr(self, name)

    def __getstate__(self) -> dict[str, Tensor]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __post_init__(self) -> None:
        empty = {"crowded": 0, "softened": 0, "first_coarse_step": -1, "first_grazing_step": -1}
        for name, value in empty.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, torch.full_like(self.first_bad_step, value))
        if self.overlap is None:
            object.__setattr__(self, "overlap", torch.zeros_like(self.residual))

    def failed(self) -> list[int]:
        """Indices of the worlds that failed; waits for the device."""
        return torch.nonzero(~self.converged).flatten().tolist()

    def then(self, later: Status, first: int) -> Status:
        """The status of this motion together with one that follows it from step `first` on."""

        def earliest(before: Tensor, after: Tensor) -> Tensor:
            return torch.where((before >= 0) | (after < 0), before, after + first)

        return Status(
            converged=self.converged & later.converged,
            residual=torch.maximum(self.residual, later.residual),
            iterations=torch.maximum(self.iterations, later.iterations),
            first_bad_step=earliest(self.first_bad_step, later.first_bad_step),
            crowded=self.crowded + later.crowded,
            first_coarse_step=earliest(self.first_coarse_step, later.first_coarse_step),
            first_grazing_step=earliest(self.first_grazing_step, later.first_grazing_step),
            softened=self.softened + later.softened,
            overlap=torch.maximum(self.overlap, later.overlap),
        )


@dataclass(frozen=True)
class Trajectory:
    """States on a fixed grid of times, the initial state first.

    Attributes:
        q: generalised positions, (batch, steps + 1, nq).
        v: generalised velocities, (batch, steps + 1, nv).
        status: how the simulation went; None for trajectories that were observed, not simulated.
        dt: seconds between two states; None where nobody said.
    """

    q: Float[Tensor, "batch times nq"]
    v: Float[Tensor, "batch times nv"]
    status: Status | None = None
    dt: float | None = None

    def __len__(self) -> int:
        return self.q.shape[1]

    def __getitem__(self, times: slice) -> Trajectory:
        """The states of some of the times, as in a list; for a single one see `state`."""
        return Trajectory(self.q[:, times], self.v[:, times], self.status, self.dt and self.dt * (times.step or 1))

    def __repr__(self) -> str:
        failed = "" if self.status is None else f", {len(self.status.failed())} failed"
        return (
            f"Trajectory({self.batch} worlds{failed}, {len(self)} times, nq={self.q.shape[-1]}, nv={self.v.shape[-1]}, "
            f"dt={self.dt}, {self.q.dtype})"
        )

    @property
    def batch(self) -> int:
        """Number of worlds."""
        return self.q.shape[0]

    @property
    def steps(self) -> int:
        """Number of steps: one less than there are states."""
        return self.q.shape[1] - 1

    @property
    def times(self) -> Float[Tensor, " times"]:
        """Seconds since the first state."""
        if self.dt is None:
            raise InputError("times: this trajectory does not say how far its states are apart; give it a dt")
        return self.dt * torch.arange(len(self), dtype=self.q.dtype, device=self.q.device)

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


for _node in (State, Status):
    register_dataclass(_node)
# The step of time is no tensor: it goes with the structure, so that vmap and tree_map keep it.
pytree.register_pytree_node(
    Trajectory,
    lambda whole: ([whole.q, whole.v] if whole.status is None else [whole.q, whole.v, whole.status], whole.dt),
    lambda parts, dt: Trajectory(*parts, dt=dt),  # pyright: ignore[reportCallIssue]
    serialized_type_name="physvision.core.Trajectory",
)
