"""Dynamics and kinematics of trees of rigid bodies at single states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.core import Appearance, InputError, State
from physvision.core.checks import check_count, check_like, check_shape, check_tensor
from physvision.core.visuals import NO_VISUALS, Visuals
from physvision.kernels import batched_function
from physvision.kernels.launching import inside_vmap, outside_transforms
from physvision.physics.articulated import autograd
from physvision.physics.articulated.compiler.device_model import DeviceModel
from physvision.physics.articulated.compiler.link_parameters import LinkParameters, Parameters
from physvision.physics.articulated.compiler.mechanism import compile_mechanism
from physvision.physics.articulated.compiler.mobility import compute_mobilities
from physvision.physics.articulated.compiler.properties import property_constraints
from physvision.physics.articulated.compiler.struct_cache import ModelStructs, StructCache
from physvision.physics.articulated.contact import ContactSettings, ShapePair
from physvision.physics.articulated.launch import ControlMap
from physvision.physics.articulated.model.manifold import ConfigurationManifold
from physvision.physics.articulated.model.mechanism import Mechanism
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.articulated.skeleton import shapeless_bodies, skeleton
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.physics.properties import Constraint, Properties


class TreeDynamics(MechanicalEngine):
    """Forward and inverse dynamics, energy and kinematics of a tree; `Articulation` adds time stepping and contact.

    Attributes:
        model: Kinematic tree of the bodies.
        contact: Contact settings.
        control_names: Names of the controls.
        visual_source: Function that reads the visuals of a model file when they are first drawn; None without a file.
    """

    visual_source: Callable[[], Visuals] | None = None

    def __init__(self, mechanism: Mechanism, contact: ContactSettings, shape_pairs: Sequence[ShapePair] | None) -> None:
        super().__init__()
        compiled = compile_mechanism(mechanism, contact, shape_pairs)
        self.contact, self.model, self.geometry = contact, compiled.tree, compiled.geometry
        self.rows, self.control_names = compiled.row_names, compiled.control_names
        self.nq, self.nv, self.nu = self.model.nq, self.model.nv, len(compiled.control_names)
        self.body_names, self.joint_names = self.model.body_names, self.model.joint_names
        self._pairs, self._friction_velocities = compiled.pairs, compiled.friction_velocities
        # The last shapes, and the last bodies.
        self._markers, self._rotors = 2 * len(mechanism.loop_joints), len(mechanism.actuator_states)
        self._manifold = ConfigurationManifold(self.model)
        self._store("start", self.model.initial_q)
        self.set_properties(compiled.properties)
        if self._pairs is not None and contact.compliant_law is not None:
            properties = self._own_properties()
            parameters = LinkParameters(self.model, properties.mass.dtype, properties.mass.device).pack(properties, 1)
            self._pairs.set_compliance(contact.compliant_law, compute_mobilities(self.model, parameters))
        actuators = mechanism.actuators
        self._actuated = actuators is not None
        if actuators is not None:
            self._store("actuator_gain", compiled.insert_friction_columns(actuators.gain))
            self._store("actuator_low", actuators.low)
            self._store("actuator_high", actuators.high)

    def _own_properties(self) -> TreeProperties:
        properties = self.properties
        assert isinstance(properties, TreeProperties)
        return properties

    def _constraints(self, properties: Properties, name: str, value: Tensor) -> list[Constraint]:
        more = property_constraints(self.model, name, value, self.contact, self._friction_velocities)
        return [*super()._constraints(properties, name, value), *more]

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """Initial positions of the joints at rest."""
        q = self.get_buffer("_start").to(dtype)
        return State(q.repeat(check_count("batch", batch), 1), q.new_zeros(batch, self.nv))

    @property
    def control_range(self) -> Float[Tensor, "nu 2"]:
        """Smallest and largest control of each actuator, from the model file; infinite where it has no limits."""
        if not self._actuated:
            return super().control_range
        return torch.stack([self.get_buffer("_actuator_low"), self.get_buffer("_actuator_high")], 1)

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """Position reached from `q` by the displacement `dv`; a quaternion rotates about its own axes."""
        return self._manifold.integrate(q, dv)

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """Displacement from `q0` to `q1` in the tangent space."""
        return self._manifold.difference(q0, q1)

    def acceleration(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Overrides = None,
        wrenches: Float[Tensor, "batch bodies 6"] | None = None,
    ) -> Float[Tensor, "batch nv"]:
        """Forward dynamics, rad/s² and m/s².

        What a step solves together with the motion does not count: contacts, joint limits, dry friction, and
        transmissions such as servos with a limited force.
        """
        self._check_state(state)
        controls = None if control is None else control.unsqueeze(1)
        self._check_controls(state, 1, controls)
        wrenches = self._check_wrenches(state, 1, None if wrenches is None else wrenches.unsqueeze(1))
        model, structs, parameters = self._model_and_parameters(state, properties)
        q, torque = model.link_parameters.normalize(state.q), self._generalized_forces(controls)
        inputs = (q, state.v, torque, wrenches, *parameters.values())
        return batched_function.apply(autograd.Acceleration(model, structs), *inputs)[0]

    def inverse_dynamics(
        self,
        state: State,
        acceleration: Float[Tensor, "batch nv"],
        properties: Overrides = None,
        wrenches: Float[Tensor, "batch bodies 6"] | None = None,
    ) -> Float[Tensor, "batch nv"]:
        """Generalized force, N m and N, for an acceleration, with damping and springs, as MuJoCo's `mj_inverse`.

        Springs and dampers of servos without a limit of force are among those of the joints. Contacts, joint limits,
        dry friction, controls and transmissions do not count.
        """
        self._check_state(state)
        check_shape("acceleration", check_tensor("acceleration", acceleration), (state.batch, self.nv))
        check_like("acceleration", acceleration, "state.q", state.q)
        wrenches = self._check_wrenches(state, 1, None if wrenches is None else wrenches.unsqueeze(1))
        model, structs, parameters = self._model_and_parameters(state, properties)
        q = model.link_parameters.normalize(state.q)
        inputs = (q, state.v, acceleration, wrenches, *parameters.values())
        return batched_function.apply(autograd.InverseDynamics(model, structs), *inputs)[0]

    def mass_matrix(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch nv nv"]:
        """Mass matrix M(q) with armature."""
        self._check_state(state)
        unit = torch.eye(self.nv, dtype=state.q.dtype, device=state.q.device).repeat(state.batch, 1)
        columns = self._forces_at_rest(state, properties, self.nv, unit, None)
        return columns.reshape(state.batch, self.nv, self.nv).mT

    def jacobian(
        self,
        state: State,
        body: str | int,
        point: Sequence[float] | Float[Tensor, "batch 3"] = (0.0, 0.0, 0.0),
        properties: Overrides = None,
    ) -> Float[Tensor, "batch 6 nv"]:
        """Jacobian J of a point of a body: J v is its velocity, and then the body's angular velocity, in world axes.

        Jᵀ w is the generalized force of a force and a torque at the point.

        Args:
            state: Positions of the joints; velocities do not count.
            body: Name of the body, or its row in `poses`.
            point: Point in the body's own frame, m; one for all worlds, or one for each.
            properties: Properties that differ from the engine's own.
        """
        self._check_state(state)
        rows = {name: row for row, name in enumerate(self.body_names)} | {row: row for row in range(self.model.bodies)}
        if body not in rows:
            raise InputError(f"body: expected one of {', '.join(self.body_names)}, or its row, got {body!r}")
        row = rows[body]
        offset = torch.as_tensor(point, dtype=state.q.dtype, device=state.q.device)
        offset = offset.expand(state.batch, 3) if offset.dim() == 1 else offset
        check_shape("point", offset, (state.batch, 3))
        checked = self._cast(state, properties)
        center = checked.center_of_mass.expand(state.batch, self.model.bodies, 3)[:, row]
        lever = (self._poses(state, checked)[:, row, :3, :3] @ (offset - center).unsqueeze(-1)).mT
        # Unit forces and torques at the point, moved to the center of mass, where wrenches act.
        unit = torch.eye(3, dtype=offset.dtype, device=offset.device).expand(state.batch, 3, 3)
        forces = torch.cat([unit, torch.linalg.cross(lever.expand_as(unit), unit)], -1)
        torques = torch.cat([torch.zeros_like(unit), unit], -1)
        selected = functional.one_hot(torch.tensor(row), self.model.bodies).to(offset)
        wrenches = torch.cat([forces, torques], 1).flatten(0, 1)[:, None, None] * selected[:, None]
        unaccelerated = offset.new_zeros(6 * state.batch, self.nv)
        return -self._forces_at_rest(state, checked, 6, unaccelerated, wrenches).reshape(state.batch, 6, self.nv)

    def _forces_at_rest(
        self, state: State, properties: Overrides, count: int, acceleration: Tensor, wrenches: Tensor | None
    ) -> Float[Tensor, "rows nv"]:
        """Forces that accelerate a tree at rest against wrenches, without gravity and springs, `count` rows a world."""
        model, parameters = self._inertial_parameters(state, properties)
        repeated = [parameter.repeat_interleave(count, 0) for parameter in parameters.values()]
        q = model.link_parameters.normalize(state.q).repeat_interleave(count, 0)
        inputs = (q, torch.zeros_like(acceleration), acceleration, wrenches, *repeated)
        return batched_function.apply(autograd.InverseDynamics(model, None), *inputs)[0]

    def _energy(self, state: State, properties: Properties) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        model, parameters = self._inertial_parameters(state, properties)
        q = model.link_parameters.normalize(state.q)
        inputs = (q, torch.zeros_like(state.v), state.v, None, *parameters.values())
        (momentum,) = batched_function.apply(autograd.InverseDynamics(model, None), *inputs)
        kinetic = (momentum * state.v).sum(-1) / 2
        p = self._cast(state, properties)
        poses = self._poses(state, properties)
        centers = poses[..., :3, 3] + (poses[..., :3, :3] @ p.center_of_mass.unsqueeze(-1)).squeeze(-1)
        gravitational = -(p.mass.unsqueeze(-1) * centers * p.gravity.unsqueeze(-2)).sum((-1, -2))
        reference = model.link_parameters.normalize(p.spring_reference).expand_as(q)
        deflection = self._manifold.difference(reference, q)
        counts = torch.as_tensor(np.diff(self.model.first_velocity), device=q.device)
        stiffness = p.joint_stiffness.repeat_interleave(counts, -1)
        return kinetic, gravitational + (stiffness * deflection * deflection).sum(-1) / 2

    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        model, structs, parameters = self._model_and_parameters(state, properties)
        link_parameters = model.link_parameters
        inputs = (link_parameters.normalize(state.q), *parameters.values())
        rotation, position = batched_function.apply(autograd.LinkPoses(model, structs), *inputs)
        if self._are_own(properties):
            placements = self._cache(state.q).placements
        else:
            placements = link_parameters.bodies_in_links(self._cast(state, properties))
        return link_parameters.body_poses(placements, rotation, position)

    def _appearance(self, state: State, properties: Properties) -> Appearance:
        p = self._cast(state, properties)
        bodies = self._poses(state, properties)
        # Row 0 is the world, the bodies follow.
        world = torch.eye(4, dtype=bodies.dtype, device=bodies.device).expand(state.batch, 1, 4, 4)
        carriers = torch.cat([world, bodies], 1)
        rows = [0 if placed.body is None else placed.body + 1 for placed in self.geometry]
        return Appearance(carriers[:, rows] @ p.shape_pose, p.shape_size.expand(state.batch, -1, -1))

    @property
    def visuals(self) -> Visuals:
        """Surfaces and textures of the model file, and rods of bodies without shapes."""
        if "visuals" not in self._cached:
            visuals = NO_VISUALS if self.visual_source is None else self.visual_source()
            shapes = self.geometry[: len(self.geometry) - self._markers]
            shapeless = shapeless_bodies(shapes, visuals, len(self.body_names))
            shapeless[len(self.body_names) - self._rotors :] = False
            if shapeless.any():
                poses = self.poses(self.initial_state(1, torch.float64))[0].cpu().numpy()
                rods = skeleton(self.model.body_parent, poses, self._own_properties(), shapeless)
                visuals = replace(visuals, shapes=(*visuals.shapes, *rods))
            self._cached["visuals"] = visuals
        return self._cached["visuals"]

    def _cache(self, like: Tensor) -> StructCache:
        """Cache for calls in the dtype and on the device of a tensor."""
        key = (like.dtype, like.device)
        if key not in self._cached:
            with outside_transforms():
                properties = self._own_properties().to(like.device, like.dtype)
                self._cached[key] = StructCache(self.model, self._pairs, properties)
        return self._cached[key]

    def _pair_geometry(self, state: State, properties: TreeProperties) -> dict[str, Tensor]:
        """Separation, contact point and normal of all pairs, (batch, pairs, …), without gradients."""
        cache = self._cache(state.q)
        q = cache.device_model.link_parameters.normalize(state.q)
        parameters = cache.link_parameters(properties, state.batch), cache.contact_parameters(properties, state.batch)
        return autograd.contact_geometry(cache.device_model, q, *parameters)

    def _cast(self, state: State, properties: Overrides) -> TreeProperties:
        """Properties in the dtype of the computation; a leaf on another device raises."""
        cast = self.checked(properties, state.batch, state.q.device).to(state.q.dtype)
        assert isinstance(cast, TreeProperties)
        return cast

    def _model_and_parameters(
        self, state: State, properties: Overrides, contacts: bool = False
    ) -> tuple[DeviceModel, ModelStructs | None, Parameters]:
        """Model of a call with ready structs, or with parameters to make them of.

        Structs are ready for the engine's own properties, and for those of the last call if they were checked before
        and need no gradient; but inside a vmap a batch has more worlds than they tell apart.
        """
        cache, batch = self._cache(state.q), state.batch
        if properties is None:
            return cache.device_model, cache.own_structs, {}
        if (
            isinstance(properties, TreeProperties)
            and properties.is_reusable
            and not self._are_mapped(properties, batch)
        ):
            structs = cache.own_structs if self._are_own(properties) else cache.lookup(properties, batch)
            if structs is None:
                with outside_transforms():
                    structs = cache.store(properties, self._cast(state, properties), batch)
            return cache.device_model, structs, {}
        cast = self._cast(state, properties)
        if contacts:
            link_parameters, contact_parameters = cache.rollout_parameters(cast, batch)
            return cache.device_model, None, link_parameters | contact_parameters
        return cache.device_model, None, cache.link_parameters(cast, batch)

    def _are_mapped(self, properties: TreeProperties, batch: int) -> bool:
        """If true, a vmap repeats worlds with different properties."""
        return batch > 1 and inside_vmap() and bool(properties.per_world(self.properties))

    def _inertial_parameters(self, state: State, properties: Overrides) -> tuple[DeviceModel, Parameters]:
        """Parameters of the links without gravity and springs."""
        cache = self._cache(state.q)
        parameters = cache.link_parameters(self._cast(state, properties), state.batch)
        zeros = {name: torch.zeros_like(parameters[name]) for name in ("gravity", "joint_stiffness")}
        return cache.device_model, parameters | zeros

    def _generalized_forces(self, controls: Tensor | None) -> Tensor | None:
        """Forces on velocities, rows of dry friction and transmissions."""
        if controls is None or self._actuated:
            return None if controls is None else self._control_map(controls).forces(controls)
        rows = len(self._friction_velocities)
        if not rows:
            return controls
        zeros = controls.new_zeros(*controls.shape[:-1], rows)
        return torch.cat([controls[..., : self.nv], zeros, controls[..., self.nv :]], -1)

    def _control_map(self, like: Tensor) -> ControlMap:
        """Map from controls to forces in the dtype and on the device of a tensor."""
        key = ("control map", like.dtype, like.device)
        if key not in self._cached:
            with outside_transforms():
                limit = like.new_full((self.nu,), torch.inf)
                gain, low, high = torch.eye(self.nu, dtype=like.dtype, device=like.device), -limit, limit
                if self._actuated:
                    names = ("gain", "low", "high")
                    gain, low, high = (self.get_buffer(f"_actuator_{name}").to(like) for name in names)
                single = self.nu > 0 and bool(((gain != 0).sum(0) <= 1).all())
                driver = gain.abs().argmax(0) if single else None
                self._cached[key] = ControlMap(gain, low, high, not self._actuated, driver)
        return self._cached[key]

    def _check_wrenches(self, state: State, steps: int, wrenches: Tensor | None) -> Tensor | None:
        if wrenches is not None:
            check_like("wrenches", check_tensor("wrenches", wrenches), "state.q", state.q)
            check_shape("wrenches", wrenches, (state.batch, steps, self.model.bodies, 6))
        return wrenches
