"""Rollouts of trees without contact, by events, and by a law of contact that steps by a fixed time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels.batched_function import Tensors
from physvision.kernels.launching import argument, launch
from physvision.physics.articulated.arrays import CONTACT_PARAMETERS, PARAMETERS
from physvision.physics.articulated.autograd.operation import TreeOperation, zeros_if_none
from physvision.physics.articulated.compiler.device_model import DeviceModel
from physvision.physics.articulated.compiler.link_parameters import Parameters
from physvision.physics.articulated.contact import ContactLaw
from physvision.physics.articulated.model.integrators import Integrator
from physvision.physics.articulated.settings import SETTINGS
from physvision.physics.articulated.workspace import Workspace


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


@dataclass(frozen=True, eq=False)
class ContactRollout(TreeOperation):
    """Rollout with contact in one launch.

    Inputs: q, v, generalized forces, wrenches, then parameters of the links and of the contact problem. Outputs:
    trajectories of q and v, and two tables for the status: the index of the first failed step followed by the columns
    `workspace.STEP_COLUMNS`, and the columns `workspace.WORST_COLUMNS`.

    Attributes:
        steps: Number of steps.
        dt: Length of a step, s.
        truncate: Number of steps after which the gradient is cut; zero for no cut.
        law: Law of contact that steps by a fixed time; None for events.
        integrator: Integrator of a law that has no time stepping of its own.
        substeps: Number of substeps of the integrator in a step.
    """

    steps: int
    dt: float
    truncate: int
    law: ContactLaw | None = None
    integrator: Integrator | None = None
    substeps: int = 1
    differentiable = 2

    def _kernel(self, name: str) -> Any:
        if self.law is None:
            return getattr(self.model.kernels, f"contact_{name}")
        return getattr(self.model.law_kernels(self.law), name)

    @property
    def _schedule(self) -> list[Any]:
        """Arguments of both launches behind the workspaces: law or length of a step, and number of steps."""
        method: Any = self.dt
        if self.integrator is not None:
            method = self.model.schedule_struct(self.integrator, self.substeps, self.dt)
        elif self.law is not None:
            method = self.model.law_struct(self.law, self.dt)
        return [method, self.steps]

    @property
    def _evaluations_per_step(self) -> int:
        return 1 if self.integrator is None else self.integrator.stages * self.substeps

    @property
    def _max_events(self) -> int:
        assert self.model.pairs is not None
        return self.model.pairs.max_events

    @property
    def _rows(self) -> int:
        """Number of evaluations of the dynamics that a workspace has rows for."""
        return max(self._max_events + 3, self._evaluations_per_step + 1)

    @property
    def _evaluations(self) -> int:
        """Number of evaluations of contact-free dynamics that cost as much as the rollout."""
        return SETTINGS.contact_cost_factor * self.steps * self._evaluations_per_step

    def _structs(
        self, parameters: list[Tensor], workspace: Workspace, forces: Any, contact_workspace: Workspace
    ) -> list[Any]:
        """Structs that are the first arguments of both kernels."""
        if self.structs is not None:
            tree, contacts = self.structs.contact_tree, self.structs.contacts
            contacts.max_blocks = self.model.counts["contacts"]  # may have grown
        else:
            count, centered = len(CONTACT_PARAMETERS), self.model.pairs is not None and self.model.pairs.is_centered
            limits = (self._max_events, SETTINGS.restitution_threshold, SETTINGS.max_initial_penetration)
            values = dict(zip(CONTACT_PARAMETERS, parameters[-count:], strict=True))
            contacts = self.model.contacts_struct(values, *limits)
            tree = self.model.tree_struct(dict(zip(PARAMETERS, parameters[:-count], strict=True)), centered=centered)
        return [tree, workspace.struct, forces, contacts, contact_workspace.struct]

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        return self._run(("steps", "worst"), *inputs)

    def impulses(self, *inputs: Any) -> Tensor:
        """Impulse on the first shape of each pair over the last step, (batch, pairs, 3), N s; zero where it failed."""
        _, _, steps, impulses = self._run(("steps", "status.pair_impulse"), *inputs)
        return torch.where(steps[:, :1, None] < 0, impulses, 0.0)

    def _key(self, wrenches: Tensor | None, workspace: Workspace) -> tuple | None:
        """Key of a recorded launch, which has no wrenches."""
        if wrenches is not None:
            return None
        return workspace, self.law, self.integrator, self.substeps, self.dt, self.steps, self.truncate

    def _run(self, results: Sequence[str], *inputs: Any) -> tuple[Tensor, ...]:
        """Simulate, and return the trajectories of q and v with copies of some tensors of the contact workspace."""
        q, v, torque, wrenches, *parameters = inputs
        model, batch, rows = self.model, q.shape[0], self._rows
        positions = model.allocator.trajectory(batch, self.steps + 1, model.tree.nq)
        velocities = model.allocator.trajectory(batch, self.steps + 1, model.tree.nv)
        workspace = model.workspaces.borrow(batch, rows, "backward")
        contact_workspace = model.workspaces.borrow(batch, rows, "contacts")
        forces = self._torque(torque, batch, self.steps)

        def arguments() -> list[Any]:
            structs = self._structs(parameters, workspace, model.forces_struct(forces, wrenches), contact_workspace)
            return [*structs, *self._schedule]

        states = (q, v, positions, velocities, contact_workspace.tensors["failed"])
        key, cost = self._key(wrenches, workspace), self._cost(batch, False, self._evaluations)
        self._launch_rollout(self._kernel("rollout"), contact_workspace, key, arguments, {2: forces}, states, cost)
        copies = [contact_workspace.tensors[name].clone() for name in results]
        model.workspaces.give_back(batch, rows, "backward", workspace)
        required_blocks = self._required_blocks(contact_workspace)
        model.workspaces.give_back(batch, rows, "contacts", contact_workspace)
        if required_blocks and model.grow_contacts(batch, required_blocks):
            return self._run(results, *inputs)
        return (positions, velocities, *copies)

    def _required_blocks(self, contact_workspace: Workspace) -> int:
        """Number of blocks that the largest event needs; zero if the workspace has enough, or the device is a GPU."""
        counts, pairs = self.model.counts, self.model.pairs
        if self.model.device.type != "cpu" or pairs is None or counts["contacts"] >= pairs.max_capacity:
            return 0
        return int(contact_workspace.tensors["status.block_count"].max())

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        q, _, torque, wrenches, *parameters = inputs
        positions, velocities, steps, _ = outputs
        model, batch, rows = self.model, positions.shape[0], self._rows
        q_bar, v_bar = (model.allocator.zeros(batch, count) for count in (model.tree.nq, model.tree.nv))
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, self.steps)
        workspace = model.workspaces.borrow(batch, rows, "backward")
        contact_workspace = model.workspaces.borrow(batch, rows, "contacts")
        torque_bar = contact_workspace.tensors["discarded"].expand(-1, self.steps, -1)
        if needed[2] and torque is not None:
            torque_bar = model.allocator.zeros(batch, self.steps, model.forces_per_step)
        forces = self._torque(torque, batch, self.steps)
        parameter_bars: list[Tensor] = []

        def arguments() -> list[Any]:
            bars, tree_bars = model.gradients_struct(batch, torque_bar, wrench_bar, bool(parameters))
            contact_struct, contact_bars = model.contact_gradients_struct(batch, bool(parameters))
            parameter_bars.extend((*tree_bars, *contact_bars))
            structs = self._structs(parameters, workspace, model.forces_struct(forces, wrenches), contact_workspace)
            return [*structs, bars, contact_struct, *self._schedule, self.truncate]

        output_bars = map(zeros_if_none, gradients, (positions, velocities))
        states = (q, positions, velocities, steps[:, 0], *output_bars, q_bar, v_bar)
        key, cost = self._key(wrenches, workspace), self._cost(batch, True, self._evaluations)
        kernel, torques = self._kernel("rollout_backward"), {2: forces, 5: torque_bar}
        self._launch_rollout(kernel, contact_workspace, key, arguments, torques, states, cost)
        model.workspaces.give_back(batch, rows, "backward", workspace)
        model.workspaces.give_back(batch, rows, "contacts", contact_workspace)
        return (q_bar, v_bar, torque_bar, wrench_bar, *parameter_bars)


def contact_geometry(
    model: DeviceModel, q: Tensor, link_parameters: Parameters, contact_parameters: Parameters
) -> dict[str, Tensor]:
    """Separation, contact point and normal of all pairs at q, (batch, pairs, …), without gradients."""
    batch, count, vector = q.shape[0], model.counts["pairs"], model.kernels.ENTRIES["vec3"]
    separation, point, normal = (model.allocator.empty(batch, count, *entry) for entry in ((), (3,), (3,)))
    contact_workspace = model.workspaces.borrow(batch, 1, "contacts")
    structs = [model.tree_struct(link_parameters), model.contacts_struct(contact_parameters, 0, 0.0, 0.0)]
    arguments = [*structs, contact_workspace.struct, argument(q.unsqueeze(1)), argument(separation)]
    arguments += [argument(point, vector), argument(normal, vector)]
    cost = SETTINGS.forward_cost * model.tree.links * batch
    launch(model.kernels.contact_list, batch, arguments, model.device, cost)
    model.workspaces.give_back(batch, 1, "contacts", contact_workspace)
    return {"separation": separation, "point": point, "normal": normal}
