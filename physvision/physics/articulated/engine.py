"""Engine for trees of rigid bodies in reduced coordinates: time stepping and contact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.functional import pad

from physvision.core import InputError, ShapeError, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.kernels import batched_function
from physvision.physics.articulated import autograd
from physvision.physics.articulated.compiler.device_model import DeviceModel
from physvision.physics.articulated.compiler.struct_cache import ModelStructs
from physvision.physics.articulated.contact import (
    Contact,
    ContactList,
    ContactSettings,
    ShapePair,
    contact_settings,
    select_contacts,
)
from physvision.physics.articulated.dynamics import TreeDynamics
from physvision.physics.articulated.launch import TrajectoryLauncher
from physvision.physics.articulated.model.integrators import INTEGRATORS
from physvision.physics.articulated.model.mechanism import Mechanism
from physvision.physics.articulated.penetration import explain_start, fill_in_penetration
from physvision.physics.articulated.settings import SETTINGS
from physvision.physics.energy_check import first_energy_gain, path_energy
from physvision.physics.engine import Overrides
from physvision.physics.entry import engine_entry
from physvision.physics.failures import FailureTexts, is_known_negative
from physvision.physics.feedback import FeedbackSearch


class Articulation(TreeDynamics):
    """Trees of rigid bodies in reduced coordinates; made by `articulated.tree`, `load`, `chain` and other builders.

    Forward dynamics is Featherstone's articulated-body algorithm. Time steps are semi-implicit Euler with implicit
    damping (`integrator="semi_implicit_euler"`, first order, use it by default), or the classical Runge–Kutta method
    (`"runge_kutta_4"`, fourth order, for smooth motion and energy over long horizons), `substeps` of them in a step of
    `dt` seconds. With contact by events, a step consists of flights of second order between impacts, each at its
    exact time. Gradients are implicit: adjoints of the dynamics and of the contact problem at its solution.

    Attributes:
        body_names: Names of the rows of `poses`.
        joint_names: Names of the joints, in the order of the positions.
        geometry: Shapes of the world and of the bodies.
        control_names: Names of the controls.
        keyframes: States of one world by name, float64, from the model file.
        sites: Named points of the model file: row of the body in `poses`, and position in its frame, m.
        held_pairs: Names of the pairs of shapes of the model file that overlap in its reference pose. With contact by
            events they keep that overlap until they separate; `status.penetration` includes it.
    """

    takes_forces = True

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        dt: float,
        integrator: str = "semi_implicit_euler",
        substeps: int = 1,
        contact: Contact | ContactSettings = None,
        shape_pairs: Sequence[ShapePair] | None = None,
    ) -> None:
        """Make an engine of a mechanism.

        Args:
            mechanism: Bodies and whatever acts on them.
            dt: Length of a step, s.
            integrator: Time integrator: "semi_implicit_euler" or "runge_kutta_4".
            substeps: Number of integrator steps in a step of the engine.
            contact: Contact method, or whole settings with friction and restitution; None for no contact.
            shape_pairs: Pairs of shapes that may collide, from a model file; None for all that no joint connects.
        """
        settings = contact_settings(contact)
        if integrator not in INTEGRATORS:
            raise InputError(f"integrator: expected one of {', '.join(INTEGRATORS)}, got {integrator!r}")
        default = (integrator, substeps) == ("semi_implicit_euler", 1)
        if settings.method is not None and settings.compliant_law is None and not default:
            raise InputError(
                "integrator, substeps: with contact they are used by compliant contact only, leave them out; got "
                f"{integrator!r}, {substeps}"
            )
        super().__init__(mechanism, settings, shape_pairs)
        self.dt, self.integrator = check_positive("dt", dt), integrator
        self.substeps = check_count("substeps", substeps)
        self.keyframes: dict[str, State] = {}
        self.held_pairs: tuple[tuple[str, str], ...] = ()

    def extra_repr(self) -> str:
        """Sizes, step and integrator, for `print(engine)`."""
        return (
            f"bodies={self.model.bodies}, nq={self.nq}, nv={self.nv}, nu={self.nu}, dt={self.dt:g}, {self.integrator}"
        )

    @engine_entry
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
            state: Initial state of every world; its dtype is that of the computation.
            steps: Number of steps, at least 1.
            controls: Controls, held over each step, (batch, steps, nu); None for zero.
            properties: Leaves that override the engine's own, shared or per world.
            truncate: Number of steps after which the gradient of a state is cut: at every step that is a multiple.
            wrenches: Force (N) and torque (N m) on each body at its center of mass, in the world's axes,
                (batch, steps, bodies, 6).
        """
        self._check_rollout(state, steps, controls, truncate)
        wrenches = self._check_wrenches(state, steps, wrenches)
        return self._report(self._simulate(state, steps, controls, properties, truncate, wrenches), properties)

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
        in_contact, horizon = self._pairs is not None, truncate or 0
        model, structs, parameters = self._model_and_parameters(state, properties, contacts=in_contact)
        if in_contact:
            operation = self._contact_rollout(model, structs, steps, horizon)
        else:
            integrator = INTEGRATORS[self.integrator]
            operation = autograd.Rollout(model, structs, steps, integrator, self.substeps, self.dt, horizon)
        if forces is not None and controls is None:
            controls = state.v.new_zeros(state.batch, steps, self.nu)
        torque = self._generalized_forces(controls)
        if forces is not None and torque is not None:
            torque = torque + pad(forces, (0, torque.shape[-1] - self.nv))
        q, v, *report = batched_function.apply(operation, state.q, state.v, torque, wrenches, *parameters.values())
        if not in_contact:
            return Trajectory(q, v, rollout_status(*report), self.dt)
        check = None
        if self.contact.law is None and wrenches is None and not self.rows["transmissions"]:
            # The status may outlive the motion: it keeps numbers, not the graph behind them.
            path = Trajectory(q.detach(), v.detach(), None, self.dt)
            check = partial(self._first_energy_gain, path, None if torque is None else torque.detach(), properties)
        return Trajectory(q, v, contact_status(*report, first_energy_gain=check), self.dt)

    def _report(self, trajectory: Trajectory, properties: Overrides) -> Trajectory:
        status = trajectory.status
        assert status is not None
        if self.contact.by_events and not (
            status.is_pending or status.converged.is_cuda or is_functorch_wrapped_tensor(status.converged)
        ):
            trajectory = fill_in_penetration(self, trajectory, properties)
        return super()._report(trajectory, properties)

    def _explain_failure(self, trajectory: Trajectory, properties: Overrides) -> FailureTexts:
        return explain_start(self, trajectory, properties) if self.contact.by_events else FailureTexts()

    @torch.no_grad()
    def _first_energy_gain(self, path: Trajectory, torque: Tensor | None, properties: Overrides) -> Tensor:
        """First step after which the energy has grown beyond the work of generalized forces, -1 for none, (batch,)."""
        kinetic, potential = path_energy(lambda part: self.energy(part, properties), path)
        work: Tensor | float = 0.0
        if torque is not None:
            before, after = (path.q[:, part].flatten(0, 1) for part in (slice(-1), slice(1, None)))
            moved = self.difference(before, after).unflatten(0, (path.batch, path.steps))
            work = (torque[..., : self.nv] * moved).abs().sum(-1)
        resting = 0.5 * SETTINGS.restitution_threshold**2 * float(self._own_properties().mass.sum())
        return first_energy_gain(kinetic, potential, work, resting)

    def _contact_rollout(
        self, model: DeviceModel, structs: ModelStructs | None, steps: int, truncate: int
    ) -> autograd.ContactRollout:
        law = self.contact.law
        if self.contact.compliant_law is None:
            return autograd.ContactRollout(model, structs, steps, self.dt, truncate, law)
        integrator = INTEGRATORS[self.integrator]
        return autograd.ContactRollout(model, structs, steps, self.dt, truncate, law, integrator, self.substeps)

    def _step_with_force(
        self, state: State, force: Tensor, control: Tensor | None, properties: Overrides
    ) -> Trajectory:
        controls = None if control is None else control.unsqueeze(1)
        return self._simulate(state, 1, controls, properties, None, forces=force.unsqueeze(1))

    @torch.no_grad()
    def linearize(
        self,
        state: State | Trajectory,
        control: Float[Tensor, "batch *steps nu"] | None = None,
        properties: Overrides = None,
    ) -> tuple[Float[Tensor, "batch *steps twice_nv twice_nv"], Float[Tensor, "batch *steps twice_nv nu"]]:
        """Derivatives of a step, or of all steps of a trajectory in one launch; with contact as in `Engine`."""
        if self._pairs is not None:
            return super().linearize(state, control, properties)
        if isinstance(state, State):
            path = Trajectory(state.q[:, None].expand(-1, 2, -1), state.v[:, None].expand(-1, 2, -1), None, self.dt)
            A, B = self.linearize(path, None if control is None else control.unsqueeze(1), properties)
            return A[:, 0], B[:, 0]
        start = state.state(0)
        self._check_rollout(start, state.steps, control, None)
        launcher = self._launcher(start, properties)
        q, control_map = launcher.model.link_parameters.normalize(state.q), self._control_map(state.q)
        used = q.new_zeros(state.batch, state.steps, self.nu) if control is None else control
        A, B = launcher.linearize(q, state.v, control_map.forces(used))
        return A, control_map.chain(B, used)

    @torch.no_grad()
    def _rollout_feedback(
        self, start: State, search: FeedbackSearch, properties: Overrides
    ) -> tuple[Trajectory, Tensor]:
        """Rollout under feedback in one launch; step by step with contact."""
        if self._pairs is not None:
            return super()._rollout_feedback(start, search, properties)
        launcher = self._launcher(start, properties, len(search.step_sizes))
        q = launcher.model.link_parameters.normalize(start.q)
        q, v, controls = launcher.rollout_feedback((q, start.v), search, self._control_map(q))
        return Trajectory(q, v, None, self.dt), controls

    def _launcher(self, start: State, properties: Overrides, copies: int = 1) -> TrajectoryLauncher:
        """Launcher for adjacent copies of each world."""
        worlds, per_world = start, False
        if properties is not None:
            properties = self.checked(properties, start.batch, start.q.device)
            per_world = bool(properties.per_world(self.properties))
            if per_world and copies > 1:
                properties, worlds = properties.repeat(copies, self.properties), start.repeat(copies)
        model, structs, parameters = self._model_and_parameters(worlds, properties)
        tree = model.tree_struct(parameters) if structs is None else structs.tree
        integrator = INTEGRATORS[self.integrator]
        return TrajectoryLauncher(model, tree, structs or parameters, integrator, self.substeps, self.dt, not per_world)

    @torch.no_grad()
    def resolve_penetration(self, state: State) -> State:
        """Find a nearby state without penetration and within joint limits.

        Penetrating shapes are pushed apart without gravity, friction and momentum, in proportion to their mobility;
        velocities stay. Penetrations below a micrometer may remain. There are no gradients.

        Raises:
            InputError: The penetration of a world could not be resolved.
        """
        if self._pairs is None:
            return state
        self._check_state(state)
        cache = self._cache(state.q)
        model = cache.device_model
        separating_step, check = (autograd.ContactRollout(model, part, 1, self.dt, 0) for part in cache.forceless)
        q, zero_velocity = model.link_parameters.normalize(state.q).clone(), torch.zeros_like(state.v)
        rows = torch.arange(state.batch, device=q.device)
        for _ in range(SETTINGS.max_separation_iterations):
            before = q[rows]
            displacement = self.difference(
                before, separating_step.forward(before, zero_velocity[rows], None, None)[0][:, -1]
            )
            largest = displacement.abs().amax(-1, keepdim=True)
            moves = largest[:, 0] > SETTINGS.min_separation_step
            if not bool(moves.any()):
                break
            # Normals and levers are those before the displacement, so it must be short.
            q[rows] = self.integrate(before, displacement * (SETTINGS.max_separation_step / largest).clamp(max=1.0))
            rows = rows[moves]
        failed = check.forward(q, zero_velocity, None, None)[2][:, 0]
        if bool((failed >= 0).any()):
            worlds = torch.nonzero(failed >= 0).flatten().tolist()
            raise InputError(
                f"resolve_penetration: the penetration of worlds {worlds} could not be resolved; start from other "
                "positions"
            )
        return State(q, state.v)

    def contact_forces(
        self, state: State, control: Float[Tensor, "batch nu"] | None = None, properties: Overrides = None
    ) -> tuple[Tensor, Tensor]:
        """Points of contact of one world, m, and the mean forces there over a step with this control, N.

        Without `control` the controls are zero: servos then drive their joints to zero, so pass those of the step.

        Raises:
            ShapeError: There are several worlds; `contacts` lists those of a batch, with their bodies.
        """
        self._check_state(state)
        if state.batch != 1:
            raise ShapeError(f"state: expected one world, got {state.batch}; `contacts` lists those of a batch")
        if self._pairs is None or self._pairs.count == 0:
            return super().contact_forces(state, control, properties)
        listed = self.contacts(state, control, properties)
        mask = listed.present[0]
        return listed.point[0][mask], listed.impulse[0][mask] / self.dt

    @torch.no_grad()
    def contacts(
        self,
        state: State | Trajectory,
        control: Float[Tensor, "batch *steps nu"] | None = None,
        properties: Overrides = None,
        max_separation: float = 1e-6,
    ) -> ContactList:
        """List the contacts of states, and those that occur in a step from them, without gradients.

        Args:
            state: State of every world, or a trajectory, for the contacts of all its steps, (batch, steps, …).
            control: Control over the step, on which the impulses depend; zero by default, to which servos then drive
                their joints. For a trajectory (batch, steps, nu).
            properties: Properties as in `rollout`.
            max_separation: Largest separation of a pair that is listed, m.
        """
        if self._pairs is None or self._pairs.count == 0:
            raise InputError("contacts: no shapes can collide in this engine; make it with contact and shapes")
        if isinstance(state, Trajectory):
            batch, steps = state.batch, state.steps
            self._check_rollout(state.state(0), steps, control, None)
            known = None if properties is None else self.checked(properties, batch).repeat(steps, self.properties)
            flat = self.contacts(
                state[:-1].flatten(), None if control is None else control.flatten(0, 1), known, max_separation
            )
            return flat.unflatten(batch, steps)
        self._check_state(state)
        controls = None if control is None else control.unsqueeze(1)
        self._check_controls(state, 1, controls)
        cache = self._cache(state.q)
        model, cast_properties = cache.device_model, self._cast(state, properties)
        q = model.link_parameters.normalize(state.q)
        link_parameters, contact_parameters = cache.rollout_parameters(cast_properties, state.batch)
        values = self._pair_geometry(state, cast_properties) | {"friction": contact_parameters["pairs.friction"]}
        inputs = (self._generalized_forces(controls), None, *link_parameters.values(), *contact_parameters.values())
        values["impulse"] = self._contact_rollout(model, None, 1, 0).impulses(q, state.v, *inputs)
        # A state that is not finite touches nothing.
        lost = ~(q.isfinite().all(1) & state.v.isfinite().all(1))
        values["separation"] = values["separation"].masked_fill(lost[:, None], torch.inf)
        values["impulse"] = values["impulse"].masked_fill(lost[:, None, None], 0.0)
        rows = {name: row.to(q.device) for name, row in self._pairs.list_rows(self.geometry).items()}
        return select_contacts(max_separation, rows, values)


