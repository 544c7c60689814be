"""Constant arrays of a model on one device, and the structs of the kernels over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from physvision.kernels import precision
from physvision.kernels.launching import LaunchCache, fill
from physvision.physics.articulated.arrays import CONTACT_PARAMETERS, PARAMETERS, SHAPE_TANGENTS, TANGENT_GRADIENTS
from physvision.physics.articulated.compiler.contact_pairs import ContactPairs
from physvision.physics.articulated.compiler.link_parameters import LinkParameters, Parameters
from physvision.physics.articulated.contact import ContactLaw
from physvision.physics.articulated.model.bodies import JOINT_KINDS
from physvision.physics.articulated.model.integrators import Integrator
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.settings import SETTINGS
from physvision.physics.articulated.workspace import Allocator, WorkspacePool

KERNELS = "physvision.physics.articulated.kernels"


@dataclass(eq=False)
class DeviceModel:
    """Kernels, constant arrays and workspaces of a model in one dtype on one device.

    Attributes:
        tree: Kinematic tree.
        dtype: Floating-point type of the computation.
        device: Device of the arrays.
        pairs: Contact problem; None without contact.
        kernels: Module of kernels in this dtype.
        link_parameters: Map from properties to link parameters.
        allocator: Allocator of tensors in this dtype on this device.
        workspaces: Pool of workspaces.
        recorded: Recorded launches of linearizations and feedback rollouts.
    """

    tree: KinematicTree
    dtype: torch.dtype
    device: torch.device
    pairs: ContactPairs | None = None

    def __post_init__(self) -> None:
        tree, pairs = self.tree, self.pairs
        self._kernel_options = pairs.kernel_options if pairs is not None else ()
        self.kernels = precision.load(KERNELS, self.dtype, *self._kernel_options)
        self.link_parameters = LinkParameters(tree, self.dtype, self.device)
        names = (
            "parent",
            "first_position",
            "first_velocity",
            "body_link",
            "root",
            "coupling_source",
            "coupling_target",
        )
        self._tree_arrays = {
            **{name: self._integers(getattr(tree, name)) for name in names},
            "joint": self._integers(tree.kind),
            "servo_link": self._integers(tree.spring_link),
            "centered_link": self._integers(np.flatnonzero(tree.kind == JOINT_KINDS["free"].code)),
            "varying_tree_root": self._integers(pairs.varying_roots if pairs is not None else []),
            "coupling_gain": torch.as_tensor(tree.coupling_gain, dtype=self.dtype, device=self.device),
        }
        self.counts = {
            "links": tree.links,
            "bodies": tree.bodies,
            "positions": tree.nq,
            "velocities": tree.nv,
            "transmissions": 0,
        }
        if pairs is not None:
            self.counts |= pairs.counts
            self._pair_arrays = pairs.arrays(self.dtype, self.device)
            self._none_held = torch.zeros_like(self._pair_arrays["pairs.is_held"])
        subspace = torch.as_tensor(tree.motion_subspace, dtype=self.dtype, device=self.device)
        self.allocator = Allocator(self.dtype, self.device)
        self.workspaces = WorkspacePool(self.kernels, self.allocator, self.counts, subspace)
        self.recorded = LaunchCache()
        self._schedules: dict[tuple[Integrator, int, float], Any] = {}

    def grow_contacts(self, batch: int, required_blocks: int) -> bool:
        """Enlarge the workspaces of later launches to a number of blocks; returns False where memory forbids it.

        Args:
            batch: Number of worlds of the launch.
            required_blocks: Number of blocks that a world needs.
        """
        assert self.pairs is not None
        capacity = min(max(required_blocks, 2 * self.counts["contacts"]), self.pairs.max_capacity)
        entries = capacity * (2 * capacity + 2 * self.tree.nv + self.tree.links)
        # Each takes up to a matrix of three rows.
        if batch * entries * 9 * self.dtype.itemsize > SETTINGS.max_contact_memory or required_blocks > capacity:
            return False
        self.counts["contacts"] = capacity
        self.workspaces.drop("contacts")
        return True

    def _integers(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.int32, device=self.device)

    @property
    def forces_per_step(self) -> int:
        """Number of external forces in a step: one for each velocity and each transmission."""
        return self.tree.nv + self.counts["transmissions"]

    def tree_struct(
        self, parameters: Parameters, springs: bool = True, friction: bool = True, centered: bool = False
    ) -> Any:
        """Struct `Tree` over parameters, which must stay alive as long as it is used.

        Args:
            parameters: Parameters of the links by the names of `arrays.PARAMETERS`.
            springs: If true, the springs of joints exert forces.
            friction: If true, the dry friction of joints exerts forces.
            centered: If true, the origin of a free link may be its center of mass.
        """
        struct, tree = self.kernels.TreeStruct(), self.tree
        struct.links, struct.positions, struct.velocities, struct.bodies = tree.links, tree.nq, tree.nv, tree.bodies
        for name, value in self._tree_arrays.items():
            fill(struct, name, value)
        # With contact by events, dry friction is a row of the contact problem instead.
        smooth = friction and not (self.pairs is not None and self.pairs.scalar_rows.friction_velocities.size)
        struct.dry_friction_velocity, struct.has_dry_friction = SETTINGS.friction_velocity, int(smooth)
        struct.has_springs = int(springs)
        struct.centered_links = self._tree_arrays["centered_link"].numel() if centered else 0
        struct.varying_trees = self._tree_arrays["varying_tree_root"].numel()
        struct.couplings, struct.has_fluid_drag = len(tree.coupling_source), int(tree.drag_axes is not None)
        self._fill(struct, PARAMETERS, parameters)
        return struct

    def contacts_struct(
        self,
        parameters: Parameters,
        max_events: int,
        restitution_threshold: float,
        max_penetration: float,
        holds: bool = True,
    ) -> Any:
        """Struct `ContactModel` over parameters, which must stay alive as long as it is used.

        Args:
            parameters: Parameters of the contact problem by the names of `arrays.CONTACT_PARAMETERS`.
            max_events: Largest number of events in a step.
            restitution_threshold: Approach speed below which an impact has no restitution, m/s.
            max_penetration: Penetration with which a world may start, m.
            holds: If true, pairs that overlap in the reference pose are held as they are.
        """
        assert self.pairs is not None
        struct = self.kernels.ContactModelStruct()
        for name in ("shapes", "pairs", "groups", "limits", "lengths", "transmissions", "equalities"):
            getattr(struct, name).count = self.counts[name]
        struct.candidates, struct.noncontact_blocks = self.counts["candidates"], self.counts["noncontact_blocks"]
        struct.max_blocks, struct.max_events = self.counts["contacts"], max_events
        struct.row_blocks, struct.groups.max_pairs = self.pairs.row_blocks, self.pairs.max_group_pairs
        struct.convex.is_elliptic, struct.convex.friction_ratio = int(self.pairs.is_elliptic), self.pairs.friction_ratio
        struct.restitution_threshold, struct.max_penetration = restitution_threshold, max_penetration
        for name, value in self._pair_arrays.items():
            fill(struct, name, value, self.kernels.ENTRIES["vec3"] if value.dim() > 1 else None)
        if not holds:
            fill(struct, "pairs.is_held", self._none_held)
        self._fill(struct, CONTACT_PARAMETERS, parameters)
        return struct

    def schedule_struct(self, integrator: Integrator, substeps: int, dt: float) -> Any:
        """Struct `Schedule` of a step of `dt` seconds in a number of substeps."""
        key = (integrator, substeps, dt)
        if key not in self._schedules:
            h = dt / substeps
            struct = self.kernels.ScheduleStruct()
            struct.h, struct.substeps, struct.stages = h, substeps, integrator.stages
            struct.drag_interval = h if integrator.implicit_drag else 0.0
            struct.stage_velocity_weight = integrator.position_weight
            for name, row in (("stage_fraction", integrator.stage_offset), ("weight", integrator.weight)):
                fill(struct, name, torch.tensor(row, dtype=self.dtype, device=self.device))
            self._schedules[key] = struct
        return self._schedules[key]

    def law_kernels(self, law: ContactLaw) -> Any:
        """Module of kernels of a contact law, loaded on first use."""
        return precision.load_module(law.kernels, self.dtype, *self._kernel_options)

    def law_struct(self, law: ContactLaw, dt: float) -> Any:
        """Struct `Law` of a contact law, for steps of `dt` seconds."""
        struct = self.law_kernels(law).Law()
        for name, value in (law.parameters | {"dt": dt}).items():
            setattr(struct, name, value)
        return struct

    def forces_struct(self, torque: Tensor, wrenches: Tensor | None) -> Any:
        """Struct `Forces` over generalized forces and wrenches."""
        struct = self.kernels.ForcesStruct()
        fill(struct, "torque", torque)
        struct.has_wrenches = int(wrenches is not None)
        self._fill_wrenches(struct, wrenches)
        return struct

    def gradients_struct(
        self, batch: int, torque: Tensor, wrenches: Tensor | None, needed: bool
    ) -> tuple[Any, list[Tensor]]:
        """Struct `Gradients`, and the zeroed tensors behind it that belong to parameters.

        Args:
            batch: Number of worlds.
            torque: Tensor for the gradient to generalized forces.
            wrenches: Tensor for the gradient to wrenches; None without wrenches.
            needed: If true, the gradients to parameters are computed.
        """
        struct = self.kernels.GradientsStruct()
        struct.is_requested = int(needed)
        fill(struct, "torque", torque)
        self._fill_wrenches(struct, wrenches)
        return struct, self._zero_gradients(struct, batch, PARAMETERS, TANGENT_GRADIENTS) if needed else []

    def contact_gradients_struct(self, batch: int, needed: bool) -> tuple[Any, list[Tensor]]:
        """Struct `ContactGradients`, and the zeroed tensors behind it that belong to parameters."""
        struct = self.kernels.ContactGradientsStruct()
        struct.is_requested = int(needed)
        return struct, self._zero_gradients(struct, batch, CONTACT_PARAMETERS, SHAPE_TANGENTS) if needed else []

    def _zero_gradients(self, struct: Any, batch: int, table: dict, tangents: dict) -> list[Tensor]:
        fields = table | tangents
        tensors = {name: self.allocator.zeros(batch, *field.shape(self.counts)) for name, field in fields.items()}
        self._fill(struct, fields, tensors)
        return [tensors[name] for name in table]

    def _fill(self, struct: Any, table: dict, tensors: Parameters) -> None:
        for name, value in tensors.items():
            fill(struct, name, value, self.kernels.ENTRIES[table[name].entry])

    def _fill_wrenches(self, struct: Any, wrenches: Tensor | None) -> None:
        if wrenches is not None:
            vector = self.kernels.ENTRIES["vec3"]
            fill(struct, "body_force", wrenches[..., :3], vector)
            fill(struct, "body_moment", wrenches[..., 3:], vector)
