"""Gradients of long motions in little memory: few states are kept, and the motion between them is computed again.

A rollout keeps every state, for it returns them all. `end_of_motion` returns where a motion ends and what it cost on
the way, and its `keep` says which states stay for the way back:

    KeepEvery(n)        the start of every n-th step; the motion is computed once more. n = √T keeps the least.
    KeepSlots(n)        n states at a time, placed by binomial checkpointing: the fewest further steps for so many.
    KeepEnd()           the end alone, from which each step is undone; for engines that can be run backwards.

With λ the adjoint of the state after a stretch of steps and R its motion, that before it is λ ∂R/∂state, and each
stretch adds λ ∂R/∂(controls, properties) to their gradients: the engine's own adjoint gives both.
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

UNDOING = 50  # iterations for the velocity before a step, at most
ROUNDING = 16  # units of rounding by which an undone step may fail to lead back


@dataclass(frozen=True)
class KeepEvery:
    """The start of every so-many-th step is kept.

    Attributes:
        steps: from one state that is kept to the next, simulated in one launch.
        stored: the dtype in which it is kept, if not its own: the gradient is then that of a motion that was rounded.
    """

    steps: int
    stored: torch.dtype | None = None


@dataclass(frozen=True)
class KeepSlots:
    """At most so many states are kept at a time beside the first (Griewank's binomial checkpointing).

    Attributes:
        slots: number of states.
        stretch: steps that are simulated in one launch, between which states may be kept.
    """

    slots: int
    stretch: int = 32


@dataclass(frozen=True)
class KeepEnd:
    """The end alone is kept, and each step undone: semi-implicit Euler without contact and strong drag.

    A step that cannot be undone to rounding raises an error.

    Attributes:
        stretch: steps that are undone before their adjoint is taken.
    """

    stretch: int = 32


Keep = KeepEvery | KeepSlots | KeepEnd


class Ended(NamedTuple):
    """Where a motion ended.

    Attributes:
        state: the last state.
        cost: what the stretches cost in sum, (batch,); zero where nothing was asked.
        status: how all steps went.
    """

    state: State
    cost: Float[Tensor, " batch"]
    status: Status


def end_of_motion(
    engine: Engine,
    state: State,
    steps: int,
    controls: Float[Tensor, "batch steps nu"] | None = None,
    properties: Overrides = None,
    *,
    keep: Keep,
    cost: Cost | None = None,
) -> Ended:
    """Simulate `steps` steps, keeping few states, with gradients to the start, to controls and to properties.

    Args:
        engine: what is simulated.
        state: where every world starts.
        steps: how many steps, at least 1.
        controls: as in `rollout`.
        properties: as in `rollout`.
        keep: which states stay in memory.
        cost: what a stretch of the motion costs, (batch,), from its trajectory and the number of its first step;
            its first state is the last one of the stretch before. It may depend on the states alone.
    """
    check_count("steps", steps)
    for name in ("steps", "slots", "stretch"):
        if name in vars(keep):
            check_count(f"keep.{name}", getattr(keep, name))
    given: Mapping[str, Tensor] = dict(properties.items()) if isinstance(properties, Properties) else properties or {}
    motion = _Motion(engine, steps, keep, cost, tuple(given))
    q, v, total, *parts = _Ended.apply(motion, state.q, state.v, controls, *given.values())
    return Ended(State(q, v), total, Status(*parts))


@dataclass(frozen=True, eq=False)
class _Motion:
    engine: Engine
    steps: int
    keep: Keep
    cost: Cost | None
    names: tuple[str, ...]

    @property
    def stretch(self) -> int:
        return self.keep.steps if isinstance(self.keep, KeepEvery) else self.keep.stretch

    @property
    def count(self) -> int:
        """Number of stretches."""
        return -(-self.steps // self.stretch)

    def run(self, k: int, state: State, controls: Tensor | None, leaves: tuple[Tensor, ...]) -> Trajectory:
        """Stretch k from its start."""
        first, end = k * self.stretch, min((k + 1) * self.stretch, self.steps)
        part = None if controls is None else controls[:, first:end]
        properties = dict(zip(self.names, leaves, strict=True)) or None
        return self.engine.rollout(state, end - first, part, properties)

    def cost_of(self, k: int, whole: Trajectory) -> Tensor:
        if self.cost is None:
            return whole.q.new_zeros(whole.batch)
        return self.cost(whole, k * self.stretch)


# pyright: reportIncompatibleMethodOverride=false
class _Ended(torch.autograd.Function):
    """The motion as one operation, whose inputs are the start, the controls and the leaves of the properties."""

    @staticmethod
    def forward(ctx: Any, motion: _Motion, q: Tensor, v: Tensor, controls: Tensor | None, *leaves: Tensor) -> Any:
        state, kept, total, status = State(q, v), [], q.new_zeros(len(q)), None
        for k in range(motion.count):
            if isinstance(motion.keep, KeepEvery):
                kept += [value.to(motion.keep.stored or value.dtype) for value in (state.q, state.v)]
            whole = motion.run(k, state, controls, leaves)
            total = total + motion.cost_of(k, whole)
            assert whole.status is not None
            status = whole.status if status is None else status.then(whole.status, k * motion.stretch)
            # The rest of the trajectory must not stay alive.
            state = State(whole.final.q.clone(), whole.final.v.clone())
        if not isinstance(motion.keep, KeepEvery):
            kept = [q, v] if isinstance(motion.keep, KeepSlots) else [state.q, state.v]
        assert status is not None
        parts = [getattr(status, each.name) for each in fields(status)]
        ctx.motion, ctx.kept = motion, len(kept)
        ctx.save_for_backward(*kept, controls, *leaves)
        ctx.mark_non_differentiable(*parts)
        ctx.set_materialize_grads(True)
        return state.q, state.v, total, *parts

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, q_bar: Tensor, v_bar: Tensor, cost_bar: Tensor, *_: Any) -> Any:
        kept, (controls, *leaves) = ctx.saved_tensors[: ctx.kept], ctx.saved_tensors[ctx.kept :]
        leaves_wanted = ctx.needs_input_grad[4:]
        controls_bar = torch.zeros_like(controls) if ctx.needs_input_grad[3] else None
        leaf_bars = [
            torch.zeros_like(leaf) if wanted else None for leaf, wanted in zip(leaves, leaves_wanted, strict=True)
        ]
        motion = ctx.motion
        for k, start in _starts(motion, kept, q_bar.dtype, controls, tuple(leaves)):
            inputs = [value.detach().requires_grad_() for value in (start.q, start.v)]
            held = None if controls is None else controls.detach().requires_grad_(controls_bar is not None)
            own = [leaf.detach().requires_grad_(wanted) for leaf, wanted in zip(leaves, leaves_wanted, strict=True)]
            sums = [(held, controls_bar), *zip(own, leaf_bars, strict=True)]
            sums = [(value, bar) for value, bar in sums if bar is not None]
            with torch.enable_grad():
                whole = motion.run(k, State(*inputs), held, tuple(own))
                outputs, bars = [whole.final.q, whole.final.v], [q_bar, v_bar]
                if motion.cost is not None:
                    outputs, bars = [*outputs, motion.cost_of(k, whole)], [*bars, cost_bar]
            found = torch.autograd.grad(outputs, [*inputs, *(value for value, _ in sums)], bars, allow_unused=True)
            q_bar, v_bar = found[:2]
            for (_, bar), part in zip(sums, found[2:], strict=True):
                if part is not None:
                    bar += part
        return None, q_bar, v_bar, controls_bar, *leaf_bars


def _starts(
    motion: _Motion, kept: tuple[Tensor, ...], dtype: torch.dtype, controls: Tensor | None, leaves: tuple[Tensor, ...]
) -> Iterator[tuple[int, State]]:
    """All stretches and where they start, the last one first."""
    if isinstance(motion.keep, KeepEvery):
        for k in reversed(range(motion.count)):
            yield k, State(kept[2 * k].to(dtype), kept[2 * k + 1].to(dtype))
    elif isinstance(motion.keep, KeepSlots):
        yield from _binomial(motion, State(*kept), 0, motion.count, motion.keep.slots, controls, leaves)
    else:
        state = State(*kept)
        for k in reversed(range(motion.count)):
            for step in reversed(range(k * motion.stretch, min((k + 1) * motion.stretch, motion.steps))):
                control = None if controls is None else controls[:, step]
                state = _undone(motion, state, control, dict(zip(motion.names, leaves, strict=True)))
            yield k, state


def _binomial(
    motion: _Motion,
    state: State,
    first: int,
    count: int,
    slots: int,
    controls: Tensor | None,
    leaves: tuple[Tensor, ...],
) -> Iterator[tuple[int, State]]:
    """Stretches first … first + count − 1 in reverse from the state before the first, with so many further states."""
    while count > 1:
        ahead = split(count, slots)
        further = state
        for k in range(first, first + ahead):
            whole = motion.run(k, further, controls, leaves).final
            further = State(whole.q.clone(), whole.v.clone())
        yield from _binomial(motion, further, first + ahead, count - ahead, max(slots - 1, 0), controls, leaves)
        count = ahead
    yield first, state


def split(count: int, slots: int) -> int:
    """How many of `count` stretches to go ahead before the next state is kept.

    With s states, the first among them, and each stretch run through at most r times ahead, C(s + r, s) stretches can
    be reversed: C(s + r − 1, s − 1) later ones with one state less, and C(s + r − 1, s) earlier ones once less often.
    """
    states, repeats = slots + 1, 1
    while comb(states + repeats, states) < count:
        repeats += 1
    return max(1, count - comb(states + repeats - 1, states - 1), comb(states + repeats - 2, states))


def _undone(motion: _Motion, after: State, control: Tensor | None, properties: dict[str, Tensor]) -> State:
    """The state a step before: q = q′ − h v′, and the v that leads to v′, by iteration."""
    engine = motion.engine
    q = engine.integrate(after.q, -engine.dt * after.v)
    v, off = after.v, torch.full_like(after.v, torch.inf)
    for _ in range(UNDOING):
        ahead = engine.step(State(q, v), control, properties or None)
        missing = after.v - ahead.v
        if bool((missing.abs() >= off.abs()).all()):
            break
        v, off = v + missing, missing
    led = engine.step(State(q, v), control, properties or None)
    size = torch.finfo(v.dtype).eps * ROUNDING
    apart = torch.cat([engine.difference(after.q, led.q) / engine.dt, led.v - after.v], -1).abs().amax()
    if not float(apart) <= size * (1.0 + float(after.v.abs().amax()) + float(after.q.abs().amax()) / engine.dt):
        raise InputError(
            f"keep=KeepEnd(): a step cannot be undone, {float(apart):.1e} is left; "
            "keep states instead (contacts, Runge–Kutta and strong drag cannot be run backwards)"
        )
    return State(q, v)
