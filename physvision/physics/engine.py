"""The contract of whatever can be stepped: physics engines, learned baselines and hybrids of both."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor

from physvision.core import Appearance, Placed, State, Status, Trajectory, UnsupportedError
from physvision.core.checks import check_count, check_like, check_shape, check_tensor
from physvision.physics.feedback import Bounds, FeedbackPolicy, rollout_feedback
from physvision.physics.properties import Claim, Properties

Overrides = Properties | Mapping[str, Tensor] | None

MOST_LINEARIZED = 2000  # velocities: the matrix then has 16 million numbers


class Engine(nn.Module):
    """A model of motion on a fixed grid of times: state `k` is the state at `k · dt`.

    A subclass sets `nq`, `nv`, `nu` and `dt`, and defines `_simulate`, `initial_state` and `properties`. Where
    positions are not a vector space (quaternions), it also overrides `integrate` and `difference`.

    Attributes:
        nq: numbers in a position.
        nv: numbers in a velocity.
        nu: numbers in a control.
        dt: seconds between two states.
        rows: names of the rows of each dimension of the properties.
        takes_forces: whether a generalised force can be given beside the controls, as a `Hybrid` does.
    """

    nq: int
    nv: int
    nu: int
    dt: float
    rows: dict[str, Sequence[str]]
    takes_forces: bool = False

    def __init__(self) -> None:
        super().__init__()
        self._status: Status | None = None
        self._warned = False
        self.rows = {}

    @property
    def status(self) -> Status | None:
        """How the last rollout went; None before the first."""
        return self._status

    @property
    def properties(self) -> Properties:
        """A frozen dataclass of tensors: masses, lengths, friction … in SI units; empty where there are none."""
        return Properties().marked()

    @property
    def mechanics(self) -> MechanicalEngine | None:
        """The engine inside that knows bodies, poses and energy; None where motion is learned alone."""
        return None

    @property
    def learned_values(self) -> dict[str, Tensor]:
        """Physical parameters that are learned, by name, as they are now, SI units, with their gradients' graph."""
        return {}

    def physical_parameters(self) -> Iterator[nn.Parameter]:
        """What an optimiser moves for `learned_values`, which wants rates of its own."""
        return iter(())

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """The state that the model's description starts from, `batch` times."""
        raise NotImplementedError

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Overrides = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Simulate `steps` steps.

        Args:
            state: where every world starts.
            steps: how many steps, at least 1.
            controls: held constant over each step, (batch, steps, nu); None for zero.
            properties: a whole dataclass or a mapping of leaf names; overrides the engine's own.
            truncate: backward, the gradient of each state reaches at most so many steps into the past: the chain is
                cut at every step whose number it divides.
        """
        self._check_rollout(state, steps, controls, truncate)
        return self._reported(self._simulate(state, steps, controls, properties, truncate))

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        """What `rollout` returns, with its status; the arguments are checked, but for the properties."""
        raise NotImplementedError

    def _pushed(self, state: State, force: Tensor, control: Tensor | None, properties: Overrides) -> Trajectory:
        """One step under a generalised force, (batch, nv), held beside the control; where `takes_forces`."""
        raise NotImplementedError

    def step(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Overrides = None,
    ) -> State:
        """The state one step later."""
        controls = None if control is None else control.unsqueeze(1)
        return self.rollout(state, 1, controls, properties).final

    def forward(self, state: State, steps: int, *args: Any, **kwargs: Any) -> Trajectory:
        """The same as `rollout`."""
        return self.rollout(state, steps, *args, **kwargs)

    def checked(
        self, properties: Overrides, batch: int | None = None, device: torch.device | None = None
    ) -> Properties:
        """The engine's properties with these in place, checked once: a call that is given them does not check again.

        Args:
            properties: a whole dataclass or a mapping of leaf names; None for the engine's own.
            batch: number of worlds; any if not given.
            device: where the leaves must lie; anywhere if not given.
        """
        return self.properties.overridden(properties, batch=batch, device=device, claims=self._claims, rows=self.rows)

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """The position reached from `q` by the displacement `dv`: a velocity held for one second."""
        return q + dv

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """The displacement that leads from `q0` to `q1`: the inverse of `integrate`."""
        return q1 - q0

    def linearize(
        self,
        state: State | Trajectory,
        control: Float[Tensor, "batch *steps nu"] | None = None,
        properties: Overrides = None,
    ) -> tuple[Float[Tensor, "batch *steps twice_nv twice_nv"], Float[Tensor, "batch *steps twice_nv nu"]]:
        """Derivatives of a step: δ(q′, v′) = A δ(q, v) + B δu, displacements in the tangent space.

        Each world is repeated once for each row of the answer, so one call and one backward pass give all rows.

        Args:
            state: where the step starts; of a trajectory, all its steps are linearised in the same two launches.
            control: held over the step, (batch, nu); for a trajectory (batch, steps, nu).
            properties: as in `rollout`.
        """
        if isinstance(state, Trajectory):
            steps = state.steps
            starts = State(state.q[:, :-1].flatten(0, 1), state.v[:, :-1].flatten(0, 1))
            known = None if properties is None else self.checked(properties, state.batch).repeat(steps, self.properties)
            matrices = self.linearize(starts, None if control is None else control.flatten(0, 1), known)
            A, B = (matrix.unflatten(0, (state.batch, steps)) for matrix in matrices)
            return A, B
        if self.nv > MOST_LINEARIZED:
            raise UnsupportedError(
                f"linearize: {self.nv} velocities, and matrices of more than {MOST_LINEARIZED} are not made; "
                "take gradients of what you need of the motion instead"
            )
        rows = 2 * self.nv
        batch, like = state.batch, state.q
        known = None if properties is None else self.checked(properties, batch).repeat(rows, self.properties)
        dq = like.new_zeros(batch * rows, self.nv, requires_grad=True)
        dv = like.new_zeros(batch * rows, self.nv, requires_grad=True)
        du = like.new_zeros(batch * rows, self.nu, requires_grad=True)
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
        bounds: Bounds,
        change: Float[Tensor, "batch steps nu"] | None = None,
        step_sizes: Float[Tensor, " step_sizes"] | None = None,
        properties: Overrides = None,
    ) -> tuple[Trajectory, Float[Tensor, "repeated steps nu"]]:
        """Simulate the motion under a feedback policy, without gradients or a status, and return it with its controls.

        Each world is simulated once for each step size, copies of one world next to each other.

        Args:
            start: Initial state of each world.
            policy: Policy of each world.
            bounds: Bounds of the controls.
            change: Change of the feedforward controls; zero if None.
            step_sizes: Fractions of the change; the whole change if None.
            properties: Overrides of the engine's properties, as in `rollout`.
        """
        self._check_rollout(start, policy.feedforward.shape[1], policy.feedforward, None)
        change = torch.zeros_like(policy.feedforward) if change is None else change
        step_sizes = start.q.new_ones(1) if step_sizes is None else step_sizes
        return self._rollout_feedback(start, policy, bounds, change, step_sizes, properties)

    def _rollout_feedback(
        self,
        start: State,
        policy: FeedbackPolicy,
        bounds: Bounds,
        change: Tensor,
        step_sizes: Tensor,
        properties: Overrides,
    ) -> tuple[Trajectory, Tensor]:
        """Return the result of `rollout_feedback` for checked arguments; the properties are not checked yet."""
        return rollout_feedback(self, start, policy, bounds, change, step_sizes, properties)

    def _claims(self, own: Properties, name: str, value: Tensor) -> Sequence[Claim]:
        """What must hold for numbers of the leaf `name`, to stand in `own`."""
        return own.claims(name, value)

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

    def _cure(self) -> str:
        """What the warning of failed worlds says to do, and a space after it; nothing where nobody knows."""
        return ""

    def _reported(self, trajectory: Trajectory) -> Trajectory:
        """This trajectory, whose status is kept and reported."""
        assert trajectory.status is not None
        self._report(trajectory.status)
        return trajectory

    def _report(self, status: Status) -> None:
        """Keep the status and warn of failed worlds, once an engine; never waits for a GPU."""
        if not status.is_pending and is_functorch_wrapped_tensor(status.converged):
            return  # inside a functional transform there is nothing to look at yet
        self.__dict__["_status"] = status  # a module's own way looks for parameters in it first
        if status.is_pending:
            return
        if self._warned or status.converged.is_cuda:
            return
        # By numpy, which takes a fifth of the time on so few numbers.
        if status.converged.numpy().all() and (status.first_underresolved_step.numpy() < 0).all():
            return
        failed, coarse = status.failed(), torch.nonzero(status.first_underresolved_step >= 0).flatten().tolist()
        self._warned = bool(failed or coarse)
        if coarse and not failed:
            warnings.warn(
                f"{len(coarse)} of {status.converged.numel()} worlds move too fast for the time step and do not "
                f"conserve energy (world {coarse[0]} from step {int(status.first_underresolved_step[coarse[0]])} on). "
                "Reduce dt or add substeps. See trajectory.status.first_underresolved_step; an engine warns once.",
                RuntimeWarning,
                stacklevel=4,
            )
        if not failed:
            return
        named = ", ".join(str(world) for world in failed[:8]) + (" …" if len(failed) > 8 else "")
        warnings.warn(
            f"{len(failed)} of {status.converged.numel()} worlds failed (world {named}; first at step "
            f"{int(status.first_failed_step[failed[0]])}, residual {float(status.residual[failed[0]]):.3g}). The other "
            f"worlds are not touched. {self._cure()}See trajectory.status; this is said once an engine.",
            RuntimeWarning,
            stacklevel=4,
        )


class MechanicalEngine(Engine):
    """An engine of bodies: it knows where they are, what they look like and what energy they have.

    A subclass defines `_poses`, `_appearance` and `_energy` for checked arguments, and keeps its numbers by
    `_keep_properties`, once `rows` names the rows of their dimensions.

    Attributes:
        body_names: of the rows of `poses`.
        joint_names: of the joints, in the order of their properties.
        geometry: everything that can be drawn; the rows of `appearance`.
        sites: named points of bodies: the row of the body, and the place in its frame, m.
    """

    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    geometry: tuple[Placed, ...]
    sites: dict[str, tuple[int, tuple[float, ...]]]

    def __init__(self) -> None:
        super().__init__()
        self.sites = {}
        # What was made for a device on first use: kernels, workspaces. It is never moved, copied or pickled.
        self._prepared: dict[Any, Any] = {}

    @property
    def mechanics(self) -> MechanicalEngine:
        """This engine."""
        return self

    def energy(
        self, state: State | Trajectory, properties: Overrides = None
    ) -> tuple[Float[Tensor, "batch *times"], Float[Tensor, "batch *times"]]:
        """Kinetic energy, and potential energy of gravity and springs, J; of a trajectory at each of its times."""
        states, known, sizes = self._spread(state, properties)
        kinetic, potential = self._energy(states, known)
        return kinetic.unflatten(0, sizes), potential.unflatten(0, sizes)

    def poses(
        self, state: State | Trajectory, properties: Overrides = None
    ) -> Float[Tensor, "batch *times bodies 4 4"]:
        """The frame of every body in the world, rows as in `body_names`, static bodies included."""
        states, known, sizes = self._spread(state, properties)
        return self._poses(states, known).unflatten(0, sizes)

    def appearance(self, state: State | Trajectory, properties: Overrides = None) -> Appearance:
        """Poses and sizes of everything that can be drawn, rows as in `geometry`."""
        states, known, sizes = self._spread(state, properties)
        poses, extents = self._appearance(states, known)
        return Appearance(poses.unflatten(0, sizes), extents.unflatten(0, sizes))

    def _spread(self, state: State | Trajectory, properties: Overrides) -> tuple[State, Properties, tuple[int, ...]]:
        """All states as one batch, the properties that belong to them, and the sizes that the batch is made of."""
        known = self.checked(properties, state.batch, state.q.device)
        if isinstance(state, Trajectory):
            times = state.steps + 1
            flat = state.flatten()
            self._check_state(flat)
            return flat, known.repeat(times, self.properties), (state.batch, times)
        self._check_state(state)
        return state, known, (state.batch,)

    def _energy(self, state: State, properties: Properties) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        raise NotImplementedError

    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        raise NotImplementedError

    def _appearance(
        self, state: State, properties: Properties
    ) -> tuple[Float[Tensor, "batch shapes 4 4"], Float[Tensor, "batch shapes 3"]]:
        raise NotImplementedError

    def _keep(self, name: str, value: Any) -> None:
        """Hold numbers in float64, whatever the module is converted to; a call casts them to what it computes in."""
        self.register_buffer(f"_{name}", torch.as_tensor(value, dtype=torch.float64).clone(), persistent=False)

    def keep(self, properties: Properties) -> None:
        """Make these properties the engine's own: what was identified is to be simulated."""
        self._keep_properties(properties)

    def _keep_properties(self, properties: Properties) -> None:
        """Hold the engine's own properties, checked."""
        self._prepared.clear()
        self._kind = type(properties)
        made = [(name, self._claims(properties, name, value)) for name, value in properties.items()]
        properties.hold([(name, claim, False) for name, found in made for claim in found], self.rows)
        for name, value in properties.items():
            self._keep(name, value)

    @property
    def properties(self) -> Properties:
        """Masses, lengths, friction …, float64, without gradients; override them in the call."""
        # Kept beside what was made of them, which is thrown away whenever they change: every call asks for them.
        if "properties" not in self._prepared:
            leaves = {name: self.get_buffer(f"_{name}") for name in self._kind.leaves()}
            self._prepared["properties"] = self._kind(**leaves).marked()
        return self._prepared["properties"]

    def _are_own(self, properties: Properties) -> bool:
        """Whether these are the engine's own properties, none of them overridden."""
        return properties is self.properties or all(
            value is self.get_buffer(f"_{name}") for name, value in properties.items()
        )

    def _apply(self, fn: Any, recurse: bool = True) -> MechanicalEngine:
        """Move to another device: the dtype of a call is that of its state, so the engine's numbers keep theirs."""
        self._prepared.clear()
        return super()._apply(lambda tensor: tensor.to(fn(tensor.new_empty(0)).device), recurse)

    def __getstate__(self) -> dict[str, Any]:
        """What was prepared is made again where the engine is unpickled or copied."""
        return {**self.__dict__, "_prepared": {}}
