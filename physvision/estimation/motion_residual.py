"""Residuals of a simulated motion against observations, and their derivatives by the unknowns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.core import InputError, ShapeError, State, Trajectory
from physvision.estimation.residual import Difference, Linearization, Residual
from physvision.estimation.sensitivity import state_sensitivities
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.estimation.unknowns import Unknowns, Values
from physvision.physics.engine import Engine


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
            raise ShapeError(
                f"observed: expected a sample for each of {len(self.times)} times, got shape "
                f"{tuple(self.observed.shape)}"
            )
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
        """Return residuals and Jacobian, by the engine's own gradients; see `sensitivity`."""
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
