"""Rollouts of trees without contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels.batched_function import Tensors
from physvision.physics.articulated.autograd.operation import TreeOperation, zeros_if_none
from physvision.physics.articulated.model.integrators import Integrator


@dataclass(frozen=True, eq=False)
class Rollout(TreeOperation):
    """Rollout without contact by an explicit integrator.

    Inputs: q, v, generalized forces, wrenches, then parameters. Outputs: trajectories of q and v, first failed step,
    first underresolved step, and the largest integration error.
    """

    steps: int
    integrator: Integrator
    substeps: int
    dt: float
    truncate: int
    differentiable = 2

    @property
    def _schedule(self) -> list[Any]:
        return [self.model.schedule_struct(self.integrator, self.substeps, self.dt), self.steps]

    @property
    def _rows(self) -> int:
        return self.integrator.stages * self.substeps + 1

    def _key(self, wrenches: Tensor | None) -> tuple | None:
        """Key of a recorded launch, which has no wrenches."""
        return None if wrenches is not None else (self.integrator, self.substeps, self.dt, self.steps, self.truncate)

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, v, torque, wrenches, *parameters = inputs
        model, batch = self.model, q.shape[0]
        positions = model.allocator.trajectory(batch, self.steps + 1, model.tree.nq)
        velocities = model.allocator.trajectory(batch, self.steps + 1, model.tree.nv)
        failed, underresolved = (torch.empty(batch, dtype=torch.int32, device=model.device) for _ in range(2))
        error = torch.empty(batch, dtype=model.dtype, device=model.device)
        workspace = model.workspaces.borrow(batch, self._rows, "forward")
        forces = self._torque(torque, batch, self.steps)

        def arguments() -> list[Any]:
            structs = self._tree(tuple(parameters)), workspace.struct, model.forces_struct(forces, wrenches)
            return [*structs, *self._schedule]

        states = (q, v, positions, velocities, failed, underresolved, error)
        cost = self._cost(batch, False, self.steps * (self._rows - 1))
        key = self._key(wrenches)
        self._launch_rollout(model.kernels.rollout, workspace, key, arguments, {2: forces}, states, cost)
        model.workspaces.give_back(batch, self._rows, "forward", workspace)
        return positions, velocities, failed, underresolved, error

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        torque, wrenches, *parameters = inputs[2:]
        positions, velocities, failed, _, _ = outputs
        model, batch = self.model, positions.shape[0]
        q_bar, v_bar = (model.allocator.zeros(batch, count) for count in (model.tree.nq, model.tree.nv))
        torque_bar = self._torque_gradient(torque, needed[2], batch, self.steps)
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, self.steps)
        workspace = model.workspaces.borrow(batch, self._rows, "backward")
        forces = self._torque(torque, batch, self.steps)
        parameter_bars: list[Tensor] = []

        def arguments() -> list[Any]:
            bars, tensors = model.gradients_struct(batch, torque_bar, wrench_bar, bool(parameters))
            parameter_bars.extend(tensors)
            structs = self._tree(tuple(parameters)), workspace.struct, model.forces_struct(forces, wrenches), bars
            return [*structs, *self._schedule, self.truncate]

        output_bars = map(zeros_if_none, gradients, (positions, velocities))
        states = (inputs[0], positions, velocities, failed, *output_bars, q_bar, v_bar)
        cost = self._cost(batch, True, self.steps * (self._rows - 1))
        key, torques = self._key(wrenches), {2: forces, 3: torque_bar}
        self._launch_rollout(model.kernels.rollout_backward, workspace, key, arguments, torques, states, cost)
        model.workspaces.give_back(batch, self._rows, "backward", workspace)
        return (q_bar, v_bar, torque_bar, wrench_bar, *parameter_bars)
