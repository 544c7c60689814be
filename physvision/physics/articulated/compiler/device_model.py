"""What the kernels need beside the numbers of a call: the model's integers, workspaces, precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from physvision.kernels import precision
from physvision.kernels.launching import Repeated, Shelf, fill
from physvision.kernels.layout import ArrayField
from physvision.physics.articulated.arrays import (
    BACKWARD_MEMORY,
    CONTACT_MEMORY,
    CONTACT_PARAMETERS,
    FORWARD_MEMORY,
    PARAMETERS,
    SHAPE_TANGENTS,
    TANGENT_GRADIENTS,
)
from physvision.physics.articulated.compiler.contact_pairs import Pairs
from physvision.physics.articulated.compiler.link_parameters import Packing, Parameters
from physvision.physics.articulated.contact import ContactLaw
from physvision.physics.articulated.model.integrators import Integrator
from physvision.physics.articulated.model.kinematic_tree import Model

_KERNELS = "physvision.physics.articulated.kernels"

_FRICTION_VELOCITY = 1e-2
# Of a rollout's memory with contacts, for the status: whole numbers, behind the first bad step, and real ones.
TOLD = ("grazing", "crowded", "softened")
WORST = ("residual", "overlap")

_KEPT_SIZES = 8  # of batches whose workspaces are kept for the next call

# Microseconds a link costs on one core, for the choice of how many threads to use.
FORWARD_COST, BACKWARD_COST = 0.15, 0.3
# Accelerations that a step with contact takes as long as.
TOUCHING_COST = 6


class Memory(NamedTuple):
    """What one launch works in.

    Attributes:
        struct: of the kernels.
        tensors: behind the struct, by name.
        launches: the last ones that were made with it and may be made again, by kernel, with what makes them the same.
    """

    struct: Any
    tensors: dict[str, Tensor]
    launches: dict[str, tuple[tuple, Repeated]]


@dataclass(eq=False)
class Program:
    """A model's integers, constant poses and idle workspaces for one dtype on one device."""

    model: Model
    dtype: torch.dtype
    device: torch.device
    pairs: Pairs | None = None

    def __post_init__(self) -> None:
        self.kernels = precision.load(_KERNELS, self.dtype, *(self.pairs.parts if self.pairs is not None else ()))
        self.packing = Packing(self.model, self.dtype, self.device)
        model = self.model
        self.parent, self.joint, self.first_position, self.first_velocity, self.body_link, self.servo = (
            torch.as_tensor(values, dtype=torch.int32, device=self.device)
            for values in (
                model.parent,
                model.kind,
                model.first_position,
                model.first_velocity,
                model.body_link,
                model.servo,
            )
        )
        spinner = self.pairs.spinner if self.pairs is not None else []
        self.spinner = torch.as_tensor(spinner, dtype=torch.int32, device=self.device)
        varying = self.pairs.varying if self.pairs is not None else []
        self.varying = torch.as_tensor(varying, dtype=torch.int32, device=self.device)
        self.root = torch.as_tensor(model.root, dtype=torch.int32, device=self.device)
        self.couplings = {
            "coupling_source": torch.as_tensor(model.coupling_source, dtype=torch.int32, device=self.device),
            "coupling_target": torch.as_tensor(model.coupling_target, dtype=torch.int32, device=self.device),
            "coupling_gain": torch.as_tensor(model.coupling_gain, dtype=self.dtype, device=self.device),
        }
        self.counts = {
            "links": model.links,
            "bodies": model.bodies,
            "positions": model.nq,
            "velocities": model.nv,
            "transmissions": 0,
        }
        if self.pairs is not None:
            self.counts |= self.pairs.counts
            self.pair_table = self.pairs.table(self.dtype, self.device)
        self.axes = torch.as_tensor(model.axes, dtype=self.dtype, device=self.device)
        self._schedules: dict[tuple[Integrator, int, float], Any] = {}
        self.shelf = Shelf()
        self._idle: dict[tuple, list[Memory]] = {}

    def tree(self, parameters: Parameters, springs: bool = True, rubs: bool = True) -> Any:
        """The kernels' `Tree` over these parameters, which must stay alive as long as it is used."""
        kernels, model = self.kernels, self.model
        tree = kernels.TreeStruct()
        tree.links, tree.positions, tree.velocities, tree.bodies = model.links, model.nq, model.nv, model.bodies
        for name in ("parent", "joint", "first_position", "first_velocity", "body_link", "servo", "root"):
            fill(tree, name, getattr(self, name))
        # Where contact is by events, dry friction is a row of its problem.
        smooth = rubs and not (self.pairs is not None and self.pairs.beside.rubbing.size)
        tree.friction_velocity, tree.rubs, tree.springs = _FRICTION_VELOCITY, int(smooth), int(springs)
        tree.spinners, tree.varying = self.spinner.numel(), self.varying.numel()
        fill(tree, "spinner", self.spinner)
        fill(tree, "varying_root", self.varying)
        tree.couplings, tree.dragged = len(model.coupling_source), int(model.drag_axes is not None)
        for name, value in self.couplings.items():
            fill(tree, name, value)
        for name, value in parameters.items():
            self._fill(tree, name, PARAMETERS[name], value)
        return tree

    @property
    def forces_per_step(self) -> int:
        """Numbers that act from outside in a step: a force for each velocity, and a pull along each transmission."""
        return self.model.nv + self.counts["transmissions"]

    def schedule(self, integrator: Integrator, substeps: int, h: float) -> Any:
        """The kernels' `Schedule` of a step made of substeps of length `h`."""
        key = (integrator, substeps, h)
        if key in self._schedules:
            return self._schedules[key]
        schedule = self.kernels.ScheduleStruct()
        schedule.h, schedule.substeps, schedule.stages = h, substeps, integrator.stages
        schedule.drag_interval = h if integrator.implicit_drag else 0.0
        schedule.share = integrator.share
        for name, row in (("reach", integrator.reach), ("weight", integrator.weight)):
            fill(schedule, name, torch.tensor(row, dtype=self.dtype, device=self.device))
        self._schedules[key] = schedule
        return schedule

    def _fill(self, struct: Any, name: str, field: ArrayField, value: Tensor) -> None:
        fill(struct, name, value, self.kernels.ENTRIES[field.entry])

    def gradients(self, batch: int, torque: Tensor, wrenches: Tensor | None, wanted: bool) -> tuple[Any, list[Tensor]]:
        """The kernels' `Gradients`, and the tensors behind it that belong to parameters, zero."""
        gradients = self.kernels.GradientsStruct()
        gradients.wanted = int(wanted)
        fill(gradients, "torque", torque)
        if wrenches is not None:
            self._fill_wrench(gradients, wrenches)
        if not wanted:
            return gradients, []
        tensors = {}
        for name, field in (PARAMETERS | TANGENT_GRADIENTS).items():
            tensors[name] = self.zeros(batch, *field.shape(self.counts))
            self._fill(gradients, name, field, tensors[name])
        return gradients, [tensors[name] for name in PARAMETERS]

    def contacts(self, parameters: Parameters, operations: int, rest_speed: float, overlap: float) -> Any:
        """The kernels' `Contacts` over these parameters, which must stay alive as long as it is used."""
        assert self.pairs is not None
        contacts = self.kernels.ContactsStruct()
        contacts.shapes, contacts.pairs, contacts.capacity = self.pairs.shapes, self.pairs.count, self.pairs.capacity
        for name in ("groups", "limits", "candidates", "transmissions", "ties", "beside"):
            setattr(contacts, name, self.counts[name])
        contacts.operations, contacts.rest_speed, contacts.overlap = operations, rest_speed, overlap
        for name, value in self.pair_table.items():
            fill(contacts, name, value, self.kernels.ENTRIES["vec3"] if value.dim() > 1 else None)
        for name, value in parameters.items():
            self._fill(contacts, name, CONTACT_PARAMETERS[name], value)
        return contacts

    def kernels_of(self, law: ContactLaw) -> Any:
        """Load the module of kernels of a contact law."""
        return precision.load_module(law.kernels, self.dtype, *(self.pairs.parts if self.pairs is not None else ()))

    def law(self, law: ContactLaw, dt: float) -> Any:
        """Return the kernels' struct `Law` of a contact law, for steps of length `dt`."""
        struct = self.kernels_of(law).Law()
        for name, value in (law.parameters | {"dt": dt}).items():
            setattr(struct, name, value)
        return struct

    def contact_gradients(self, batch: int, wanted: bool) -> tuple[Any, list[Tensor]]:
        """The kernels' `ContactGradients`, and the tensors behind it that belong to parameters, zero."""
        gradients = self.kernels.ContactGradientsStruct()
        gradients.wanted = int(wanted)
        if not wanted:
            return gradients, []
        tensors = {}
        for name, field in (CONTACT_PARAMETERS | SHAPE_TANGENTS).items():
            tensors[name] = self.zeros(batch, *field.shape(self.counts))
            self._fill(gradients, name, field, tensors[name])
        return gradients, [tensors[name] for name in CONTACT_PARAMETERS]

    def forces(self, torque: Tensor, wrenches: Tensor | None) -> Any:
        """The kernels' `Forces`."""
        forces = self.kernels.ForcesStruct()
        fill(forces, "torque", torque)
        forces.wrenches = int(wrenches is not None)
        if wrenches is not None:
            self._fill_wrench(forces, wrenches)
        return forces

    def _fill_wrench(self, struct: Any, wrenches: Tensor) -> None:
        vector = self.kernels.ENTRIES["vec3"]
        fill(struct, "push", wrenches[..., :3], vector)
        fill(struct, "twist", wrenches[..., 3:], vector)

    def zeros(self, batch: int, *shape: int) -> Tensor:
        """Zeros, worlds innermost in memory on a GPU, where neighbouring threads then read neighbouring numbers."""
        return self._allocated(torch.zeros, batch, *shape)

    def empty(self, batch: int, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Memory as in `zeros`, not filled."""
        return self._allocated(torch.empty, batch, *shape, dtype=dtype)

    def empty_trajectory(self, batch: int, times: int, count: int) -> Tensor:
        """Memory for a trajectory, worlds innermost on a GPU."""
        if self.device.type == "cpu":
            return self.empty(batch, times, count)
        return torch.empty(times, count, batch, dtype=self.dtype, device=self.device).permute(2, 0, 1)

    def _allocated(self, make: Any, batch: int, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        dtype = dtype or self.dtype
        if self.device.type == "cpu" or not shape:
            return make(batch, *shape, dtype=dtype, device=self.device)
        # Entries of vectors and matrices stay whole.
        return make(shape[0], batch, *shape[1:], dtype=dtype, device=self.device).transpose(0, 1)

    def borrow(self, batch: int, rows: int, backward: bool) -> Memory:
        """A workspace that no other launch uses; give it back with `give`."""
        idle = self._idle.setdefault((batch, rows, backward), [])
        return idle.pop() if idle else self.workspace(batch, rows, backward)

    def borrow_contacts(self, batch: int, rows: int) -> Memory:
        """Memory for contacts that no other launch uses."""
        idle = self._idle.setdefault((batch, rows, "contacts"), [])
        return idle.pop() if idle else self._contact_memory(batch, rows)

    def give(self, batch: int, rows: int, kind: bool | str, memory: Memory) -> None:
        """Take back what was lent. On a GPU the launch may still run, so it is left to torch's allocator.

        Args:
            batch: number of worlds that it was lent for.
            rows: number of evaluations.
            kind: "contacts", or of a workspace whether it serves backward.
            memory: what was lent.
        """
        if self.device.type == "cpu":
            self._idle.setdefault((batch, rows, kind), []).append(memory)
            while len(self._idle) > _KEPT_SIZES:
                del self._idle[next(iter(self._idle))]

    def workspace(self, batch: int, rows: int, backward: bool) -> Memory:
        """Memory for a launch of its own, and the tensors in it."""
        work = self.kernels.WorkspaceStruct()
        held: dict[str, Tensor] = {}
        counts = self.counts | {"evaluations": rows}
        for name, field in (FORWARD_MEMORY | (BACKWARD_MEMORY if backward else {})).items():
            held[name] = self.empty(batch, *field.shape(counts))
            self._fill(work, name, field, held[name])
        for name, columns in (("axis_angular", self.axes[:, :3]), ("axis_linear", self.axes[:, 3:])):
            held[name].copy_(columns.expand(batch, -1, -1))
        return Memory(work, held, {})

    def _contact_memory(self, batch: int, rows: int) -> Memory:
        memory, held = self.kernels.ContactMemoryStruct(), {}
        counts = self.counts | {"evaluations": rows}
        # What is told of a whole rollout lies in columns of two tensors, which are copied whole.
        held["told"] = self._allocated(torch.empty, batch, 1 + len(TOLD), dtype=torch.int32)
        held["unasked"] = self.zeros(
            batch, 1, self.forces_per_step
        )  # where a gradient to forces goes that nobody wants
        held["worst"] = self.empty(batch, len(WORST))
        columns = {name: held["told"][:, 1 + k] for k, name in enumerate(TOLD)}
        columns |= {name: held["worst"][:, k] for k, name in enumerate(WORST)}
        for name, field in CONTACT_MEMORY.items():
            if name in columns:
                held[name] = columns[name]
            elif field.entry == "whole":  # counts of placements begin at zero, and none is known
                held[name] = self._allocated(torch.zeros, batch, *field.shape(counts), dtype=torch.int32)
            else:
                held[name] = self.empty(batch, *field.shape(counts))
            self._fill(memory, name, field, held[name])
        return Memory(memory, held, {})
