"""The four computations of a tree, each a launch forward and a launch backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import Repeated, argument, is_short, launch
from physvision.physics.articulated.arrays import CONTACT_PARAMETERS, PARAMETERS
from physvision.physics.articulated.compiler.device_model import (
    BACKWARD_COST,
    FORWARD_COST,
    TOUCHING_COST,
    Memory,
    Program,
)
from physvision.physics.articulated.compiler.link_parameters import Parameters
from physvision.physics.articulated.compiler.struct_cache import MOST_OPERATIONS, MOST_OVERLAP, REST_SPEED, Structs
from physvision.physics.articulated.contact import ContactLaw
from physvision.physics.articulated.model.integrators import Integrator


@dataclass(frozen=True, eq=False)
class _Operation(Operation):
    """What they share. With `structs` given, the numbers of the model are constants and no inputs follow them."""

    program: Program
    structs: Structs | None

    def _tree(self, parameters: Tensors) -> Any:
        if self.structs is not None:
            return self.structs.tree
        return self.program.tree(dict(zip(PARAMETERS, parameters, strict=True)))

    def _launch(self, kernel: Any, batch: int, inputs: list[Any], backward: bool, evaluations: int = 1) -> None:
        launch(kernel, batch, inputs, self.program.device, self._cost(batch, backward, evaluations))

    def _cost(self, batch: int, backward: bool, evaluations: int) -> float:
        return (BACKWARD_COST if backward else FORWARD_COST) * evaluations * self.program.model.links * batch

    def _torque(self, torque: Tensor | None, batch: int, steps: int) -> Tensor:
        if torque is not None:
            return torque
        return self.program.zeros(1, 1, 1).expand(batch, steps, self.program.forces_per_step)

    def _outward(self, value: Tensor | None, needed: bool, batch: int, steps: int, *shape: int) -> Tensor:
        """Where the gradient to what acts from outside is summed up: over all steps where nobody asks for it."""
        if needed and value is not None:
            return self.program.zeros(batch, steps, *shape)
        return self.program.zeros(batch, 1, *shape).expand(batch, steps, *shape)

    def _wrench_gradient(self, wrenches: Tensor | None, needed: bool, batch: int, steps: int) -> Tensor | None:
        """The same of wrenches, if there are any."""
        return None if wrenches is None else self._outward(wrenches, needed, batch, steps, self.program.model.bodies, 6)


@dataclass(frozen=True, eq=False)
class Rollout(_Operation):
    """(q, v, torque, wrenches, *parameters) → trajectories of q and v, first bad and first coarse step, coarseness."""

    steps: int
    integrator: Integrator
    substeps: int
    dt: float
    truncate: int
    differentiable = 2

    @property
    def _schedule(self) -> list[Any]:
        return [self.program.schedule(self.integrator, self.substeps, self.dt / self.substeps), self.steps]

    @property
    def _rows(self) -> int:
        return self.integrator.stages * self.substeps + 1

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, v, torque, wrenches, *parameters = inputs
        program, batch = self.program, q.shape[0]
        positions = program.empty_trajectory(batch, self.steps + 1, program.model.nq)
        velocities = program.empty_trajectory(batch, self.steps + 1, program.model.nv)
        bad, coarse = (torch.empty(batch, dtype=torch.int32, device=program.device) for _ in range(2))
        coarseness = torch.empty(batch, dtype=program.dtype, device=program.device)
        work = program.borrow(batch, self._rows, False)
        forces = program.forces(self._torque(torque, batch, self.steps), wrenches)
        states = map(argument, (q, v, positions, velocities, bad, coarse, coarseness))
        arguments = [self._tree(tuple(parameters)), work[0], forces, *self._schedule, *states]
        evaluations = self.steps * (self._rows - 1)
        self._launch(program.kernels.rollout, batch, arguments, False, evaluations)
        program.give(batch, self._rows, False, work)
        return positions, velocities, bad, coarse, coarseness

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        torque, wrenches, *parameters = inputs[2:]
        positions, velocities, bad, _, _ = outputs
        program, batch, model = self.program, positions.shape[0], self.program.model
        bars = [
            argument(torch.zeros((), dtype=like.dtype, device=like.device).expand_as(like) if bar is None else bar)
            for bar, like in zip(gradients, (positions, velocities), strict=True)
        ]
        q_bar, v_bar = program.zeros(batch, model.nq), program.zeros(batch, model.nv)
        torque_bar = self._outward(torque, needed[2], batch, self.steps, program.forces_per_step)
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, self.steps)
        work = program.borrow(batch, self._rows, True)
        forces = program.forces(self._torque(torque, batch, self.steps), wrenches)
        struct, tensors = program.gradients(batch, torque_bar, wrench_bar, bool(parameters))
        states = [*map(argument, (inputs[0], positions, velocities, bad)), *bars, argument(q_bar), argument(v_bar)]
        arguments = [self._tree(tuple(parameters)), work[0], forces, struct, *self._schedule, self.truncate, *states]
        evaluations = self.steps * (self._rows - 1)
        self._launch(program.kernels.rollout_backward, batch, arguments, True, evaluations)
        program.give(batch, self._rows, True, work)
        outward = (torque_bar if needed[2] else None, wrench_bar if needed[3] else None)
        return (q_bar, v_bar, *outward, *tensors)


@dataclass(frozen=True, eq=False)
class ContactRollout(_Operation):
    """(q, v, torque, wrenches, *parameters, *contact parameters) → trajectories of q and v, and what a status tells.

    That is what `program.TOLD` and `program.WORST` name, in columns; the first is the first bad step.
    """

    steps: int
    dt: float
    truncate: int
    law: ContactLaw | None = None  # of contacts that are no events
    integrator: Integrator | None = None  # of a law that has no steps of its own
    substeps: int = 1
    differentiable = 2

    def _kernel(self, name: str) -> Any:
        if self.law is None:
            return getattr(self.program.kernels, f"contact_{name}")
        return getattr(self.program.kernels_of(self.law), name)

    @property
    def _numbers(self) -> list[Any]:
        """The arguments that both launches share behind the memory they work in."""
        method: Any = self.dt
        if self.integrator is not None:
            method = self.program.schedule(self.integrator, self.substeps, self.dt / self.substeps)
        elif self.law is not None:
            method = self.program.law(self.law, self.dt)
        return [method, self.steps]

    @property
    def _stages(self) -> int:
        """How often a step of an integrator asks for the acceleration."""
        return 1 if self.integrator is None else self.integrator.stages * self.substeps

    @property
    def _rows(self) -> int:
        """How many rows the workspace has."""
        return max(MOST_OPERATIONS + 3, self._stages + 1)

    @property
    def _evaluations(self) -> int:
        """How many accelerations without contact take as long as all steps."""
        return TOUCHING_COST * self.steps * self._stages

    def _split(self, parameters: list[Tensor]) -> tuple[Any, Any]:
        if self.structs is not None:
            return self.structs.tree, self.structs.contacts
        count = len(CONTACT_PARAMETERS)
        named = dict(zip(CONTACT_PARAMETERS, parameters[-count:], strict=True))
        contacts = self.program.contacts(named, MOST_OPERATIONS, REST_SPEED, MOST_OVERLAP)
        return self.program.tree(dict(zip(PARAMETERS, parameters[:-count], strict=True))), contacts

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        return self._run(("told", "worst"), *inputs)

    def impulses(self, *inputs: Any) -> Tensor:
        """What the first shape of each pair takes over the last step, (batch, pairs, 3); zero where that failed."""
        _, _, told, pushed = self._run(("told", "pushed"), *inputs)
        return torch.where(told[:, :1, None] < 0, pushed, 0.0)

    def _repeated(self, name: str, memory: Memory, same: tuple, batch: int, arguments: Callable[[], list]) -> Repeated:
        """The launch that was made last with this memory, if it is the same one, or a new one."""
        known = memory.launches.get(name)
        if known is not None and len(known[0]) == len(same) and all(map(_is_same, known[0], same)):
            return known[1]
        made = Repeated(self._kernel(name), batch, arguments(), self.program.device)
        memory.launches[name] = same, made
        return made

    def _run(self, wanted: Sequence[str], *inputs: Any) -> tuple[Tensor, ...]:
        """Trajectories of q and v, and what is wanted of the kernels' memory."""
        q, v, torque, wrenches, *parameters = inputs
        program, batch, rows = self.program, q.shape[0], self._rows
        positions = program.empty_trajectory(batch, self.steps + 1, program.model.nq)
        velocities = program.empty_trajectory(batch, self.steps + 1, program.model.nv)
        work = program.borrow(batch, rows, True)
        memory = program.borrow_contacts(batch, rows)
        pull = self._torque(torque, batch, self.steps)

        def arguments() -> list[Any]:
            tree, contacts = self._split(parameters)
            forces = program.forces(pull, wrenches)
            states = map(argument, (q, v, positions, velocities, memory.tensors["told"][:, 0]))
            return [tree, work.struct, forces, contacts, memory.struct, *self._numbers, *states]

        if self._may_repeat(wrenches, batch, False):
            same = (
                work,
                self.structs,
                self.law,
                self.integrator,
                self.dt,
                self.steps,
                q.stride(),
                v.stride(),
                pull.stride(),
            )
            repeated = self._repeated("rollout", memory, same, batch, arguments)
            repeated.move(2, pull, "torque")
            for at, tensor in zip((-5, -4, -3, -2), (q, v, positions, velocities), strict=True):
                repeated.move(at, tensor)
            repeated.run()
        else:
            self._launch(self._kernel("rollout"), batch, arguments(), False, self._evaluations)
        found = [memory.tensors[name].clone() for name in wanted]
        program.give(batch, rows, True, work)
        program.give(batch, rows, "contacts", memory)
        return (positions, velocities, *found)

    def _may_repeat(self, wrenches: Tensor | None, batch: int, backward: bool) -> bool:
        if self.structs is None or wrenches is not None:
            return False
        return is_short(batch, self._cost(batch, backward, self._evaluations), self.program.device)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        start, _, torque, wrenches, *parameters = inputs
        positions, velocities, told, _ = outputs
        program, batch, model = self.program, positions.shape[0], self.program.model
        bars = [
            torch.zeros((), dtype=like.dtype, device=like.device).expand_as(like) if bar is None else bar.detach()
            for bar, like in zip(gradients, (positions, velocities), strict=True)
        ]
        q_bar, v_bar = program.zeros(batch, model.nq), program.zeros(batch, model.nv)
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, self.steps)
        rows = self._rows
        work = program.borrow(batch, rows, True)
        memory = program.borrow_contacts(batch, rows)
        torque_bar = memory.tensors["unasked"].expand(-1, self.steps, -1)
        if needed[2] and torque is not None:
            torque_bar = program.zeros(batch, self.steps, program.forces_per_step)
        pull = self._torque(torque, batch, self.steps)
        tensors: list[Tensor] = []
        states = (start, positions, velocities, told[:, 0], *bars, q_bar, v_bar)

        def arguments() -> list[Any]:
            struct, found = program.gradients(batch, torque_bar, wrench_bar, bool(parameters))
            touch, touch_found = program.contact_gradients(batch, bool(parameters))
            tensors.extend((*found, *touch_found))
            tree, contacts = self._split(parameters)
            memories = [tree, work.struct, program.forces(pull, wrenches), contacts, memory.struct, struct, touch]
            return [*memories, *self._numbers, self.truncate, *map(argument, states)]

        if self._may_repeat(wrenches, batch, True):
            strides = (pull.stride(), torque_bar.stride(), *(each.stride() for each in states))
            same = (work, self.structs, self.law, self.integrator, self.dt, self.steps, self.truncate, strides)
            repeated = self._repeated("rollout_backward", memory, same, batch, arguments)
            repeated.move(2, pull, "torque")
            repeated.move(5, torque_bar, "torque")
            for back, tensor in enumerate(states):
                repeated.move(back - len(states), tensor)
            repeated.run()
        else:
            self._launch(self._kernel("rollout_backward"), batch, arguments(), True, self._evaluations)
        program.give(batch, rows, True, work)
        program.give(batch, rows, "contacts", memory)
        outward = (torque_bar if needed[2] else None, wrench_bar if needed[3] else None)
        return (q_bar, v_bar, *outward, *tensors)


