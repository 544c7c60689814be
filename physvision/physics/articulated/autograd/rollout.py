"""Rollouts of trees without contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels.batched_function import Tensors
from physvision.kernels.launching import argument
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

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, v, torque, wrenches, *parameters = inputs
        model, batch = self.model, q.shape[0]
        positions = model.allocator.trajectory(batch, self.steps + 1, model.tree.nq)
        velocities = model.allocator.trajectory(batch, self.steps + 1, model.tree.nv)
        failed, underresolved = (torch.empty(batch, dtype=torch.int32, device=model.device) for _ in range(2))
        error = torch.empty(batch, dtype=model.dtype, device=model.device)
        workspace = model.workspaces.borrow(batch, self._rows, "forward")
        forces = model.forces_struct(self._torque(torque, batch, self.steps), wrenches)
        states = map(argument, (q, v, positions, velocities, failed, underresolved, error))
        arguments = [self._tree(tuple(parameters)), workspace.struct, forces, *self._schedule, *states]
        evaluations = self.steps * (self._rows - 1)
        self._launch(model.kernels.rollout, batch, arguments, False, evaluations)
        model.workspaces.give_back(batch, self._rows, "forward", workspace)
        return positions, velocities, failed, underresolved, error

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        torque, wrenches, *parameters = inputs[2:]
        positions, velocities, failed, _, _ = outputs
        model, batch = self.model, positions.shape[0]
        output_bars = map(zeros_if_none, gradients, (positions, velocities))
        q_bar, v_bar = (model.allocator.zeros(batch, count) for count in (model.tree.nq, model.tree.nv))
        torque_bar = self._torque_gradient(torque, needed[2], batch, self.steps)
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, self.steps)
        workspace = model.workspaces.borrow(batch, self._rows, "backward")
        forces = model.forces_struct(self._torque(torque, batch, self.steps), wrenches)
        struct, parameter_bars = model.gradients_struct(batch, torque_bar, wrench_bar, bool(parameters))
        states = map(argument, (inputs[0], positions, velocities, failed, *output_bars, q_bar, v_bar))
        arguments = [self._tree(tuple(parameters)), workspace.struct, forces, struct, *self._schedule, self.truncate]
        evaluations = self.steps * (self._rows - 1)
        self._launch(model.kernels.rollout_backward, batch, [*arguments, *states], True, evaluations)
        model.workspaces.give_back(batch, self._rows, "backward", workspace)
        return (q_bar, v_bar, torque_bar, wrench_bar, *parameter_bars)