def rollout_status(failed: Tensor, underresolved: Tensor, error: Tensor) -> Status:
    """Status of a rollout without contact.

    Args:
        failed: First step at which a world stops being finite, −1 for none, (batch,).
        underresolved: First step that does not resolve the motion, −1 for none, (batch,).
        error: Largest integration error relative to the velocities, (batch,).
    """

    def make() -> Status:
        residual = torch.where(failed < 0, error, torch.inf)
        return Status(failed < 0, residual, torch.ones_like(failed), failed, first_underresolved_step=underresolved)

    return Status.deferred(make) if is_known_negative(failed) and is_known_negative(underresolved) else make()


def contact_status(steps: Tensor, worst: Tensor, first_energy_gain: Callable[[], Tensor] | None = None) -> Status:
    """Status of a rollout with contact.

    Args:
        steps: First failed step, then the columns `workspace.STEP_COLUMNS`, (batch, columns).
        worst: Columns `workspace.WORST_COLUMNS`, (batch, columns).
        first_energy_gain: Function that returns the first step after which the energy has grown, -1 for none, (batch,).
    """

    def make() -> Status:
        failed, grazing_step, fallback, regularized = steps.unbind(1)
        residual, penetration = worst.unbind(1)
        residual = torch.where(failed < 0, residual, torch.inf)
        details = {"first_grazing_step": grazing_step, "regularized_impacts": regularized, "penetration": penetration}
        status = Status(failed < 0, residual, torch.ones_like(failed), failed, fallback, **details)
        if first_energy_gain is None or is_functorch_wrapped_tensor(steps):
            return status
        return status.with_energy_check(first_energy_gain)

    return Status.deferred(make) if is_known_negative(steps, 0) else make()