def _is_same(one: Any, other: Any) -> bool:
    """Whether they are one object, or equal numbers."""
    return one is other or (type(one) in (int, float, tuple) and one == other)


def contact_list(program: Program, q: Tensor, parameters: Parameters, pairs: Parameters) -> dict[str, Tensor]:
    """Gap, point and normal of all pairs at q, (batch, pairs, …), without gradients."""
    batch, vector = q.shape[0], program.kernels.ENTRIES["vec3"]
    count = program.counts["pairs"]
    gap, point, normal = (program.empty(batch, count, *entry) for entry in ((), (3,), (3,)))
    memory = program.borrow_contacts(batch, 1)
    inputs = [program.tree(parameters), program.contacts(pairs, 0, 0.0, 0.0), memory[0], argument(q.unsqueeze(1))]
    inputs += [argument(gap), argument(point, vector), argument(normal, vector)]
    launch(program.kernels.contact_list, batch, inputs, program.device, FORWARD_COST * program.model.links * batch)
    program.give(batch, 1, "contacts", memory)
    return {"gap": gap, "point": point, "normal": normal}


@dataclass(frozen=True, eq=False)
class Acceleration(_Operation):
    """(q, v, torque, wrenches, *parameters) → q̈."""

    differentiable = 1

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, v, torque, wrenches, *parameters = inputs
        program, batch = self.program, q.shape[0]
        work = program.borrow(batch, 1, False)
        _fill(work, q=q, v=v)
        forces = program.forces(self._torque(torque, batch, 1), wrenches)
        arguments = [self._tree(tuple(parameters)), work[0], forces]
        self._launch(program.kernels.accelerations, batch, arguments, False)
        found = work[1]["a"][:, 0].clone()
        program.give(batch, 1, False, work)
        return (found,)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        q, v, torque, wrenches, *parameters = inputs
        program, batch, model = self.program, q.shape[0], self.program.model
        work = program.borrow(batch, 1, True)
        _fill(work, q=q, v=v, a_bar=gradients[0])
        q_bar, v_bar = program.zeros(batch, model.nq), program.zeros(batch, model.nv)
        torque_bar = self._outward(torque, needed[2], batch, 1, program.forces_per_step)
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, 1)
        forces = program.forces(self._torque(torque, batch, 1), wrenches)
        struct, tensors = program.gradients(batch, torque_bar, wrench_bar, bool(parameters))
        arguments = [self._tree(tuple(parameters)), work[0], forces, struct, argument(q_bar), argument(v_bar)]
        self._launch(program.kernels.accelerations_backward, batch, arguments, True)
        program.give(batch, 1, True, work)
        outward = (torque_bar if needed[2] else None, wrench_bar if needed[3] else None)
        return (q_bar, v_bar, *outward, *tensors)


