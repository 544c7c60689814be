"""Base classes of engines: physics engines, learned baselines and hybrids of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor

from physvision.core import Appearance, Placed, State, Status, Trajectory, UnsupportedError
from physvision.core.checks import check_count, check_like, check_shape, check_tensor
from physvision.core.visuals import NO_VISUALS, Visuals
from physvision.physics.entry import engine_entry
from physvision.physics.failures import FailureTexts, mark_unresolved, warn_of_failures
from physvision.physics.feedback import ControlBounds, FeedbackPolicy, FeedbackSearch, control_bounds
from physvision.physics.properties import Constraint, Properties

Overrides = Properties | Mapping[str, Tensor] | None
Energies = tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]  # kinetic and potential, J

MAX_LINEARIZED_VELOCITIES = 2000  # the matrix then has 16 million numbers


class Engine(nn.Module):
    """A model of motion on a fixed grid of times: state `k` is the state at `k · dt`.

    A subclass sets `nq`, `nv`, `nu` and `dt`, and defines `_simulate`, `initial_state` and `properties`. Where
    positions are not a vector space (quaternions), it also overrides `integrate` and `difference`.

    Attributes:
        nq: Number of position coordinates.
        nv: Number of velocity coordinates.
        nu: Number of controls.
        dt: Time between two states, s.
        rows: Names of the rows of each dimension of the properties.
        takes_forces: If true, a generalized force can be given beside the controls, as a `Hybrid` does.
        control_names: Names of the controls; empty where they have none.
    """

    nq: int
    nv: int
    nu: int
    dt: float
    rows: dict[str, Sequence[str]]
    takes_forces: bool = False
    control_names: Sequence[str] = ()

    def __init__(self) -> None:
        super().__init__()
        self._status: Status | None = None
        self._warned = False
        self.rows = {}

    @property
    def status(self) -> Status | None:
        """Status of the last rollout; None before the first."""
        return self._status

    @property
    def properties(self) -> Properties:
        """Masses, lengths, friction and other properties in SI units; empty if there are none."""
        return Properties().tagged()

    @property
    def mechanics(self) -> MechanicalEngine | None:
        """Mechanical engine inside, with bodies, poses and energy; None for a learned engine."""
        return None

    @property
    def learned_values(self) -> dict[str, Tensor]:
        """Current values of learned physical parameters by name, SI units, with their autograd graph."""
        return {}

    @property
    def control_range(self) -> Float[Tensor, "nu 2"]:
        """Smallest and largest value of each control; infinite where a control has no limits."""
        return torch.tensor([-torch.inf, torch.inf], dtype=torch.float64).expand(self.nu, 2)

    def physical_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters behind `learned_values`, for an optimizer with a learning rate of their own."""
        return iter(())

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """Initial state of the model, repeated for every world."""
        raise NotImplementedError

    @engine_entry
    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Overrides = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Simulate a number of steps.

        Args:
            state: Initial state of every world.
            steps: Number of steps, at least 1.
            controls: Controls, held constant over each step, (batch, steps, nu); None for zero.
            properties: Whole properties or a mapping of leaf names that override the engine's own.
            truncate: Number of steps after which the gradient is cut: at every step that is a multiple.
        """
        self._check_rollout(state, steps, controls, truncate)
        return self._report(self._simulate(state, steps, controls, properties, truncate), properties)

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        """Simulate with checked arguments and unchecked properties; the trajectory has a status."""
        raise NotImplementedError

    def _step_with_force(
        self, state: State, force: Tensor, control: Tensor | None, properties: Overrides
    ) -> Trajectory:
        """Advance one step under a generalized force, (batch, nv), beside the control, if `takes_forces`."""
        raise NotImplementedError

    def step(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Overrides = None,
    ) -> State:
        """Advance every world by one step."""
        controls = None if control is None else control.unsqueeze(1)
        return self.rollout(state, 1, controls, properties).final

    def forward(self, state: State, steps: int, *args: Any, **kwargs: Any) -> Trajectory:
        """Simulate, as `rollout` does."""
        return self.rollout(state, steps, *args, **kwargs)

    def checked(
        self, properties: Overrides, batch: int | None = None, device: torch.device | None = None
    ) -> Properties:
        """Check properties once: calls that are given the result do not check again.

        Args:
            properties: Whole properties or a mapping of leaf names that override the engine's own; None for its own.
            batch: Number of worlds; None for any.
            device: Device of the leaves; None for any.
        """
        return self.properties.overridden(
            properties, batch=batch, device=device, constraints=self._constraints, rows=self.rows
        )

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """Position reached from `q` by the displacement `dv` in the tangent space."""
        return q + dv

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """Displacement from `q0` to `q1`, the inverse of `integrate`."""
        return q1 - q0

    def linearize(
        self,
        state: State | Trajectory,
        control: Float[Tensor, "batch *steps nu"] | None = None,
        properties: Overrides = None,
    ) -> tuple[Float[Tensor, "batch *steps twice_nv twice_nv"], Float[Tensor, "batch *steps twice_nv nu"]]:
        """Derivatives of a step: δ(q′, v′) = A δ(q, v) + B δu, with displacements in the tangent space.

        Each world is repeated once for each row of the result, so one call and one backward pass give all rows.

        Args:
            state: State before the step, or a trajectory, all steps of which are linearized in the same two launches.
            control: Control over the step, (batch, nu); for a trajectory (batch, steps, nu).
            properties: Properties as in `rollout`.
        """
        if isinstance(state, Trajectory):
            steps = state.steps
            known = None if properties is None else self.checked(properties, state.batch).repeat(steps, self.properties)
            matrices = self.linearize(state[:-1].flatten(), None if control is None else control.flatten(0, 1), known)
            A, B = (matrix.unflatten(0, (state.batch, steps)) for matrix in matrices)
            return A, B
        if self.nv > MAX_LINEARIZED_VELOCITIES:
            raise UnsupportedError(
                f"linearize: expected up to {MAX_LINEARIZED_VELOCITIES} velocities, got {self.nv}; differentiate a loss"
            )
        rows, batch, like = 2 * self.nv, state.batch, state.q
        known = None if properties is None else self.checked(properties, batch).repeat(rows, self.properties)
        dq, dv, du = (like.new_zeros(batch * rows, size, requires_grad=True) for size in (self.nv, self.nv, self.nu))
        with torch.enable_grad():
            start = state.detach().repeat(rows)
            u = du if control is None else control.detach().repeat_interleave(rows, 0) + du
            end = self.step(State(self.integrate(start.q, dq), start.v + dv), u, known)
            change = torch.cat([self.difference(end.q.detach(), end.q), end.v], 1)
            picked = (change * torch.eye(rows, dtype=like.dtype, device=like.device).repeat(batch, 1)).sum()
            gradients = torch.autograd.grad(picked, (dq, dv, du), allow_unused=True, materialize_grads=True)
        gq, gv, gu = (g.reshape(batch, rows, -1) for g in gradients)
        return torch.cat([gq, gv], 2), gu

    def rollout_feedback(
        self,
        start: State,
        policy: FeedbackPolicy,
        bounds: ControlBounds,
        change: Float[Tensor, "batch steps nu"] | None = None,
        step_sizes: Float[Tensor, " step_sizes"] | None = None,
        properties: Overrides = None,
    ) -> tuple[Trajectory, Float[Tensor, "repeated steps nu"]]:
        """Simulate the motion under a feedback policy, without gradients or a status, and return it with its controls.

        Each world is simulated once for each step size, copies of one world next to each other.

        Args:
            start: Initial state of each world.
            policy: Policy of each world.
            bounds: Smallest and largest controls, numbers or (nu,), or `control_range`, (nu, 2); None for no bounds.
            change: Change of the feedforward controls; zero if None.
            step_sizes: Fractions of the change; the whole change if None.
            properties: Overrides of the engine's properties, as in `rollout`.
        """
        self._check_rollout(start, policy.feedforward.shape[1], policy.feedforward, None)
        change = torch.zeros_like(policy.feedforward) if change is None else change
        step_sizes = start.q.new_ones(1) if step_sizes is None else step_sizes
        limits = control_bounds(bounds, self.nu, change)
        return self._rollout_feedback(start, FeedbackSearch(policy, limits, change, step_sizes), properties)

    @torch.no_grad()
    def _rollout_feedback(
        self, start: State, search: FeedbackSearch, properties: Overrides
    ) -> tuple[Trajectory, Tensor]:
        """Simulate under feedback one step after the other; the arguments are checked, the properties are not."""
        count = len(search.step_sizes)
        overrides = None if properties is None else self.checked(properties, start.batch).repeat(count, self.properties)
        policy, states, controls = search.policy.repeat(count), [start.repeat(count)], []
        changes = (search.step_sizes[None, :, None, None] * search.change[:, None]).flatten(0, 1)
        for step in range(changes.shape[1]):
            state, nominal = states[-1], policy.trajectory.state(step)
            displacement = torch.cat([self.difference(nominal.q, state.q), state.v - nominal.v], 1)
            controls.append(policy.control(step, displacement, search.bounds, changes[:, step]))
            states.append(self.step(state, controls[-1], overrides))
        return Trajectory.stack(states, self.dt), torch.stack(controls, 1)

    def _constraints(self, properties: Properties, name: str, value: Tensor) -> Sequence[Constraint]:
        """Constraints on values of the leaf `name` in `properties`."""
        return properties.constraints(name, value)

    def _check_state(self, state: State) -> None:
        q, v = check_tensor("state.q", state.q), check_tensor("state.v", state.v)
        if q.shape[1:] != (self.nq,):
            check_shape("state.q", q, (None, self.nq))
        check_shape("state.v", check_like("state.v", v, "state.q", q), (q.shape[0], self.nv))

    def _check_controls(self, state: State, steps: int, controls: Tensor | None) -> None:
        if controls is not None:
            check_like("controls", check_tensor("controls", controls), "state.q", state.q)
            check_shape("controls", controls, (state.batch, steps, self.nu))

    def _check_rollout(self, state: State, steps: int, controls: Tensor | None, truncate: int | None) -> None:
        self._check_state(state)
        check_count("steps", steps)
        self._check_controls(state, steps, controls)
        if truncate is not None:
            check_count("truncate", truncate)

    def _explain_failure(self, trajectory: Trajectory, properties: Overrides) -> FailureTexts:
        """Cause of the first failure in words, and advice, for the warning of failed worlds; empty by default."""
        return FailureTexts()

    def _report(self, trajectory: Trajectory, properties: Overrides) -> Trajectory:
        """Check its numbers, store its status, warn of failed worlds once, without waiting for a GPU, and return it."""
        trajectory = mark_unresolved(trajectory)
        status = trajectory.status
        assert status is not None
        if status.is_pending or not is_functorch_wrapped_tensor(status.converged):  # transforms have no values yet
            self.__dict__["_status"] = status  # nn.Module would look for parameters in it first
            if not (status.is_pending or self._warned or status.converged.is_cuda):
                self._warned = warn_of_failures(status, partial(self._explain_failure, trajectory, properties))
        return trajectory


class MechanicalEngine(Engine):
    """An engine of bodies with poses, appearance and energy.

    A subclass defines `_poses`, `_appearance`, `_energy` for checked arguments, sets `rows`, calls `set_properties`.

    Attributes:
        body_names: Names of the rows of `poses`.
        joint_names: Names of the joints, in the order of their properties.
        geometry: Shapes that can be drawn, the rows of `appearance`.
        sites: Named points of bodies: row of the body, and position in its frame, m.
    """

    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    geometry: tuple[Placed, ...]
    sites: dict[str, tuple[int, tuple[float, ...]]]

    def __init__(self) -> None:
        super().__init__()
        self.sites = {}
        # Objects made for a device on first use: kernels, workspaces. They are never moved, copied or pickled.
        self._cached: dict[Any, Any] = {}

    @property
    def mechanics(self) -> MechanicalEngine:
        """This engine itself, which is mechanical."""
        return self

    @property
    def visuals(self) -> Visuals:
        """Surfaces and textures that are drawn beside the shapes or in their place, without influence on the motion."""
        return NO_VISUALS

    def energy(
        self, state: State | Trajectory, properties: Overrides = None
    ) -> tuple[Float[Tensor, "batch *times"], Float[Tensor, "batch *times"]]:
        """Kinetic energy, and potential energy of gravity and springs, J, at each time of a trajectory."""
        states, known, sizes = self._flatten(state, properties)
        kinetic, potential = self._energy(states, known)
        return kinetic.unflatten(0, sizes), potential.unflatten(0, sizes)

    def poses(
        self, state: State | Trajectory, properties: Overrides = None
    ) -> Float[Tensor, "batch *times bodies 4 4"]:
        """Frame of every body in the world, rows as in `body_names`, static bodies included."""
        states, known, sizes = self._flatten(state, properties)
        return self._poses(states, known).unflatten(0, sizes)

    def appearance(self, state: State | Trajectory, properties: Overrides = None) -> Appearance:
        """Poses and sizes of all shapes, rows as in `geometry`."""
        states, known, sizes = self._flatten(state, properties)
        flat = self._appearance(states, known)
        return Appearance(flat.poses.unflatten(0, sizes), flat.sizes.unflatten(0, sizes))

    def contact_forces(
        self, state: State, control: Float[Tensor, "batch nu"] | None = None, properties: Overrides = None
    ) -> tuple[Tensor, Tensor]:
        """Points of contact of one world, m, and the mean forces there over a step, N, (contacts, 3); none here."""
        return state.q.new_zeros(0, 3), state.q.new_zeros(0, 3)

    def _flatten(self, state: State | Trajectory, properties: Overrides) -> tuple[State, Properties, tuple[int, ...]]:
        """All states as one batch with their properties, and the sizes of the batch's dimensions."""
        known = self.checked(properties, state.batch, state.q.device)
        if isinstance(state, Trajectory):
            times, flat = state.steps + 1, state.flatten()
            self._check_state(flat)
            return flat, known.repeat(times, self.properties), (state.batch, times)
        self._check_state(state)
        return state, known, (state.batch,)

    def _energy(self, state: State, properties: Any) -> Energies:
        raise NotImplementedError

    def _poses(self, state: State, properties: Any) -> Float[Tensor, "batch bodies 4 4"]:
        raise NotImplementedError

    def _appearance(self, state: State, properties: Any) -> Appearance:
        raise NotImplementedError

    def _store(self, name: str, value: Any) -> None:
        """Store numbers in float64, whatever the module is converted to; a call casts them to its dtype."""
        self.register_buffer(f"_{name}", torch.as_tensor(value, dtype=torch.float64).clone(), persistent=False)

    def set_properties(self, properties: Properties) -> None:
        """Check properties and make them the engine's own."""
        self._cached.clear()
        self._kind = type(properties)
        items = list(properties.items())
        constraints = [
            (name, rule, False) for name, leaf in items for rule in self._constraints(properties, name, leaf)
        ]
        properties.validate(constraints, self.rows)
        for name, value in items:
            self._store(name, value)

    @property
    def properties(self) -> Properties:
        """Masses, lengths, friction and others, float64, without gradients; override them in the call."""
        # Cached with all that depends on them, because every call asks for them.
        if "properties" not in self._cached:
            leaves = {name: self.get_buffer(f"_{name}") for name in self._kind.leaves()}
            self._cached["properties"] = self._kind(**leaves).tagged()
        return self._cached["properties"]

    def _are_own(self, properties: Properties) -> bool:
        """If true, these are the engine's own properties, none of them overridden."""
        own = self.properties
        return properties is own or all(leaf is self.get_buffer(f"_{name}") for name, leaf in properties.items())

    def _apply(self, fn: Any, recurse: bool = True) -> MechanicalEngine:
        """Move to another device; the dtype of a call is that of its state, so the engine's numbers stay float64."""
        self._cached.clear()
        return super()._apply(lambda tensor: tensor.to(fn(tensor.new_empty(0)).device), recurse)

    def __getstate__(self) -> dict[str, Any]:
        """State without cached objects, which are made again where the engine is unpickled or copied."""
        return {**self.__dict__, "_cached": {}}
