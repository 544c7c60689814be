"""Workspaces of kernel launches, reused from call to call on a CPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from physvision.kernels.launching import LaunchCache, fill
from physvision.physics.articulated.arrays import BACKWARD_MEMORY, CONTACT_MEMORY, FORWARD_MEMORY
from physvision.physics.articulated.settings import SETTINGS

# Columns of a contact rollout's status: whole numbers behind the first failed step, and real numbers.
STEP_COLUMNS = ("status.first_grazing_step", "status.fallback_steps", "status.regularized_impacts")
WORST_COLUMNS = ("status.residual", "status.penetration")


@dataclass(frozen=True, eq=False)
class Workspace:
    """Memory of one launch.

    Attributes:
        struct: Struct that the kernels read.
        tensors: Tensors behind the struct by name.
        launches: Recorded launches with this memory.
    """

    struct: Any
    tensors: dict[str, Tensor]
    launches: LaunchCache = field(default_factory=LaunchCache)


class Allocator:
    """Allocation of tensors in one dtype on one device, worlds innermost on a GPU for coalesced access."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype, self.device = dtype, device

    def zeros(self, batch: int, *shape: int) -> Tensor:
        """Zeros of shape (batch, *shape)."""
        return self._allocate(torch.zeros, batch, *shape)

    def empty(self, batch: int, *shape: int) -> Tensor:
        """Uninitialized memory of shape (batch, *shape)."""
        return self._allocate(torch.empty, batch, *shape)

    def integers(self, batch: int, *shape: int) -> Tensor:
        """Integer zeros of shape (batch, *shape)."""
        return self._allocate(torch.zeros, batch, *shape, dtype=torch.int32)

    def trajectory(self, batch: int, times: int, count: int) -> Tensor:
        """Uninitialized memory of a trajectory, (batch, times, count)."""
        if self.device.type == "cpu":
            return self.empty(batch, times, count)
        return torch.empty(times, count, batch, dtype=self.dtype, device=self.device).permute(2, 0, 1)

    def _allocate(self, make: Any, batch: int, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        dtype = dtype or self.dtype
        if self.device.type == "cpu" or not shape:
            return make(batch, *shape, dtype=dtype, device=self.device)
        # Vectors and matrices stay contiguous.
        return make(shape[0], batch, *shape[1:], dtype=dtype, device=self.device).transpose(0, 1)


class WorkspacePool:
    """Idle workspaces of one model by batch size, number of evaluations and kind: "forward", "backward", "contacts"."""

    def __init__(self, kernels: Any, allocator: Allocator, counts: dict[str, int], motion_subspace: Tensor) -> None:
        """Make an empty pool.

        Args:
            kernels: Module of kernels that owns the structs.
            allocator: Allocator of the tensors.
            counts: Sizes of the rows of the arrays.
            motion_subspace: Joint axes of all velocities, (nv, 6), angular part first.
        """
        self._kernels, self._allocator, self._counts = kernels, allocator, counts
        self._axes = {"axis_angular": motion_subspace[:, :3], "axis_linear": motion_subspace[:, 3:]}
        self._idle: dict[tuple, list[Workspace]] = {}

    def borrow(self, batch: int, rows: int, kind: str) -> Workspace:
        """Take a workspace that no other launch uses; `give_back` returns it.

        Args:
            batch: Number of worlds.
            rows: Number of evaluations of the dynamics that are kept.
            kind: Kind of the workspace: "forward", "backward" (which serves both passes) or "contacts".
        """
        idle = self._idle.setdefault((batch, rows, kind), [])
        return idle.pop() if idle else self.allocate(batch, rows, kind)

    def give_back(self, batch: int, rows: int, kind: str, workspace: Workspace) -> None:
        """Return a borrowed workspace. On a GPU, where the launch may still run, torch's allocator takes it."""
        is_current = kind != "contacts" or workspace.tensors["blocks.pair"].shape[1] == self._counts["contacts"]
        if self._allocator.device.type == "cpu" and is_current:
            self._idle.setdefault((batch, rows, kind), []).append(workspace)
            while len(self._idle) > SETTINGS.cached_workspaces:
                del self._idle[next(iter(self._idle))]

    def drop(self, kind: str) -> None:
        """Forget the idle workspaces of a kind, whose sizes have changed."""
        self._idle = {key: idle for key, idle in self._idle.items() if key[2] != kind}

    def allocate(self, batch: int, rows: int, kind: str) -> Workspace:
        """Make a new workspace; arguments as in `borrow`."""
        if kind == "contacts":
            return self._allocate_contacts(batch, rows)
        struct, tensors = self._kernels.WorkspaceStruct(), {}
        counts = self._counts | {"evaluations": rows}
        for name, array in (FORWARD_MEMORY | (BACKWARD_MEMORY if kind == "backward" else {})).items():
            tensors[name] = self._allocator.empty(batch, *array.shape(counts))
            fill(struct, name, tensors[name], self._kernels.ENTRIES[array.entry])
        for name, axes in self._axes.items():
            tensors[name].copy_(axes.expand(batch, -1, -1))
        return Workspace(struct, tensors)

    def _allocate_contacts(self, batch: int, rows: int) -> Workspace:
        allocator, struct = self._allocator, self._kernels.ContactWorkspaceStruct()
        counts = self._counts | {"evaluations": rows}
        # The status of a rollout is in columns of two tensors, which are copied at once.
        steps = allocator.integers(batch, 1 + len(STEP_COLUMNS))
        worst = allocator.empty(batch, len(WORST_COLUMNS))
        forces = counts["velocities"] + counts["transmissions"]
        tensors = {"steps": steps, "failed": steps[:, 0], "worst": worst}
        # Receives the gradient to forces that need none.
        tensors["discarded"] = allocator.zeros(batch, 1, forces)
        columns = {name: steps[:, 1 + k] for k, name in enumerate(STEP_COLUMNS)}
        columns |= {name: worst[:, k] for k, name in enumerate(WORST_COLUMNS)}
        for name, array in CONTACT_MEMORY.items():
            if name in columns:
                tensors[name] = columns[name]
            else:  # counts of placements start at zero
                make = allocator.integers if array.entry == "whole" else allocator.empty
                tensors[name] = make(batch, *array.shape(counts))
            fill(struct, name, tensors[name], self._kernels.ENTRIES[array.entry])
        return Workspace(struct, tensors)
