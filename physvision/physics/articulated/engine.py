"""A tree of rigid bodies as an Engine."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.functional import pad

from physvision.core import InputError, State, Status, Trajectory
from physvision.core.checks import check_like, check_shape, check_tensor
from physvision.kernels import batched_function
from physvision.physics.articulated import autograd
from physvision.physics.articulated.contact import ContactList, nearest
from physvision.physics.articulated.launch import Stepping
from physvision.physics.articulated.model.integrators import INTEGRATORS
from physvision.physics.articulated.model.kinematic_tree import Model
from physvision.physics.articulated.tree_engine import TreeEngine
from physvision.physics.engine import Overrides
from physvision.physics.feedback import Bounds, Plan
from physvision.physics.properties import Properties

PUSHES = 200  # steps in which `separated` pushes apart
STILL = 1e-9  # m or rad by which a push moves something, at least
FARTHEST = 0.1  # m or rad by which it does at most


class Articulation(TreeEngine):
    """Trees of rigid bodies in reduced coordinates; made by `articulated.tree`, `load`, `chain` and their like.

    Time steps are semi-implicit Euler with drag taken implicitly (`integrator="semi_implicit_euler"`), or the
    classical fourth-order Runge–Kutta method (`"runge_kutta_4"`), `substeps` of them to a step of `dt` seconds.

    Attributes:
        body_names: names of the rows of `poses`.
        joint_names: names of what moves, in the order of positions.
        geometry: what the bodies look like, for the camera.
        control_names: names of the controls.
        keyframes: states of one world by name, float64, where the model's file has some.
    """

    takes_forces = True

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Overrides = None,
        truncate: int | None = None,
        wrenches: Float[Tensor, "batch steps bodies 6"] | None = None,
    ) -> Trajectory:
        """Simulate `steps` steps in one launch.

        Args:
            state: where every world starts; its dtype is that of the computation.
            steps: how many steps, at least 1.
            controls: held over each step, (batch, steps, nu); None for zero.
            properties: leaves that override the engine's own, shared or one a world.
            truncate: backward, the gradient of a state reaches at most so many steps into the past: the chain is cut
                at every step whose number it divides.
            wrenches: force (N) and torque (N m) on each body, at its centre of mass, in the world's axes,
                (batch, steps, bodies, 6).
        """
        self._check_rollout(state, steps, controls, truncate)
        wrenches = _checked_wrenches(self.model, state, steps, wrenches)
        return self._reported(self._simulate(state, steps, controls, properties, truncate, wrenches))

    def _simulate(
        self,
        state: State,
        steps: int,
        controls: Tensor | None,
        properties: Overrides,
        truncate: int | None,
        wrenches: Tensor | None = None,
        forces: Tensor | None = None,
    ) -> Trajectory:
        touching, horizon = self._pairs is not None, truncate or 0
        program, structs, parameters = self._prepared_for(state, properties, contacts=touching)
        if touching:
            operation = autograd.ContactRollout(program, structs, steps, self.dt, horizon, **self._method)
        else:
            scheme = INTEGRATORS[self.integrator]
            operation = autograd.Rollout(program, structs, steps, scheme, self.substeps, self.dt, horizon)
        if forces is not None and controls is None:
            controls = state.v.new_zeros(state.batch, steps, self.nu)
        torque = self._torque(controls)
        if forces is not None and torque is not None:
            torque = torque + pad(forces, (0, torque.shape[-1] - self.nv))
        q, v, *found = batched_function.apply(operation, state.q, state.v, torque, wrenches, *parameters.values())
        return Trajectory(q, v, _contact_status(*found) if touching else _status(*found), self.dt)

    def _pushed(self, state: State, force: Tensor, control: Tensor | None, properties: Overrides) -> Trajectory:
        controls = None if control is None else control.unsqueeze(1)
        return self._simulate(state, 1, controls, properties, None, forces=force.unsqueeze(1))

    @torch.no_grad()
    def linearize(
        self,
        state: State | Trajectory,
        control: Float[Tensor, "batch *steps nu"] | None = None,
        properties: Overrides = None,
    ) -> tuple[Float[Tensor, "batch *steps twice_nv twice_nv"], Float[Tensor, "batch *steps twice_nv nu"]]:
        """Derivatives of a step, or of all steps of a trajectory, in one launch; through contacts as any engine's."""
        if self._pairs is not None:
            return super().linearize(state, control, properties)
        if isinstance(state, State):
            path = Trajectory(state.q[:, None].expand(-1, 2, -1), state.v[:, None].expand(-1, 2, -1), None, self.dt)
            A, B = self.linearize(path, None if control is None else control.unsqueeze(1), properties)
            return A[:, 0], B[:, 0]
        start = state.state(0)
        self._check_rollout(start, state.steps, control, None)
        stepping = self._stepping(start, properties)
        q, actuation = stepping.program.packing.normalized(state.q), self._actuation(state.q)
        used = q.new_zeros(state.batch, state.steps, self.nu) if control is None else control
        A, B = stepping.linearize(q, state.v, actuation.forces(used))
        return A, actuation.slopes(B, used)

    @torch.no_grad()
    def _follow(
        self, start: State, plan: Plan, bounds: Bounds, change: Tensor, shares: Tensor, properties: Overrides
    ) -> tuple[Trajectory, Tensor]:
        """In one launch; step by step where there are contacts."""
        if self._pairs is not None:
            return super()._follow(start, plan, bounds, change, shares, properties)
        stepping = self._stepping(start, properties, len(shares))
        q = stepping.program.packing.normalized(start.q)
        positions, velocities, controls = stepping.follow(q, start.v, plan, bounds, change, shares, self._actuation(q))
        return Trajectory(positions, velocities, None, self.dt), controls

    def _stepping(self, start: State, properties: Overrides, copies: int = 1) -> Stepping:
        """How so many copies of each world are stepped, next to each other."""
        worlds, apart = start, False
        if properties is not None:
            properties = self.checked(properties, start.batch, start.q.device)
            apart = bool(properties.per_world(self.properties))
            if apart and copies > 1:
                properties, worlds = properties.repeat(copies, self.properties), start.repeat(copies)
        program, structs, parameters = self._prepared_for(worlds, properties)
        tree, held = (program.tree(parameters), parameters) if structs is None else (structs.tree, structs)
        return Stepping(program, tree, held, INTEGRATORS[self.integrator], self.substeps, self.dt, not apart)

    @torch.no_grad()
    def separated(self, state: State, properties: Overrides = None) -> State:
        """A state near this one in which shapes do not overlap and joints are within their limits.

        What overlaps is pushed apart without weight, friction and momentum, heavy bodies least; velocities stay as they
        are. Overlaps of less than a thousandth of a millimetre may be left. Without gradients.

        Raises:
            InputError: a world could not be freed of its overlaps.
        """
        if self._pairs is None:
            return state
        self._check_state(state)
        prepared = self._prepare(state.q)
        program, forceless = prepared.program, prepared.forceless
        if properties is not None:
            forceless = prepared.without_forces(self._cast(state, properties), state.batch)
        push, step = (autograd.ContactRollout(program, each, 1, self.dt, 0) for each in forceless)
        q, still = program.packing.normalized(state.q).clone(), torch.zeros_like(state.v)
        rows = torch.arange(state.batch, device=q.device)
        for _ in range(PUSHES):
            there = q[rows]
            moved = self.difference(there, push.forward(there, still[rows], None, None)[0][:, -1])
            farthest = moved.abs().amax(-1, keepdim=True)
            moves = farthest[:, 0] > STILL
            if not bool(moves.any()):
                break
            # Normals and levers are those from before the push.
            q[rows] = self.integrate(there, moved * (FARTHEST / farthest).clamp(max=1.0))
            # Properties of their own belong to all worlds.
            rows = rows[moves] if properties is None else rows
        bad = step.forward(q, still, None, None)[2][:, 0]
        if bool((bad >= 0).any()):
            worlds = torch.nonzero(bad >= 0).flatten().tolist()
            raise InputError(f"separated: worlds {worlds} could not be freed of their overlaps; start them elsewhere")
        return State(q, state.v)

    @torch.no_grad()
    def contacts(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Overrides = None,
        within: float = 1e-6,
    ) -> ContactList:
        """What touches in these states, or comes to touch in a step from them; without gradients.

        Args:
            state: where every world is.
            control: held over the step, which the impulses depend on.
            properties: as in `rollout`.
            within: pairs no farther apart than this are listed, m.
        """
        if self._pairs is None or self._pairs.count == 0:
            raise InputError("contacts: nothing can touch in this engine; make it with contact and shapes")
        self._check_state(state)
        controls = None if control is None else control.unsqueeze(1)
        self._check_controls(state, 1, controls)
        prepared = self._prepare(state.q)
        program, known = prepared.program, self._cast(state, properties)
        q = program.packing.normalized(state.q)
        parameters, pairs = (make(known, state.batch) for make in (prepared.tree_numbers, prepared.contact_numbers))
        values = autograd.contact_list(program, q, parameters, pairs) | {"friction": pairs["friction"]}
        step = autograd.ContactRollout(program, None, 1, self.dt, 0, **self._method)
        inputs = (*parameters.values(), *pairs.values())
        values["impulse"] = step.impulses(q, state.v, self._torque(controls), None, *inputs)
        rows = {name: row.to(q.device) for name, row in self._pairs.numbers(self.geometry).items()}
        return nearest(within, rows, values)

    def acceleration(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Overrides = None,
        wrenches: Float[Tensor, "batch bodies 6"] | None = None,
    ) -> Float[Tensor, "batch nv"]:
        """Forward dynamics: rad/s² and m/s², without what contacts, dry friction and transmissions do."""
        self._check_state(state)
        controls = None if control is None else control.unsqueeze(1)
        self._check_controls(state, 1, controls)
        program, structs, parameters = self._prepared_for(state, properties)
        (acceleration,) = batched_function.apply(
            autograd.Acceleration(program, structs),
            program.packing.normalized(state.q),
            state.v,
            self._torque(controls),
            _checked_wrenches(self.model, state, 1, None if wrenches is None else wrenches.unsqueeze(1)),
            *parameters.values(),
        )
        return acceleration

    def inverse_dynamics(
        self,
        state: State,
        acceleration: Float[Tensor, "batch nv"],
        properties: Overrides = None,
        wrenches: Float[Tensor, "batch bodies 6"] | None = None,
    ) -> Float[Tensor, "batch nv"]:
        """The generalised force, N m and N, that this acceleration asks for beside drag, springs and wrenches."""
        self._check_state(state)
        check_shape("acceleration", check_tensor("acceleration", acceleration), (state.batch, self.nv))
        check_like("acceleration", acceleration, "state.q", state.q)
        program, structs, parameters = self._prepared_for(state, properties)
        (torque,) = batched_function.apply(
            autograd.InverseDynamics(program, structs),
            program.packing.normalized(state.q),
            state.v,
            acceleration,
            _checked_wrenches(self.model, state, 1, None if wrenches is None else wrenches.unsqueeze(1)),
            *parameters.values(),
        )
        return torque

    def mass_matrix(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch nv nv"]:
        """Inertia M(q) with armature: column k is the force that accelerates velocity k alone, by one."""
        self._check_state(state)
        unit = torch.eye(self.nv, dtype=state.q.dtype, device=state.q.device).repeat(state.batch, 1)
        program, parameters = self._inertial(state, properties)
        repeated = [parameter.repeat_interleave(self.nv, 0) for parameter in parameters.values()]
        q = program.packing.normalized(state.q).repeat_interleave(self.nv, 0)
        (columns,) = batched_function.apply(
            autograd.InverseDynamics(program, None), q, torch.zeros_like(unit), unit, None, *repeated
        )
        return columns.reshape(state.batch, self.nv, self.nv).mT

    def _energy(self, state: State, properties: Properties) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        program, parameters = self._inertial(state, properties)
        q = program.packing.normalized(state.q)
        (momentum,) = batched_function.apply(
            autograd.InverseDynamics(program, None), q, torch.zeros_like(state.v), state.v, None, *parameters.values()
        )
        kinetic = (momentum * state.v).sum(-1) / 2
        p = self._cast(state, properties)
        poses = self._poses(state, properties)
        centers = poses[..., :3, 3] + (poses[..., :3, :3] @ p.center_of_mass.unsqueeze(-1)).squeeze(-1)
        weight = -(p.mass.unsqueeze(-1) * centers * p.gravity.unsqueeze(-2)).sum((-1, -2))
        away = self._manifold.difference(program.packing.normalized(p.spring_reference).expand_as(q), q)
        counts = torch.as_tensor(np.diff(self.model.first_velocity), device=q.device)
        stiffness = p.joint_stiffness.repeat_interleave(counts, -1)
        return kinetic, weight + (stiffness * away * away).sum(-1) / 2

    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        program, structs, parameters = self._prepared_for(state, properties)
        rotation, position = batched_function.apply(
            autograd.LinkPoses(program, structs), program.packing.normalized(state.q), *parameters.values()
        )
        prepared = self._prepare(state.q)
        own = self._are_own(properties)
        placed = prepared.placed if own else program.packing.bodies_in_links(self._cast(state, properties))
        return program.packing.body_poses(placed, rotation, position)

    def _appearance(
        self, state: State, properties: Properties
    ) -> tuple[Float[Tensor, "batch shapes 4 4"], Float[Tensor, "batch shapes 3"]]:
        p = self._cast(state, properties)
        bodies = self._poses(state, properties)
        # Row 0 is the world, the bodies follow.
        world = torch.eye(4, dtype=bodies.dtype, device=bodies.device).expand(state.batch, 1, 4, 4)
        carriers = torch.cat([world, bodies], 1)
        rows = [0 if placed.body is None else placed.body + 1 for placed in self.geometry]
        return carriers[:, rows] @ p.shape_pose, p.shape_size.expand(state.batch, -1, -1)


def _checked_wrenches(model: Model, state: State, steps: int, wrenches: Tensor | None) -> Tensor | None:
    if wrenches is not None:
        check_like("wrenches", check_tensor("wrenches", wrenches), "state.q", state.q)
        check_shape("wrenches", wrenches, (state.batch, steps, model.bodies, 6))
    return wrenches


def _status(bad: Tensor, coarse: Tensor, coarseness: Tensor) -> Status:
    """A world fails where numbers stop being finite; where its steps are too coarse for its motion, that is named."""

    def made() -> Status:
        residual = torch.where(bad < 0, coarseness, torch.inf)
        return Status(bad < 0, residual, torch.ones_like(bad), bad, first_underresolved_step=coarse)

    return Status.deferred(made) if _are_none(bad) and _are_none(coarse) else made()


def _contact_status(told: Tensor, worst: Tensor) -> Status:
    """The status from what `autograd.ContactRollout` tells of each world."""

    def made() -> Status:
        failed, grazing, fallback, regularized = told.unbind(1)
        residual, penetration = worst.unbind(1)
        residual = torch.where(failed < 0, residual, torch.inf)
        more = {"first_grazing_step": grazing, "regularized_impacts": regularized, "penetration": penetration}
        return Status(failed < 0, residual, torch.ones_like(failed), failed, fallback, **more)

    return Status.deferred(made) if _are_none(told, 0) else made()


def _are_none(steps: Tensor, *column: int) -> bool:
    """Whether it is known without waiting that no world names a step, of a table those in a column."""
    if steps.is_cuda or is_functorch_wrapped_tensor(steps) or not len(steps):
        return False
    named = steps.numpy()[(slice(None), *column)]
    # Of few numbers Python finds the largest in a fifth of the time that numpy takes.
    return (max(named.tolist()) if len(named) < 32 else int(named.max())) < 0