@dataclass(frozen=True, eq=False)
class InverseDynamics(_Operation):
    """(q, v, a, wrenches, *parameters) → torque."""

    differentiable = 1

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, v, a, wrenches, *parameters = inputs
        program, batch = self.program, q.shape[0]
        work = program.borrow(batch, 1, False)
        _fill(work, q=q, v=v, a=a)
        torque = program.empty(batch, program.model.nv)
        forces = program.forces(self._torque(None, batch, 1), wrenches)
        arguments = [self._tree(tuple(parameters)), work[0], forces, argument(torque)]
        self._launch(program.kernels.inverse_dynamics, batch, arguments, False)
        program.give(batch, 1, False, work)
        return (torque,)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        q, v, a, wrenches, *parameters = inputs
        program, batch, model = self.program, q.shape[0], self.program.model
        work = program.borrow(batch, 1, True)
        _fill(work, q=q, v=v, a=a)
        bars = [program.zeros(batch, count) for count in (model.nq, model.nv, model.nv)]
        wrench_bar = self._wrench_gradient(wrenches, needed[3], batch, 1)
        forces = program.forces(self._torque(None, batch, 1), wrenches)
        struct, tensors = program.gradients(
            batch, program.zeros(batch, 1, program.forces_per_step), wrench_bar, bool(parameters)
        )
        arguments = [
            self._tree(tuple(parameters)),
            work[0],
            forces,
            struct,
            argument(gradients[0]),
            *map(argument, bars),
        ]
        self._launch(program.kernels.inverse_dynamics_backward, batch, arguments, True)
        program.give(batch, 1, True, work)
        return (*bars, wrench_bar if needed[3] else None, *tensors)


