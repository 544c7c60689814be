"""Residuals of a simulated motion against observations, and their derivatives by the unknowns.

An engine has a backward pass, but no forward mode, and a motion has many more numbers than unknowns. So all steps are
differentiated at once, each in its own worlds, and the sensitivities S of the states follow step by step:

    S_{k+1} = A_k S_k + G_k dθ/dz + B_k du_k/dz,      A, G, B of step k by state, properties and control
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.core import InputError, ShapeError, State, Trajectory
from physvision.estimation.residual import Difference, Linearization, Residual
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.estimation.unknowns import Unknowns, Values
from physvision.physics.engine import Engine


def state_sensitivities(
    engine: Engine,
    motion: Trajectory,
    properties: Mapping[str, Tensor],
    controls: Float[Tensor, "batch steps nu"] | None,
    initial: Float[Tensor, "batch tangent unknowns"],
    property_jacobians: Mapping[str, Tensor],
    control_jacobian: Float[Tensor, "batch steps nu unknowns"] | None,
) -> Float[Tensor, "batch times tangent unknowns"]:
    """Return the derivatives of all states by the unknowns, in the tangent space of (q, v).

    Args:
        engine: Engine that made the motion.
        motion: Rollout to differentiate.
        properties: Property leaves of the rollout, with a value for each world.
        controls: Controls of the rollout.
        initial: Derivative of the initial state.
        property_jacobians: Derivative of each leaf, (batch, *leaf, unknowns).
        control_jacobian: Derivative of the controls; None where they do not depend on unknowns.
    """
    batch, steps, rows = motion.batch, motion.steps, 2 * engine.nv
    chunk = max(1, DEFAULT_SETTINGS.max_batched_worlds // (steps * rows))
    sensitivities = []
    for first in range(0, batch, chunk):
        part = slice(first, first + chunk)
        leaves = {name: value[part] for name, value in properties.items()}
        trajectory = Trajectory(motion.q[part], motion.v[part], dt=motion.dt)
        part_controls = None if controls is None else controls[part]
        by_state, by_leaf, by_control = step_jacobians(engine, trajectory, leaves, part_controls)
        drive = torch.zeros(*by_state.shape[:3], initial.shape[-1], dtype=initial.dtype, device=initial.device)
        for name, jacobian in property_jacobians.items():
            # (batch, steps, rows, numbers) times (batch, numbers, unknowns)
            numbers = by_leaf[name].reshape(*by_state.shape[:3], -1)
            drive = drive + numbers @ jacobian[part].reshape(len(numbers), 1, -1, jacobian.shape[-1])
        if control_jacobian is not None:
            drive = drive + by_control @ control_jacobian[part]
        propagated = _propagate(by_state, drive, initial[part])
        sensitivities.append(torch.cat([initial[part].unsqueeze(1), propagated], 1))
    return torch.cat(sensitivities)


def _propagate(
    by_state: Float[Tensor, "batch steps tangent tangent"],
    drive: Float[Tensor, "batch steps tangent unknowns"],
    initial: Float[Tensor, "batch tangent unknowns"],
) -> Float[Tensor, "batch steps tangent unknowns"]:
    """Solve S_{k+1} = A_k S_k + d_k for all steps by a parallel prefix scan.

    Two successive steps are one: A₂ (A₁ S + d₁) + d₂ = (A₂ A₁) S + (A₂ d₁ + d₂). So each step is combined with the one
    before, then each pair with the pair before, and so on: log₂ n rounds instead of n small products.
    """
    first = by_state[:, :1] @ initial.unsqueeze(1) + drive[:, :1]
    transition, offset = by_state, torch.cat([first, drive[:, 1:]], 1)
    stride, steps = 1, by_state.shape[1]
    while stride < steps:
        offset = torch.cat([offset[:, :stride], offset[:, stride:] + transition[:, stride:] @ offset[:, :-stride]], 1)
        transition = torch.cat([transition[:, :stride], transition[:, stride:] @ transition[:, :-stride]], 1)
        stride *= 2
    return offset


def step_jacobians(
    engine: Engine,
    motion: Trajectory,
    properties: Mapping[str, Tensor],
    controls: Float[Tensor, "batch steps nu"] | None = None,
) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """Return the Jacobians of each step's end by its start, each leaf and its control, (batch, steps, 2 nv, …)."""
    batch, steps, rows, like = motion.batch, motion.steps, 2 * engine.nv, motion.q
    start = motion[:-1].flatten().detach().repeat(rows)
    worlds = start.batch
    repeated = {name: value.detach().repeat_interleave(steps * rows, 0) for name, value in properties.items()}
    leaves = {name: value.requires_grad_() for name, value in repeated.items()}
    dq, dv = (like.new_zeros(worlds, engine.nv, requires_grad=True) for _ in range(2))
    du = like.new_zeros(worlds, engine.nu, requires_grad=True)
    with torch.enable_grad():
        control = None if controls is None else controls.detach().flatten(0, 1).repeat_interleave(rows, 0) + du
        perturbed = State(engine.integrate(start.q, dq), start.v + dv)
        end = engine.step(perturbed, control, leaves or None)
        change = torch.cat([engine.difference(end.q.detach(), end.q), end.v], 1)
        selected = (change * torch.eye(rows, dtype=like.dtype, device=like.device).repeat(worlds // rows, 1)).sum()
        inputs = (dq, dv, du, *leaves.values())
        gradients = torch.autograd.grad(selected, inputs, allow_unused=True, materialize_grads=True)
    by_q, by_v, by_control, *by_leaf = (part.reshape(batch, steps, rows, *part.shape[1:]) for part in gradients)
    return torch.cat([by_q, by_v], -1), dict(zip(leaves, by_leaf, strict=True)), by_control


@dataclass(frozen=True)
class Setup:
    """Inputs of a rollout, with values for each world.

    Attributes:
        state: Initial state.
        properties: Leaves of the engine's properties that depend on unknowns.
        controls: Controls, each held over a step; the last one is held to the end.
    """

    state: State
    properties: Mapping[str, Tensor] = field(default_factory=dict)
    controls: Float[Tensor, "batch steps nu"] | None = None


@dataclass(frozen=True)
class SampledState:
    """States at the times of the samples, one world a sample: the input of an observation model.

    Attributes:
        state: Engine state when the sample was taken.
        values: Values of the unknowns.
        properties: Property leaves of the setup.
        sample: Index of each sample.
        time: Time of each sample after the initial state, s.
    """

    state: State
    values: Values
    properties: Mapping[str, Tensor]
    sample: Int[Tensor, " worlds"]
    time: Float[Tensor, " worlds"]


@dataclass(frozen=True)
class MotionResidual(Residual):
    """Residuals of an engine's motion against observations of it.

    Attributes:
        engine: Engine that simulates the motion.
        unknowns: Unknowns of properties, initial state and observation model.
        setup: Function from values, (batch, …), to the rollout's inputs; torch operations only, no engine kernels.
        times: Times of the samples after the initial state, ascending, s.
        observed: Observations, (samples, numbers), or with a leading batch dimension, one for each start; NaN where
            missing.
        observe: Observation model from sampled states to predictions, (worlds, numbers); all positions if not given.
        weight: Inverse standard deviation of the observations, broadcast against them.
        delay: Function from values and each world's sample index to the delay of the observation after `times`, s,
            (worlds, parts): the numbers are split into so many equal parts, each with its own delay. None for no delay.
        difference: Function applied to predicted − observed before weighting, such as wrapping angles.
    """

    engine: Engine
    unknowns: Unknowns
    setup: Callable[[Values], Setup]
    times: Float[Tensor, " samples"]
    observed: Tensor
    observe: Callable[[SampledState], Tensor] | None = None
    weight: Tensor | float = 1.0
    delay: Callable[[Values, Tensor], Tensor] | None = None
    difference: Difference | None = None

    def __post_init__(self) -> None:
        if self.observed.shape[-2:-1] != self.times.shape or not len(self.times):
            raise ShapeError(f"observed: expected {len(self.times)} samples, got shape {tuple(self.observed.shape)}")
        if bool((self.times[1:] <= self.times[:-1]).any()) or float(self.times[0]) < 0:
            raise InputError("times: expected ascending seconds after the initial state, at least zero")

    def truncate(self, seconds: float) -> MotionResidual:
        """Return the residuals of the samples up to a time, of the first sample at least."""
        count = max(1, int((self.times <= seconds).sum()))
        weight = self.weight
        if isinstance(weight, Tensor) and weight.dim() > 1 and weight.shape[-2] > 1:
            weight = weight[..., :count, :]
        return replace(self, times=self.times[:count], observed=self.observed[..., :count, :], weight=weight)

    @property
    def steps(self) -> int:
        """Number of engine steps up to the last sample."""
        return max(1, int(torch.ceil(self.times[-1] / self.engine.dt - 1e-4)))

    def rollout(self, z: Float[Tensor, "batch unknowns"], steps: int | None = None) -> Trajectory:
        """Simulate the motion at z, up to the last sample if `steps` is not given."""
        setup = self.setup(self.unknowns.values(z))
        steps = self.steps if steps is None else steps
        return self.engine.rollout(setup.state, steps, _hold_last(setup.controls, steps), setup.properties or None)

    def predictions(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """Return the predicted observations of the motion at z."""
        first = self._sample_steps(z)
        motion = self.rollout(z, max(self.steps, int(first.max()) + 1))
        return self._observations(z.repeat_interleave(len(self.times), 0), first, _bracketing_states(motion, first))

    def linearize(self, z: Float[Tensor, "batch unknowns"]) -> Linearization:
        """Return residuals and Jacobian, by the engine's own gradients; see the module."""
        z = z.detach()
        setup, initial, property_jacobians, control_jacobian = self._setup_jacobians(z)
        first = self._sample_steps(z)
        steps = max(self.steps, int(first.max()) + 1)
        controls = _hold_last(setup.controls, steps)
        with torch.no_grad():
            motion = self.engine.rollout(setup.state, steps, controls, setup.properties or None)
        control_jacobian = _hold_last(control_jacobian, steps)
        sensitivities = state_sensitivities(
            self.engine, motion, setup.properties, controls, initial, property_jacobians, control_jacobian
        )  # (batch, times, tangent, unknowns)
        residuals, jacobian, by_state = self._observation_jacobians(z, motion, first)
        world = torch.arange(len(z), device=z.device)[:, None]
        for part, index in enumerate(first):
            before, after = (torch.cat(by_state[4 * part + k : 4 * part + k + 2], -1) for k in (0, 2))
            jacobian = jacobian + before @ sensitivities[world, index] + after @ sensitivities[world, index + 1]
        return residuals, jacobian

    def _observation_jacobians(self, z: Tensor, motion: Trajectory, first: Tensor) -> tuple[Tensor, Tensor, list]:
        """Return residuals, their derivative by z at fixed states, and by tangents of the states around each sample.

        The tangents are those of q and v before and after, of each part in turn.
        """
        samples, numbers = self.observed.shape[-2:]
        with torch.enable_grad():
            # Each observed number has its own worlds, so that one backward pass serves them all.
            worlds = z.repeat_interleave(samples, 0).repeat(numbers, 1).requires_grad_()
            tangents, states = [], []
            for state in _bracketing_states(motion, first):
                q, v = state.q.repeat(numbers, 1), state.v.repeat(numbers, 1)
                dq, dv = (torch.zeros_like(v, requires_grad=True) for _ in range(2))
                tangents += [dq, dv]
                states.append(State(self.engine.integrate(q, dq), v + dv))
            predicted = self._observations(worlds, first.repeat(1, numbers, 1), states)
            residuals = self._weighted(predicted.unflatten(0, (numbers, len(z))))
            selected = residuals.diagonal(dim1=0, dim2=3).sum()
            gradients = torch.autograd.grad(selected, (worlds, *tangents), allow_unused=True, materialize_grads=True)
        by_z, *by_state = (part.unflatten(0, (numbers, len(z), samples)).movedim(0, 2) for part in gradients)
        return residuals[0].detach(), by_z, by_state

    def _setup_jacobians(self, z: Tensor) -> tuple[Setup, Tensor, dict[str, Tensor], Tensor | None]:
        """Return the setup and its derivatives: of the state in the tangent space, of leaves, of controls."""
        setup = self.setup(self.unknowns.values(z))
        names = list(setup.properties)
        batch, unknowns = z.shape
        with torch.enable_grad():
            worlds = z.repeat_interleave(unknowns, 0).requires_grad_()
            perturbed = self.setup(self.unknowns.values(worlds))
            dq = self.engine.difference(setup.state.q.repeat_interleave(unknowns, 0), perturbed.state.q)
            outputs = [torch.cat([dq, perturbed.state.v], 1), *(perturbed.properties[name] for name in names)]
            outputs += [] if perturbed.controls is None else [perturbed.controls]
            jacobians = _forward_derivatives(outputs, worlds, torch.eye(unknowns).to(z).repeat(batch, 1))
        initial, *rest = (jacobian.unflatten(0, (batch, unknowns)).movedim(1, -1) for jacobian in jacobians)
        controls = None if setup.controls is None else rest[len(names)]
        return setup, initial, dict(zip(names, rest, strict=False)), controls

    def _sample_times(self, worlds: Tensor) -> Float[Tensor, "worlds parts"]:
        """Return the time of each part of each sample, from z, with a row for every sample."""
        sample = torch.arange(len(self.times), device=worlds.device).repeat(len(worlds) // len(self.times))
        times = self.times.to(worlds)[sample, None]
        return times if self.delay is None else times + self.delay(self.unknowns.values(worlds), sample)

    def _sample_steps(self, z: Tensor) -> Int[Tensor, "parts batch samples"]:
        """Return the index of the engine step in which each part of each sample lies."""
        with torch.no_grad():
            times = self._sample_times(z.repeat_interleave(len(self.times), 0))
        steps = torch.ceil(times.unflatten(0, (len(z), -1)).movedim(-1, 0).nan_to_num(0.0) / self.engine.dt - 1e-4) - 1
        # A sample long after the last one belongs to no search that leads anywhere.
        return steps.clamp(0, self.steps + DEFAULT_SETTINGS.max_delay_steps).long()

    def _observations(self, worlds: Tensor, first: Tensor, states: Sequence[State]) -> Tensor:
        """Return predictions between the states before and after each part, from z, with a row for every sample."""
        samples = len(self.times)
        values = self.unknowns.values(worlds)
        sample = torch.arange(samples, device=worlds.device).repeat(len(worlds) // samples)
        times, properties = self._sample_times(worlds), self.setup(values).properties
        parts = []
        for part, index in enumerate(first):
            fraction = times[:, part] / self.engine.dt - index.flatten()
            state = interpolate_states(self.engine, states[2 * part], states[2 * part + 1], fraction)
            sampled = SampledState(state, values, properties, sample, times[:, part])
            numbers = state.q if self.observe is None else self.observe(sampled)
            parts.append(numbers.chunk(len(first), 1)[part])
        return torch.cat(parts, 1).unflatten(0, (-1, samples))


def _forward_derivatives(outputs: Sequence[Tensor], inputs: Tensor, directions: Tensor) -> list[Tensor]:
    """Return derivatives J d of outputs along directions of the inputs, one direction a world.

    The pullback Jᵀ u is linear in u, so the derivative of d·Jᵀ u by u is J d for every u: two backward passes, without
    torch's forward mode, whose import takes longer than most fits.
    """
    dependent = [output for output in outputs if output.requires_grad]
    duals = [torch.zeros_like(output, requires_grad=True) for output in dependent]
    paired = torch.stack([(dual * output).sum() for dual, output in zip(duals, dependent, strict=True)]).sum()
    pullback = torch.autograd.grad(paired, inputs, create_graph=True)[0]
    derivatives = iter(torch.autograd.grad((pullback * directions).sum(), duals, materialize_grads=True))
    return [next(derivatives) if output.requires_grad else torch.zeros_like(output) for output in outputs]


def _hold_last(rows: Tensor | None, steps: int) -> Tensor | None:
    """Return the rows of so many steps, (batch, steps, …), repeating the last one; None if there are no rows."""
    return None if rows is None else rows[:, torch.arange(steps, device=rows.device).clamp(max=rows.shape[1] - 1)]


def _bracketing_states(motion: Trajectory, first: Int[Tensor, "parts batch samples"]) -> list[State]:
    """Return the states before and after each sample, of each part in turn, one world a sample."""
    world = torch.arange(motion.batch, device=first.device)[:, None]
    steps = [index + k for index in first for k in (0, 1)]
    return [State(motion.q[world, index].flatten(0, 1), motion.v[world, index].flatten(0, 1)) for index in steps]


def interpolate_states(engine: Engine, before: State, after: State, fraction: Float[Tensor, " worlds"]) -> State:
    """Interpolate between two states one step apart, by the cubic Hermite polynomial of positions and velocities."""
    s = fraction.unsqueeze(1)
    dq = engine.difference(before.q, after.q)
    v0, v1 = engine.dt * before.v, engine.dt * after.v
    displacement = (s - 2 * s**2 + s**3) * v0 + (3 * s**2 - 2 * s**3) * dq + (s**3 - s**2) * v1
    rate = (1 - 4 * s + 3 * s**2) * v0 + (6 * s - 6 * s**2) * dq + (3 * s**2 - 2 * s) * v1
    return State(engine.integrate(before.q, displacement), rate / engine.dt)
