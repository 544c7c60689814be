"""Gradient checkpointing: gradients of long rollouts from few stored states, between which steps are recomputed.

A rollout returns, and so stores, every state. `rollout_final` returns the final state and a cost of the trajectory, and
its `checkpoints` set the states that are stored for the backward pass:

    PeriodicCheckpoints(n)   Start of every n-th step; the rollout is computed once more. n = √T stores the fewest.
    BinomialCheckpoints(n)   At most n states at a time, by binomial checkpointing: the fewest recomputed steps.
    ReversedSteps()          Final state only, from which each step is inverted; for reversible engines.

With the adjoint λ of the state after a segment of steps and its map R, the adjoint before it is λ ∂R/∂state, and each
segment adds λ ∂R/∂(controls, properties) to their gradients: the engine's own adjoint gives both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from math import comb
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, State, Status, Trajectory
from physvision.core.checks import check_count
from physvision.physics.engine import Engine, Overrides
from physvision.physics.properties import Properties

Cost = Callable[[Trajectory, int], Tensor]

MAX_INVERSION_ITERATIONS = 50  # of the fixed-point iteration for the velocity before a step
INVERSION_TOLERANCE = 16  # largest error of an inverted step, in units of rounding


@dataclass(frozen=True)
class PeriodicCheckpoints:
    """Checkpoints at the start of every n-th step.

    Attributes:
        steps: Number of steps from one checkpoint to the next, simulated in one launch.
        dtype: Type in which states are stored, if not their own; the gradient is then that of a rounded trajectory.
    """

    steps: int
    dtype: torch.dtype | None = None

    @property
    def segment(self) -> int:
        """Number of steps from one checkpoint to the next."""
        return self.steps


@dataclass(frozen=True)
class BinomialCheckpoints:
    """At most a fixed number of checkpoints at a time beside the initial state (Griewank's binomial checkpointing).

    Attributes:
        slots: Number of states.
        segment: Number of steps that are simulated in one launch, between which states may be stored.
    """

    slots: int
    segment: int = 32


@dataclass(frozen=True)
class ReversedSteps:
    """No checkpoints: each step is inverted, for semi-implicit Euler without contact and strong damping.

    A step that cannot be inverted to rounding raises an error.

    Attributes:
        segment: Number of steps that are inverted before their adjoint is computed.
    """

    segment: int = 32


Checkpoints = PeriodicCheckpoints | BinomialCheckpoints | ReversedSteps


class FinalState(NamedTuple):
    """Final state of a rollout with its cost and status.

    Attributes:
        state: Last state of the rollout.
        cost: Sum of the costs of all segments, (batch,); zero without a cost.
        status: Status of all steps.
    """

    state: State
    cost: Float[Tensor, " batch"]
    status: Status


def rollout_final(
    engine: Engine,
    state: State,
    steps: int,
    controls: Float[Tensor, "batch steps nu"] | None = None,
    properties: Overrides = None,
    *,
    checkpoints: Checkpoints,
    cost: Cost | None = None,
) -> FinalState:
    """Simulate with few stored states and with gradients to the initial state, controls and properties.

    Args:
        engine: Engine that simulates.
        state: Initial state of every world.
        steps: Number of steps, at least 1.
        controls: Controls as in `rollout`.
        properties: Properties as in `rollout`.
        checkpoints: States that are stored for the backward pass.
        cost: Function from the trajectory of a segment and the number of its first step to a cost, (batch,). The first
            state of a segment is the last of the previous one. It may depend on the states only.
    """
    check_count("steps", steps)
    for name, value in vars(checkpoints).items():
        if name != "dtype":
            check_count(f"checkpoints.{name}", value)
    leaves: Mapping[str, Tensor] = dict(properties.items()) if isinstance(properties, Properties) else properties or {}
    segments = _Segments(engine, steps, checkpoints, cost, tuple(leaves))
    q, v, total, *status = _Rollout.apply(segments, state.q, state.v, controls, *leaves.values())
    return FinalState(State(q, v), total, Status(*status))


@dataclass(frozen=True, eq=False)
class _Segments:
    """A rollout in segments that can be computed again from their starts."""

    engine: Engine
    steps: int
    checkpoints: Checkpoints
    cost: Cost | None
    names: tuple[str, ...]

    @property
    def length(self) -> int:
        return self.checkpoints.segment

    @property
    def count(self) -> int:
        return -(-self.steps // self.length)

    def run(self, k: int, state: State, controls: Tensor | None, leaves: tuple[Tensor, ...]) -> Trajectory:
        """Simulate segment k from its start."""
        first, end = k * self.length, min((k + 1) * self.length, self.steps)
        part = None if controls is None else controls[:, first:end]
        properties = dict(zip(self.names, leaves, strict=True)) or None
        return self.engine.rollout(state, end - first, part, properties)

    def cost_of(self, k: int, trajectory: Trajectory) -> Tensor:
        if self.cost is None:
            return trajectory.q.new_zeros(trajectory.batch)
        return self.cost(trajectory, k * self.length)


# pyright: reportIncompatibleMethodOverride=false
class _Rollout(torch.autograd.Function):
    """Rollout as one operation on the initial state, the controls and the leaves of the properties."""

    @staticmethod
    def forward(ctx: Any, segments: _Segments, q: Tensor, v: Tensor, controls: Tensor | None, *leaves: Tensor) -> Any:
        state, stored, total, status = State(q, v), [], q.new_zeros(len(q)), None
        checkpoints = segments.checkpoints
        for k in range(segments.count):
            if isinstance(checkpoints, PeriodicCheckpoints):
                stored += [value.to(checkpoints.dtype or value.dtype) for value in (state.q, state.v)]
            trajectory = segments.run(k, state, controls, leaves)
            total = total + segments.cost_of(k, trajectory)
            assert trajectory.status is not None
            status = trajectory.status if status is None else status.then(trajectory.status, k * segments.length)
            # The rest of the trajectory must not stay alive.
            state = State(trajectory.final.q.clone(), trajectory.final.v.clone())
        if not isinstance(checkpoints, PeriodicCheckpoints):
            stored = [q, v] if isinstance(checkpoints, BinomialCheckpoints) else [state.q, state.v]
        assert status is not None
        values = [getattr(status, field.name) for field in fields(status)]
        ctx.segments, ctx.stored = segments, len(stored)
        ctx.save_for_backward(*stored, controls, *leaves)
        ctx.mark_non_differentiable(*values)
        ctx.set_materialize_grads(True)
        return state.q, state.v, total, *values

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, q_bar: Tensor, v_bar: Tensor, cost_bar: Tensor, *_: Any) -> Any:
        stored, (controls, *leaves) = ctx.saved_tensors[: ctx.stored], ctx.saved_tensors[ctx.stored :]
        leaves_needed = ctx.needs_input_grad[4:]
        controls_bar = torch.zeros_like(controls) if ctx.needs_input_grad[3] else None
        leaf_bars = [
            torch.zeros_like(leaf) if needed else None for leaf, needed in zip(leaves, leaves_needed, strict=True)
        ]
        segments = ctx.segments
        for k, start in _segment_starts(segments, stored, q_bar.dtype, controls, tuple(leaves)):
            inputs = [value.detach().requires_grad_() for value in (start.q, start.v)]
            u = None if controls is None else controls.detach().requires_grad_(controls_bar is not None)
            own = [leaf.detach().requires_grad_(needed) for leaf, needed in zip(leaves, leaves_needed, strict=True)]
            sums = [(u, controls_bar), *zip(own, leaf_bars, strict=True)]
            sums = [(value, bar) for value, bar in sums if bar is not None]
            with torch.enable_grad():
                trajectory = segments.run(k, State(*inputs), u, tuple(own))
                outputs, bars = [trajectory.final.q, trajectory.final.v], [q_bar, v_bar]
                if segments.cost is not None:
                    outputs, bars = [*outputs, segments.cost_of(k, trajectory)], [*bars, cost_bar]
            sources = [*inputs, *(value for value, _ in sums)]
            q_bar, v_bar, *parts = torch.autograd.grad(outputs, sources, bars, allow_unused=True)
            for (_, bar), part in zip(sums, parts, strict=True):
                if part is not None:
                    bar += part
        return None, q_bar, v_bar, controls_bar, *leaf_bars


def _segment_starts(
    segments: _Segments,
    stored: tuple[Tensor, ...],
    dtype: torch.dtype,
    controls: Tensor | None,
    leaves: tuple[Tensor, ...],
) -> Iterator[tuple[int, State]]:
    """Numbers of all segments and their initial states, the last one first."""
    if isinstance(segments.checkpoints, PeriodicCheckpoints):
        for k in reversed(range(segments.count)):
            yield k, State(stored[2 * k].to(dtype), stored[2 * k + 1].to(dtype))
    elif isinstance(segments.checkpoints, BinomialCheckpoints):
        span = (0, segments.count)
        yield from _binomial(segments, State(*stored), span, segments.checkpoints.slots, controls, leaves)
    else:
        state = State(*stored)
        for k in reversed(range(segments.count)):
            for step in reversed(range(k * segments.length, min((k + 1) * segments.length, segments.steps))):
                control = None if controls is None else controls[:, step]
                state = _invert_step(segments.engine, state, control, dict(zip(segments.names, leaves, strict=True)))
            yield k, state


def _binomial(
    segments: _Segments,
    state: State,
    span: tuple[int, int],
    slots: int,
    controls: Tensor | None,
    leaves: tuple[Tensor, ...],
) -> Iterator[tuple[int, State]]:
    """Segments of a span (first, count) in reverse, from the state at its start and with a number of further states."""
    first, count = span
    while count > 1:
        ahead = split(count, slots)
        further = state
        for k in range(first, first + ahead):
            final = segments.run(k, further, controls, leaves).final
            further = State(final.q.clone(), final.v.clone())
        yield from _binomial(segments, further, (first + ahead, count - ahead), max(slots - 1, 0), controls, leaves)
        count = ahead
    yield first, state


def split(count: int, slots: int) -> int:
    """Number of `count` segments to simulate before the next state is stored.

    With s states, the first among them, and each segment simulated at most r times, C(s + r, s) segments can be
    reversed: C(s + r − 1, s − 1) later ones with one state less, and C(s + r − 1, s) earlier ones once less often.
    """
    states, repeats = slots + 1, 1
    while comb(states + repeats, states) < count:
        repeats += 1
    return max(1, count - comb(states + repeats - 1, states - 1), comb(states + repeats - 2, states))


def _invert_step(engine: Engine, after: State, control: Tensor | None, properties: dict[str, Tensor]) -> State:
    """State before a step: q = q′ − h v′, and the v that leads to v′, by fixed-point iteration."""
    q = engine.integrate(after.q, -engine.dt * after.v)
    v, error = after.v, torch.full_like(after.v, torch.inf)
    for _ in range(MAX_INVERSION_ITERATIONS):
        residual = after.v - engine.step(State(q, v), control, properties or None).v
        if bool((residual.abs() >= error.abs()).all()):
            break
        v, error = v + residual, residual
    end = engine.step(State(q, v), control, properties or None)
    rounding = torch.finfo(v.dtype).eps * INVERSION_TOLERANCE
    deviation = torch.cat([engine.difference(after.q, end.q) / engine.dt, end.v - after.v], -1).abs().amax()
    scale = 1.0 + float(after.v.abs().amax()) + float(after.q.abs().amax()) / engine.dt
    if not float(deviation) <= rounding * scale:
        raise InputError(
            f"checkpoints=ReversedSteps(): a step cannot be inverted, with an error of {float(deviation):.1e}; use "
            "other checkpoints instead (steps with contact, Runge–Kutta or strong damping are not reversible)"
        )
    return State(q, v)
