"""By how much the motion of an engine misses what was seen of it, and how that changes with the unknowns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.core import InputError, ShapeError, State, Trajectory
from physvision.estimation.residual import Difference, Linear, Residual, weighted_misses
from physvision.estimation.sensitivity import motion_slopes
from physvision.estimation.unknowns import Unknowns, Values
from physvision.physics.engine import Engine

_MOST_LATE = 16  # steps by which a delay may lead past the last sample


@dataclass(frozen=True)
class Setup:
    """What a motion is made from; all worlds have values of their own.

    Attributes:
        state: at the start.
        properties: leaves of the engine's properties that depend on unknowns.
        controls: held over each step; the last one over all steps that follow.
    """

    state: State
    properties: Mapping[str, Tensor] = field(default_factory=dict)
    controls: Float[Tensor, "batch steps nu"] | None = None


@dataclass(frozen=True)
class Seen:
    """What an observation is made from, a world for each of the samples.

    Attributes:
        state: of the engine when the sample was taken.
        values: of the unknowns.
        properties: leaves that depend on unknowns, as the setup has them.
        sample: the number of each sample.
        time: when it was taken, seconds after the initial state.
    """

    state: State
    values: Values
    properties: Mapping[str, Tensor]
    sample: Int[Tensor, " worlds"]
    time: Float[Tensor, " worlds"]


@dataclass(frozen=True)
class MotionResidual(Residual):
    """Observations of a motion of an engine.

    Attributes:
        engine: what moves.
        unknowns: what is sought: among the engine's properties, its initial state, and whatever observes it.
        setup: from values, (batch, …), what the motion is made from; a function of torch's alone, no kernels in it.
        observe: what is seen of a state, (worlds, numbers); all positions if not given.
        times: of the samples, seconds after the initial state, growing.
        seen: (samples, numbers), or with a batch in front, one for each start; NaN where nothing was seen.
        weight: one over the standard deviation of what was seen, broadcast against it.
        delay: from values and the number of the sample of each world, by how much later than `times` it was taken, s,
            (worlds, parts): numbers that are seen come in so many parts, each at its own moment; None for no delay.
        difference: what becomes of predicted − seen before it is weighted, such as taking whole turns out of angles.
    """

    engine: Engine
    unknowns: Unknowns
    setup: Callable[[Values], Setup]
    times: Float[Tensor, " samples"]
    seen: Tensor
    observe: Callable[[Seen], Tensor] | None = None
    weight: Tensor | float = 1.0
    delay: Callable[[Values, Tensor], Tensor] | None = None
    difference: Difference | None = None

    def __post_init__(self) -> None:
        if self.seen.shape[-2:-1] != self.times.shape or not len(self.times):
            raise ShapeError(
                f"seen: expected a sample for each of {len(self.times)} times, got shape {tuple(self.seen.shape)}"
            )
        if bool((self.times[1:] <= self.times[:-1]).any()) or float(self.times[0]) < 0:
            raise InputError("times: expected seconds after the initial state that grow from sample to sample")

    def until(self, seconds: float) -> MotionResidual:
        """The same of the samples up to a time: at least the first."""
        count = max(1, int((self.times <= seconds).sum()))
        weight = self.weight
        if isinstance(weight, Tensor) and weight.dim() > 1 and weight.shape[-2] > 1:
            weight = weight[..., :count, :]
        return replace(self, times=self.times[:count], seen=self.seen[..., :count, :], weight=weight)

    @property
    def steps(self) -> int:
        """How many steps of the engine the samples reach over."""
        return max(1, int(torch.ceil(self.times[-1] / self.engine.dt - 1e-4)))

    def motion(self, z: Float[Tensor, "batch unknowns"], steps: int | None = None) -> Trajectory:
        """The motion that z stands for; as far as the samples reach if no number of steps is given."""
        made = self.setup(self.unknowns.values(z))
        steps = self.steps if steps is None else steps
        return self.engine.rollout(made.state, steps, self._controls(made, steps), made.properties or None)

    def predicted(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """What is to be seen of the motion that z stands for."""
        first = self._first(z)
        motion = self.motion(z, max(self.steps, int(first.max()) + 1))
        return self._observed(z.repeat_interleave(len(self.times), 0), first, _around(motion, first))

    def residual(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """The weighted differences."""
        return self._missed(self.predicted(z))

    def linearize(self, z: Float[Tensor, "batch unknowns"]) -> Linear:
        """The weighted differences and their derivatives, by the engine's own gradients; see `sensitivity`."""
        z = z.detach()
        made, start, leaf_slopes, control_slopes = self._setup_slopes(z)
        first = self._first(z)
        steps = max(self.steps, int(first.max()) + 1)
        controls = self._controls(made, steps)
        with torch.no_grad():
            motion = self.engine.rollout(made.state, steps, controls, made.properties or None)
        if control_slopes is not None:
            control_slopes = _held(control_slopes, steps)
        slopes = motion_slopes(
            self.engine, motion, made.properties, controls, start, leaf_slopes, control_slopes
        )  # (batch, times, tangent, unknowns)
        samples, numbers = self.seen.shape[-2:]
        world = torch.arange(len(z), device=z.device)[:, None]
        with torch.enable_grad():
            # Each number that is seen has worlds of its own, so that one backward pass serves all.
            worlds = z.repeat_interleave(samples, 0).repeat(numbers, 1).requires_grad_()
            moves, states = [], []
            for state in _around(motion, first):
                q, v = state.q.repeat(numbers, 1), state.v.repeat(numbers, 1)
                dq, dv = (torch.zeros_like(v, requires_grad=True) for _ in range(2))
                moves += [dq, dv]
                states.append(State(self.engine.integrate(q, dq), v + dv))
            seen = self._observed(worlds, first.repeat(1, numbers, 1), states)
            missed = self._missed(seen.unflatten(0, (numbers, len(z))))
            picked = missed.diagonal(dim1=0, dim2=3).sum()
            slope = torch.autograd.grad(picked, (worlds, *moves), allow_unused=True, materialize_grads=True)
        by_z, *by_move = (part.unflatten(0, (numbers, len(z), samples)).movedim(0, 2) for part in slope)
        for part, at in enumerate(first):
            before, after = (torch.cat(by_move[4 * part + k : 4 * part + k + 2], -1) for k in (0, 2))
            by_z = by_z + before @ slopes[world, at] + after @ slopes[world, at + 1]
        return missed[0].detach(), by_z

    def _setup_slopes(self, z: Tensor) -> tuple[Setup, Tensor, dict[str, Tensor], Tensor | None]:
        """The setup and its derivatives: of the state in the tangent space, of leaves, of controls."""
        made = self.setup(self.unknowns.values(z))
        names = list(made.properties)
        batch, unknowns = z.shape
        with torch.enable_grad():
            worlds = z.repeat_interleave(unknowns, 0).requires_grad_()
            here = self.setup(self.unknowns.values(worlds))
            away = self.engine.difference(made.state.q.repeat_interleave(unknowns, 0), here.state.q)
            made_of = [torch.cat([away, here.state.v], 1), *(here.properties[name] for name in names)]
            made_of += [] if here.controls is None else [here.controls]
            slopes = _forward(made_of, worlds, torch.eye(unknowns).to(z).repeat(batch, 1))
        start, *others = (slope.unflatten(0, (batch, unknowns)).movedim(1, -1) for slope in slopes)
        controls = None if made.controls is None else others[len(names)]
        return made, start, dict(zip(names, others, strict=False)), controls

    def _controls(self, made: Setup, steps: int) -> Tensor | None:
        return None if made.controls is None else _held(made.controls, steps)

    def _taken(self, worlds: Tensor) -> Float[Tensor, "worlds parts"]:
        """When each part of each sample was taken, from z, a row for every sample."""
        sample = torch.arange(len(self.times), device=worlds.device).repeat(len(worlds) // len(self.times))
        times = self.times.to(worlds)[sample, None]
        return times if self.delay is None else times + self.delay(self.unknowns.values(worlds), sample)

    def _first(self, z: Tensor) -> Int[Tensor, "parts batch samples"]:
        """The step during which each part of each sample was taken."""
        with torch.no_grad():
            taken = self._taken(z.repeat_interleave(len(self.times), 0)).unflatten(0, (len(z), -1)).movedim(-1, 0)
        share = torch.ceil(taken.nan_to_num(0.0) / self.engine.dt - 1e-4) - 1
        # What is taken long after the last sample belongs to no search that leads anywhere.
        return share.clamp(0, self.steps + _MOST_LATE).long()

    def _observed(self, worlds: Tensor, first: Tensor, states: Sequence[State]) -> Tensor:
        """What is seen between states before and after, two for each part, from z, a row for every sample."""
        samples = len(self.times)
        values = self.unknowns.values(worlds)
        sample = torch.arange(samples, device=worlds.device).repeat(len(worlds) // samples)
        taken, properties = self._taken(worlds), self.setup(values).properties
        found = []
        for part, at in enumerate(first):
            share = taken[:, part] / self.engine.dt - at.flatten()
            state = between(self.engine, states[2 * part], states[2 * part + 1], share)
            seen = Seen(state, values, properties, sample, taken[:, part])
            every = state.q if self.observe is None else self.observe(seen)
            found.append(every.chunk(len(first), 1)[part])
        return torch.cat(found, 1).unflatten(0, (-1, samples))

    def _missed(self, predicted: Tensor) -> Tensor:
        weight = torch.as_tensor(self.weight, dtype=self.seen.dtype, device=self.seen.device)
        return weighted_misses(predicted, self.seen, weight, self.difference)


def _forward(outputs: Sequence[Tensor], inputs: Tensor, directions: Tensor) -> list[Tensor]:
    """Derivatives J d of outputs along directions of the inputs, a world each.

    The pullback Jᵀ u is linear in u, so the derivative of d·Jᵀ u by u is J d, whatever u is: two backward passes, and
    none of the machinery of forward mode, which takes longer to import than most fits take.
    """
    dependent = [output for output in outputs if output.requires_grad]
    duals = [torch.zeros_like(output, requires_grad=True) for output in dependent]
    paired = torch.stack([(dual * output).sum() for dual, output in zip(duals, dependent, strict=True)]).sum()
    pullback = torch.autograd.grad(paired, inputs, create_graph=True)[0]
    along = iter(torch.autograd.grad((pullback * directions).sum(), duals, materialize_grads=True))
    return [next(along) if output.requires_grad else torch.zeros_like(output) for output in outputs]


def _held(rows: Tensor, steps: int) -> Tensor:
    """The rows of so many steps, (batch, steps, …); the last is held."""
    return rows[:, torch.arange(steps, device=rows.device).clamp(max=rows.shape[1] - 1)]


def _around(motion: Trajectory, first: Int[Tensor, "parts batch samples"]) -> list[State]:
    """The states before and after each sample, of each part in turn, one world for each sample."""
    world = torch.arange(motion.batch, device=first.device)[:, None]
    steps = [at + k for at in first for k in (0, 1)]
    return [State(motion.q[world, at].flatten(0, 1), motion.v[world, at].flatten(0, 1)) for at in steps]


def between(engine: Engine, before: State, after: State, share: Float[Tensor, " worlds"]) -> State:
    """The state between two that are a step apart: the cubic through positions and velocities, after Hermite."""
    s = share.unsqueeze(1)
    way = engine.difference(before.q, after.q)
    v0, v1 = engine.dt * before.v, engine.dt * after.v
    moved = (s - 2 * s**2 + s**3) * v0 + (3 * s**2 - 2 * s**3) * way + (s**3 - s**2) * v1
    rate = (1 - 4 * s + 3 * s**2) * v0 + (6 * s - 6 * s**2) * way + (3 * s**2 - 2 * s) * v1
    return State(engine.integrate(before.q, moved), rate / engine.dt)
