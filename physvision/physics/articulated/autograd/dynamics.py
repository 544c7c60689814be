"""Forward dynamics, inverse dynamics and forward kinematics of single states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels.batched_function import Tensors
from physvision.kernels.launching import argument
from physvision.physics.articulated.autograd.operation import TreeOperation


@dataclass(frozen=True, eq=False)
class Acceleration(TreeOperation):
    """Forward dynamics: (q, v, generalized forces, wrenches, parameters) → q̈."""

    differentiable = 1

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, v, torque, wrenches, *parameters = inputs
        model, batch = self.model, q.shape[0]
        workspace = self._single_evaluation(batch, "forward", q=q, v=v)
        forces = model.forces_struct(self._torque(torque, batch, 1), wrenches)
        arguments = [self._tree(tuple(parameters)), workspace.struct, forces]
        self._launch(model.kernels.accelerations, batch, arguments, False)
        acceleration = workspace.tensors["a"][:, 0].clone()
        model.workspaces.give_back(batch, 1, "forward", workspace)
        return (acceleration,)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        q, v, torque, wrenches, *parameters = inputs
        model, batch = self.model, q.shape[0]
        workspace = self._single_evaluation(batch, "backward", q=q, v=v, a_bar=gradients[0])
        q_bar, v_bar = (model.allocator.zeros(batch, count) for count in (model.tree.nq, model.tree.nv))
        torque_bar = self._torque_gradient(torque, needed[2], batch, 1)
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, 1)
        forces = model.forces_struct(self._torque(torque, batch, 1), wrenches)
        struct, parameter_bars = model.gradients_struct(batch, torque_bar, wrench_bar, bool(parameters))
        arguments = [self._tree(tuple(parameters)), workspace.struct, forces, struct, argument(q_bar), argument(v_bar)]
        self._launch(model.kernels.accelerations_backward, batch, arguments, True)
        model.workspaces.give_back(batch, 1, "backward", workspace)
        return (q_bar, v_bar, torque_bar, wrench_bar, *parameter_bars)


@dataclass(frozen=True, eq=False)
class InverseDynamics(TreeOperation):
    """Inverse dynamics: (q, v, q̈, wrenches, parameters) → generalized forces."""

    differentiable = 1

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, v, a, wrenches, *parameters = inputs
        model, batch = self.model, q.shape[0]
        workspace = self._single_evaluation(batch, "forward", q=q, v=v, a=a)
        torque = model.allocator.empty(batch, model.tree.nv)
        forces = model.forces_struct(self._torque(None, batch, 1), wrenches)
        arguments = [self._tree(tuple(parameters)), workspace.struct, forces, argument(torque)]
        self._launch(model.kernels.inverse_dynamics, batch, arguments, False)
        model.workspaces.give_back(batch, 1, "forward", workspace)
        return (torque,)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        q, v, a, wrenches, *parameters = inputs
        model, batch = self.model, q.shape[0]
        workspace = self._single_evaluation(batch, "backward", q=q, v=v, a=a)
        counts = (model.tree.nq, model.tree.nv, model.tree.nv)
        state_bars = [model.allocator.zeros(batch, count) for count in counts]
        torque_bar = self._torque_gradient(None, False, batch, 1)
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, 1)
        forces = model.forces_struct(self._torque(None, batch, 1), wrenches)
        struct, parameter_bars = model.gradients_struct(batch, torque_bar, wrench_bar, bool(parameters))
        arguments = [self._tree(tuple(parameters)), workspace.struct, forces, struct]
        arguments += map(argument, (gradients[0], *state_bars))
        self._launch(model.kernels.inverse_dynamics_backward, batch, arguments, True)
        model.workspaces.give_back(batch, 1, "backward", workspace)
        return (*state_bars, wrench_bar, *parameter_bars)


@dataclass(frozen=True, eq=False)
class LinkPoses(TreeOperation):
    """Forward kinematics: (q, parameters) → rotations (link to world) and origins of all links."""

    differentiable = 2

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, *parameters = inputs
        model, batch = self.model, q.shape[0]
        workspace = self._single_evaluation(batch, "forward", q=q)
        rotation = model.allocator.empty(batch, model.tree.links, 3, 3)
        position = model.allocator.empty(batch, model.tree.links, 3)
        entries = model.kernels.ENTRIES
        poses = [argument(rotation, entries["mat33"]), argument(position, entries["vec3"])]
        arguments = [self._tree(tuple(parameters)), workspace.struct, *poses]
        self._launch(model.kernels.link_poses, batch, arguments, False)
        model.workspaces.give_back(batch, 1, "forward", workspace)
        return rotation, position

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        q, *parameters = inputs
        rotation, position = outputs
        model, batch = self.model, q.shape[0]
        workspace = self._single_evaluation(batch, "backward", q=q)
        rotation_bar, position_bar = (
            torch.zeros_like(like) if bar is None else bar.contiguous()
            for bar, like in zip(gradients, (rotation, position), strict=True)
        )
        q_bar, torque_bar = model.allocator.zeros(batch, model.tree.nq), self._torque_gradient(None, False, batch, 1)
        struct, parameter_bars = model.gradients_struct(batch, torque_bar, None, bool(parameters))
        entries = model.kernels.ENTRIES
        poses = [argument(value, entries["mat33"]) for value in (rotation, rotation_bar)]
        poses.append(argument(position_bar, entries["vec3"]))
        arguments = [self._tree(tuple(parameters)), workspace.struct, *poses, argument(q_bar), struct]
        self._launch(model.kernels.link_poses_backward, batch, arguments, True)
        model.workspaces.give_back(batch, 1, "backward", workspace)
        return (q_bar, *parameter_bars)
