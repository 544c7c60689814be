"""What the kernels need beside the numbers of a call: the model's integers, workspaces, precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from physvision.kernels import precision
from physvision.kernels.launching import array
from physvision.physics.articulated.model import Model
from physvision.physics.articulated.packing import Packing, Parameters

_KERNELS = "physvision.physics.articulated.kernels"

# Fields of the workspace: what one entry is, and whether there is one a link or one a velocity.
_ENTRIES = {"scalar": (), "vec3": (3,), "mat33": (3, 3)}
_FORWARD = {
    "mat33 links": "rotation inertia_angular inertia_coupling inertia_linear orientation",
    "vec3 links": "offset joint_angular joint_linear bias_angular bias_linear angular linear angular_acceleration "
    "linear_acceleration moment force wrench_moment wrench_force",
    "vec3 velocities": "column_angular column_linear",
    "scalar velocities": "pivot rest drag",
}
_BACKWARD = {
    "vec3 links": "turning virtual_angular virtual_linear velocity_bar_angular velocity_bar_linear "
    "acceleration_bar_angular acceleration_bar_linear virtual_bar_angular virtual_bar_linear",
    "scalar velocities": "multiplier",
}
INTEGRATORS = {"semi_implicit_euler": 1, "runge_kutta_4": 4}  # evaluations of the dynamics a substep
_FRICTION_VELOCITY = 1e-2
_KEPT_SIZES = 8  # of batches whose workspaces are kept for the next call

# Microseconds a link costs on one core, for the choice of how many threads to use.
FORWARD_COST, BACKWARD_COST = 0.15, 0.3


@dataclass(eq=False)
class Program:
    """A model's integers, constant poses and idle workspaces for one dtype on one device."""

    model: Model
    dtype: torch.dtype
    device: torch.device

    def __post_init__(self) -> None:
        self.kernels = precision.load(_KERNELS, self.dtype)
        self.packing = Packing(self.model, self.dtype, self.device)
        model = self.model
        self.parent, self.joint, self.first_position, self.first_velocity, self.body_link = (
            torch.as_tensor(values, dtype=torch.int32, device=self.device)
            for values in (model.parent, model.kind, model.first_position, model.first_velocity, model.body_link)
        )
        self.axes = torch.as_tensor(model.axes, dtype=self.dtype, device=self.device)
        self._idle: dict[tuple, list[tuple[Any, dict[str, Tensor]]]] = {}

    def tree(self, parameters: Parameters, springs: bool = True, rubs: bool = True) -> Any:
        """The kernels' `Tree` over these parameters, which must stay alive as long as it is used."""
        kernels, model = self.kernels, self.model
        tree = kernels.Tree()
        tree.links, tree.positions, tree.velocities, tree.bodies = model.links, model.nq, model.nv, model.bodies
        for name in ("parent", "joint", "first_position", "first_velocity", "body_link"):
            setattr(tree, name, array(getattr(self, name)))
        tree.friction_velocity, tree.rubs, tree.springs = _FRICTION_VELOCITY, int(rubs), int(springs)
        for name, value in parameters._asdict().items():
            setattr(tree, name, array(value, self.entry(name, value)))
        return tree

    def entry(self, name: str, value: Tensor) -> Any:
        """The kernels' type of one entry of a parameter."""
        if name in ("moment", "center", "offset", "gravity", "turn"):
            return self.kernels.vec3
        return self.kernels.mat33 if value.dim() == 4 else self.kernels.scalar

    def gradients(
        self, batch: int, torque: Tensor, wrenches: Tensor, wanted: bool
    ) -> tuple[Any, Parameters | tuple[()]]:
        """The kernels' `Gradients`, and the tensors behind it that belong to parameters, zero."""
        gradients = self.kernels.Gradients()
        gradients.wanted = int(wanted)
        gradients.torque = array(torque)
        gradients.push = array(wrenches[..., :3], self.kernels.vec3)
        gradients.twist = array(wrenches[..., 3:], self.kernels.vec3)
        if not wanted:
            return gradients, ()
        model, links = self.model, self.model.links
        shapes = {
            "mass": (links,), "moment": (links, 3), "center": (model.bodies, 3), "inertia": (links, 3, 3),
            "rotation": (links, 3, 3), "offset": (links, 3), "stiffness": (links,), "reference": (model.nq,),
            "damping": (model.nv,), "armature": (model.nv,), "friction": (model.nv,), "gravity": (3,),
            "turn": (links, 3),
        }  # fmt: skip
        tensors = {name: self.zeros(batch, *shape) for name, shape in shapes.items()}
        for name, tensor in tensors.items():
            setattr(gradients, name, array(tensor, self.entry(name, tensor)))
        del tensors["turn"]
        return gradients, Parameters(**tensors)

    def forces(self, torque: Tensor, wrenches: Tensor | None) -> Any:
        """The kernels' `Forces`."""
        forces = self.kernels.Forces()
        forces.torque = array(torque)
        forces.wrenches = int(wrenches is not None)
        if wrenches is not None:
            forces.push = array(wrenches[..., :3], self.kernels.vec3)
            forces.twist = array(wrenches[..., 3:], self.kernels.vec3)
        return forces

    def zeros(self, batch: int, *shape: int) -> Tensor:
        """Zeros, worlds innermost in memory on a GPU, where neighbouring threads then read neighbouring numbers."""
        return self._allocated(torch.zeros, batch, *shape)

    def empty(self, batch: int, *shape: int) -> Tensor:
        """Memory as in `zeros`, not filled."""
        return self._allocated(torch.empty, batch, *shape)

    def empty_trajectory(self, batch: int, times: int, count: int) -> Tensor:
        """Memory for a trajectory, worlds innermost on a GPU."""
        if self.device.type == "cpu":
            return self.empty(batch, times, count)
        return torch.empty(times, count, batch, dtype=self.dtype, device=self.device).permute(2, 0, 1)

    def _allocated(self, make: Any, batch: int, *shape: int) -> Tensor:
        if self.device.type == "cpu" or not shape:
            return make(batch, *shape, dtype=self.dtype, device=self.device)
        # Entries of vectors and matrices stay whole.
        return make(shape[0], batch, *shape[1:], dtype=self.dtype, device=self.device).transpose(0, 1)

    def borrow(self, batch: int, rows: int, backward: bool) -> tuple[Any, dict[str, Tensor]]:
        """A workspace that no other launch uses, and its tensors that hold states; give it back with `give`."""
        idle = self._idle.setdefault((batch, rows, backward), [])
        return idle.pop() if idle else self._workspace(batch, rows, backward)

    def give(self, batch: int, rows: int, backward: bool, workspace: tuple[Any, dict[str, Tensor]]) -> None:
        """Take back what `borrow` lent. On a GPU the launch may still run, so it is left to torch's allocator."""
        if self.device.type == "cpu":
            self._idle.setdefault((batch, rows, backward), []).append(workspace)
            while len(self._idle) > _KEPT_SIZES:
                del self._idle[next(iter(self._idle))]

    def _workspace(self, batch: int, rows: int, backward: bool) -> tuple[Any, dict[str, Tensor]]:
        model, kernels = self.model, self.kernels
        work = kernels.Workspace()
        held: dict[str, Tensor] = {}
        counts = {"links": model.links, "velocities": model.nv}
        for fields in (_FORWARD, _BACKWARD) if backward else (_FORWARD,):
            for heading, names in fields.items():
                entry, count = heading.split()
                for name in names.split():
                    held[name] = self.empty(batch, counts[count], *_ENTRIES[entry])
                    setattr(work, name, array(held[name], getattr(kernels, entry)))
        for name, columns in (("axis_angular", self.axes[:, :3]), ("axis_linear", self.axes[:, 3:])):
            held[name] = self.empty(batch, model.nv, 3)
            held[name].copy_(columns.expand(batch, -1, -1))
            setattr(work, name, array(held[name], kernels.vec3))
        numbers = {"q": model.nq, "v": model.nv, "a": model.nv}
        if backward:
            numbers |= {"q_bar": model.nv, "v_bar": model.nv, "a_bar": model.nv}
        for name, count in numbers.items():
            held[name] = self.empty(batch, rows, count)
            setattr(work, name, array(held[name]))
        return work, held
