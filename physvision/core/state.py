"""States of a batch of worlds, trajectories, and the status that an engine reports for a rollout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.export import register_dataclass
from torch.utils import _pytree as pytree

from physvision.core.errors import InputError


@dataclass(frozen=True)
class State:
    """Positions and velocities of a batch of worlds at one time.

    Attributes:
        q: Generalized positions, (batch, nq); meters, radians, unit quaternions (w, x, y, z).
        v: Generalized velocities, (batch, nv); meters and radians a second.
    """

    q: Float[Tensor, "batch nq"]
    v: Float[Tensor, "batch nv"]

    @property
    def batch(self) -> int:
        """Number of worlds in the batch."""
        return self.q.shape[0]

    def to(self, *args, **kwargs) -> State:
        """Copy the state to another device or dtype; arguments as in `torch.Tensor.to`."""
        return State(self.q.to(*args, **kwargs), self.v.to(*args, **kwargs))

    def detach(self) -> State:
        """Detach both tensors from the autograd graph."""
        return State(self.q.detach(), self.v.detach())

    def repeat(self, times: int) -> State:
        """Repeat every world `times` times; copies of one world are adjacent."""
        return State(self.q.repeat_interleave(times, 0), self.v.repeat_interleave(times, 0))


def _not_reported() -> Any:
    """Stand for a number that an engine does not report, until `Status` fills it in."""
    return None


@dataclass(frozen=True)
class Status:
    """Outcome of a rollout, one entry for each world.

    Attributes:
        converged: If true, every step of the world was solved and stayed finite, (batch,).
        residual: Largest residual of the solver over all steps, (batch,); zero for engines without iterative solvers.
        iterations: Largest number of solver iterations in any step, (batch,).
        first_failed_step: Index of the first step that failed, (batch,); -1 if none did. The initial state is step 0.
        fallback_steps: Number of steps with more contact events than could be resolved one by one, so that one problem
            over all contacts was solved instead, (batch,); zero for engines without contact events.
        first_underresolved_step: Index of the first step that was too long for the motion to conserve energy, or after
            which the energy had grown for no reason, (batch,); -1 if there was none or the engine does not check it.
            Such a world goes on.
        first_grazing_step: Index of the first step without a derivative, (batch,): with a grazing contact, one that a
            shift of a micrometer makes or removes, with several contacts that strike at the same time, or with a flat
            side that slides and spins; -1 if there was none or the engine does not check it. Such a world goes on.
        regularized_impacts: Number of impacts whose restitution was lowered so that they add no energy, (batch,).
        penetration: Largest penetration depth at the start of any step or event, m, (batch,); zero for engines that do
            not check it.
    """

    converged: Bool[Tensor, " batch"]
    residual: Float[Tensor, " batch"]
    iterations: Int[Tensor, " batch"]
    first_failed_step: Int[Tensor, " batch"]
    fallback_steps: Int[Tensor, " batch"] = field(default_factory=_not_reported)
    first_underresolved_step: Int[Tensor, " batch"] = field(default_factory=_not_reported)
    first_grazing_step: Int[Tensor, " batch"] = field(default_factory=_not_reported)
    regularized_impacts: Int[Tensor, " batch"] = field(default_factory=_not_reported)
    penetration: Float[Tensor, " batch"] = field(default_factory=_not_reported)

    @classmethod
    def deferred(cls, compute: Callable[[], Status]) -> Status:
        """Make a status of worlds that all converged, whose numbers are computed at the first access.

        Computing them takes as long as a short rollout, after most of which nobody reads them.
        """
        status = object.__new__(cls)
        vars(status)["_compute"] = compute
        return status

    @property
    def is_pending(self) -> bool:
        """If true, all worlds converged and the numbers are not computed yet."""
        return "converged" not in vars(self)

    def with_energy_check(self, first_energy_gain: Callable[[], Tensor]) -> Status:
        """Copy of the status that also names steps of growing energy, which is computed at the first access.

        Args:
            first_energy_gain: Function that returns the first step after which the energy has grown for no reason,
                (batch,); -1 if there is none.
        """

        def compute() -> Status:
            step = _earliest(self.first_underresolved_step, first_energy_gain())
            return replace(self, first_underresolved_step=step)

        status = Status.deferred(compute)
        vars(status).update({key: value for key, value in vars(self).items() if key != "first_underresolved_step"})
        return status

    def with_failures(self, first_failed_step: Int[Tensor, " batch"]) -> Status:
        """Copy of the status with further failures: the first failed step of each world, (batch,), or -1."""
        failed = _earliest(self.first_failed_step, first_failed_step)
        residual = torch.where(failed < 0, self.residual, torch.inf)
        return self._changed(first_failed_step=failed, converged=failed < 0, residual=residual)

    def with_penetration(self, penetration: Float[Tensor, " batch"]) -> Status:
        """Copy of the status with another penetration, m, (batch,)."""
        return self._changed(penetration=penetration)

    def _changed(self, **values: Tensor) -> Status:
        """Copy with other values; what is not computed yet stays so."""
        status = object.__new__(Status)
        vars(status).update(vars(self) | values)
        return status

    def __getattr__(self, name: str) -> Any:
        attributes = vars(self)
        compute = attributes.get("_compute")
        if compute is not None and name in self.__dataclass_fields__:
            # Several threads may compute the same numbers; the attributes are complete before the mark goes.
            computed = dict(vars(compute()))
            following = computed.pop("_compute", None)
            attributes.update(computed | attributes)
            if following is None:
                attributes.pop("_compute", None)
            else:
                attributes["_compute"] = following
            return getattr(self, name)
        if name not in attributes:
            raise AttributeError(f"Status has no attribute {name!r}")
        return attributes[name]

    def __repr__(self) -> str:
        named = {
            "failed": ~self.converged,
            "underresolved": self.first_underresolved_step >= 0,
            "with a step without a derivative": self.first_grazing_step >= 0,
        }
        counts = ", ".join(f"{int(worlds.sum())} {name}" for name, worlds in named.items())
        return f"Status({len(self.converged)} worlds: {counts})"

    def __getstate__(self) -> dict[str, Tensor]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def __post_init__(self) -> None:
        defaults = {"fallback_steps": 0, "regularized_impacts": 0}
        defaults |= {"first_underresolved_step": -1, "first_grazing_step": -1}
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, torch.full_like(self.first_failed_step, value))
        if self.penetration is None:
            object.__setattr__(self, "penetration", torch.zeros_like(self.residual))

    def failed(self) -> list[int]:
        """Return the indices of the worlds that failed; waits for the device."""
        return torch.nonzero(~self.converged).flatten().tolist()

    def then(self, later: Status, first: int) -> Status:
        """Combine this status with that of a rollout that continues it from step `first` on."""

        def earliest(before: Tensor, after: Tensor) -> Tensor:
            return torch.where((before >= 0) | (after < 0), before, after + first)

        return Status(
            converged=self.converged & later.converged,
            residual=torch.maximum(self.residual, later.residual),
            iterations=torch.maximum(self.iterations, later.iterations),
            first_failed_step=earliest(self.first_failed_step, later.first_failed_step),
            fallback_steps=self.fallback_steps + later.fallback_steps,
            first_underresolved_step=earliest(self.first_underresolved_step, later.first_underresolved_step),
            first_grazing_step=earliest(self.first_grazing_step, later.first_grazing_step),
            regularized_impacts=self.regularized_impacts + later.regularized_impacts,
            penetration=torch.maximum(self.penetration, later.penetration),
        )


def _earliest(step: Tensor, further_step: Tensor) -> Tensor:
    """Return the earlier of two steps, in which -1 stands for none."""
    is_earlier = (step < 0) | ((further_step >= 0) & (further_step < step))
    return torch.where(is_earlier, further_step.to(step.dtype), step)


@dataclass(frozen=True)
class Trajectory:
    """States on a fixed grid of times, the initial state first.

    Attributes:
        q: Generalized positions, (batch, steps + 1, nq).
        v: Generalized velocities, (batch, steps + 1, nv).
        status: Outcome of the simulation; None for trajectories that were observed, not simulated.
        dt: Time step between two states, s; None if it is not known.
    """

    q: Float[Tensor, "batch times nq"]
    v: Float[Tensor, "batch times nv"]
    status: Status | None = None
    dt: float | None = None

    @classmethod
    def stack(cls, states: Sequence[State], dt: float | None) -> Trajectory:
        """Make the trajectory of states at intervals of dt, s."""
        return cls(torch.stack([state.q for state in states], 1), torch.stack([state.v for state in states], 1), dt=dt)

    def __len__(self) -> int:
        return self.q.shape[1]

    def __getitem__(self, times: slice) -> Trajectory:
        """Select states by a slice of their indices; for a single state see `state`."""
        return Trajectory(self.q[:, times], self.v[:, times], self.status, self.dt and self.dt * (times.step or 1))

    def __repr__(self) -> str:
        failed = "" if self.status is None else f", {len(self.status.failed())} failed"
        return (
            f"Trajectory({self.batch} worlds{failed}, {len(self)} times, nq={self.q.shape[-1]}, nv={self.v.shape[-1]}, "
            f"dt={self.dt}, {self.q.dtype})"
        )

    @property
    def batch(self) -> int:
        """Number of worlds in the batch."""
        return self.q.shape[0]

    @property
    def steps(self) -> int:
        """Number of steps, one less than the number of states."""
        return self.q.shape[1] - 1

    @property
    def times(self) -> Float[Tensor, " times"]:
        """Time of each state since the first, s."""
        if self.dt is None:
            raise InputError("times: the trajectory has no time step; construct it with dt")
        return self.dt * torch.arange(len(self), dtype=self.q.dtype, device=self.q.device)

    def state(self, step: int) -> State:
        """Return the state after `step` steps; negative numbers count from the end."""
        return State(self.q[:, step], self.v[:, step])

    @property
    def final(self) -> State:
        """State after the last step."""
        return self.state(-1)

    def flatten(self) -> State:
        """Merge all states into one batch of batch · (steps + 1); the states of one world are adjacent."""
        return State(self.q.flatten(0, 1), self.v.flatten(0, 1))


for _node in (State, Status):
    register_dataclass(_node)
# The time step is not a tensor: it belongs to the structure of the pytree, so that vmap and tree_map keep it.
pytree.register_pytree_node(
    Trajectory,
    lambda path: ([path.q, path.v] if path.status is None else [path.q, path.v, path.status], path.dt),
    lambda leaves, dt: Trajectory(*leaves, dt=dt),  # pyright: ignore[reportCallIssue]
    serialized_type_name="physvision.core.Trajectory",
)