@dataclass(frozen=True, eq=False)
class LinkPoses(_Operation):
    """(q, *parameters) → rotations (link to world) and positions of all links."""

    differentiable = 2

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, *parameters = inputs
        program, batch = self.program, q.shape[0]
        work = program.borrow(batch, 1, False)
        _fill(work, q=q)
        rotation = program.empty(batch, program.model.links, 3, 3)
        position = program.empty(batch, program.model.links, 3)
        entries = program.kernels.ENTRIES
        poses = [argument(rotation, entries["mat33"]), argument(position, entries["vec3"])]
        arguments = [self._tree(tuple(parameters)), work[0], *poses]
        self._launch(program.kernels.link_poses, batch, arguments, False)
        program.give(batch, 1, False, work)
        return rotation, position

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        q, *parameters = inputs
        rotation, position = outputs
        program, batch, model = self.program, q.shape[0], self.program.model
        work = program.borrow(batch, 1, True)
        _fill(work, q=q)
        bars = [
            torch.zeros_like(like) if bar is None else bar.contiguous()
            for bar, like in zip(gradients, (rotation, position), strict=True)
        ]
        q_bar = program.zeros(batch, model.nq)
        struct, tensors = program.gradients(
            batch,
            program.zeros(batch, 1, program.forces_per_step),
            None,
            bool(parameters),
        )
        kernels, entries = program.kernels, program.kernels.ENTRIES
        poses = [argument(value, entries["mat33"]) for value in (rotation, bars[0])]
        poses.append(argument(bars[1], entries["vec3"]))
        arguments = [self._tree(tuple(parameters)), work[0], *poses, argument(q_bar), struct]
        self._launch(kernels.link_poses_backward, batch, arguments, True)
        program.give(batch, 1, True, work)
        return (q_bar, *tensors)


def _fill(work: Memory, **rows: Tensor) -> None:
    """Put what the kernels read into the first row of the workspace."""
    for name, value in rows.items():
        work[1][name][:, 0] = value
