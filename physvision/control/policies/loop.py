"""A policy and an engine in a loop, through which gradients go back in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.policies.networks import Policy
from physvision.control.policies.task import Episode, OpenLoop, Task
from physvision.control.policies.watching import Watch
from physvision.core import State, Trajectory
from physvision.physics.engine import Overrides

# What is sensed of a world that diverges ends as infinity within a network, whose weights all worlds share.
LARGEST = 1e6


@dataclass(frozen=True)
class Played:
    """An episode.

    Attributes:
        trajectory: the states at the ends of control periods, the first before the first of them.
        controls: held over the periods.
        losses: of the states after each period.
        failed: worlds in periods that the engine could not simulate, or at whose start what is sensed was beyond
            `LARGEST`; None of an open loop, whose engine's status tells.
        cut: worlds through whose period no signal goes back; None where the task cuts nothing.
        starts: the states that periods started from, whose gradients are what is left of a signal once it faded, was
            limited or cut: who asks what a period earned must use these, or else what it gains at its end goes back and
            what its start had gained already does not; None of an open loop.
    """

    trajectory: Trajectory
    controls: Float[Tensor, "batch periods nu"]
    losses: Float[Tensor, "batch periods"]
    failed: Bool[Tensor, "batch periods"] | None = None
    cut: Bool[Tensor, "batch periods"] | None = None
    starts: Trajectory | None = None


def play(
    task: Task,
    policy: Policy,
    start: State,
    aim: Float[Tensor, "batch *periods aims"],
    *,
    decay: float | Float[Tensor, "batch 1"] = 1.0,
    limit: float | None = None,
    properties: Overrides = None,
    watch: Watch | None = None,
) -> Played:
    """Let a policy move an engine through an episode.

    Args:
        task: what it does.
        policy: asked once a control period.
        start: where every world starts.
        aim: of every world, or of every world in each period.
        decay: what is left of the backward signal, that of the state and of the policy's memory, after each period it
            passes; 1 for the gradient itself. One for all worlds, or for each.
        limit: largest norm of a world's backward signal, that of its state, between two periods: near what is unstable
            it grows without bounds, and a single world would drown all others. None for no limit.
        properties: as in `Engine.rollout`.
        watch: what looks at the gradients of states and controls on the way back.
    """
    engine = task.engine
    known = None if properties is None else engine.checked(properties, start.batch)
    state, memory = start, policy.blank(start.q)
    states, starts, controls, failed, cuts = [start], [], [], [], []
    for period in range(task.periods):
        starts.append(state)
        told = aim if aim.ndim == 2 else aim[:, period]
        sensed = task.sense(state, told)
        lost = ~(sensed.detach().abs().amax(1) < LARGEST)
        if bool(lost.any()):
            sensed = torch.where(lost[:, None], 0.0, sensed)
        output, memory = policy(sensed, memory)
        control = task.act(state, output)
        held = control.unsqueeze(1).expand(-1, task.steps, -1)
        moved, before = engine.rollout(state, task.steps, held, known), state
        state, bad = moved.final, lost | _failed(moved)
        if not (moved.status is None or moved.status.is_pending):
            # They go on from where they last were: what is no number would reach all worlds through the weights.
            state = State(
                torch.where(bad[:, None], before.q.detach(), state.q),
                torch.where(bad[:, None], before.v.detach(), state.v),
            )
        if watch is not None:
            watch.over(period, state.q, state.v, control)
        states.append(state)
        controls.append(control)
        failed.append(bad)
        cut = task.cut(before, state)
        cuts.append(cut)
        if cut is not None:
            stop = 1.0 - cut[:, None].to(state.q)
            state = State(faded(state.q, stop), faded(state.v, stop))
        state = State(faded(state.q, decay), faded(state.v, decay))
        state = state if limit is None else State(*_Limited.apply(limit, state.q, state.v))
        memory = faded(memory, decay) if policy.remembered else memory
    path, begun = (
        Trajectory(torch.stack([s.q for s in kept], 1), torch.stack([s.v for s in kept], 1), dt=task.steps * engine.dt)
        for kept in (states, starts)
    )
    played = _judged(task, path, torch.stack(controls, 1), aim)
    known_cuts = [each for each in cuts if each is not None]
    cut = torch.stack(known_cuts, 1) if known_cuts else None
    return replace(played, failed=torch.stack(failed, 1), cut=cut, starts=begun)


def _failed(moved: Trajectory) -> Bool[Tensor, " batch"]:
    """Which worlds could not be simulated."""
    if moved.status is None or moved.status.is_pending:
        return torch.zeros(moved.batch, dtype=torch.bool, device=moved.q.device)
    return ~moved.status.converged


def play_open_loop(
    task: OpenLoop,
    policy: Policy,
    start: State,
    aim: Float[Tensor, "batch aims"],
    *,
    decay: float | Float[Tensor, "batch 1"] = 1.0,
    piece: int = 10,
    properties: Overrides = None,
) -> Played:
    """Let a policy that senses nothing of the state move an engine: many periods in one launch.

    Args:
        task: what it does.
        policy: without a memory; asked once, for all periods.
        start: where every world starts.
        aim: of every world.
        decay: as in `play`; but the backward signal decays between pieces, by as much as their periods come to.
        piece: periods in a launch; with a decay of 1 it is all of them.
        properties: as in `Engine.rollout`.
    """
    engine = task.engine
    known = None if properties is None else engine.checked(properties, start.batch)
    output, _ = policy(task.foresee(aim), policy.blank(start.q))
    controls = task.act(output).expand(-1, task.periods, -1)
    held = controls.repeat_interleave(task.steps, 1)
    piece = task.periods if isinstance(decay, float) and decay == 1.0 else piece
    state, q, v = start, [start.q.unsqueeze(1)], [start.v.unsqueeze(1)]
    for part in held.split(piece * task.steps, 1):
        moved = engine.rollout(state, part.shape[1], part, known)
        q.append(moved.q[:, task.steps :: task.steps])
        v.append(moved.v[:, task.steps :: task.steps])
        fades = decay**piece
        state = State(faded(moved.final.q, fades), faded(moved.final.v, fades))
    return _judged(task, Trajectory(torch.cat(q, 1), torch.cat(v, 1), dt=task.steps * engine.dt), controls, aim)


def _judged(task: Episode, trajectory: Trajectory, controls: Tensor, aim: Tensor) -> Played:
    """The episode with its losses, which see its states after each period."""
    # All states at once: a loss may ask for poses, which is a launch.
    aims = aim.repeat_interleave(task.periods, 0) if aim.ndim == 2 else aim.flatten(0, 1)
    losses = task.losses(trajectory[1:].flatten(), aims)
    return Played(trajectory, controls, losses.unflatten(0, (len(aim), task.periods)))


def faded(tensor: Tensor, decay: float | Tensor) -> Tensor:
    """The same tensor, whose gradient is smaller by a factor, or by one for each row."""
    return tensor if isinstance(decay, float) and decay == 1.0 else decay * tensor + (1 - decay) * tensor.detach()


# pyright: reportIncompatibleMethodOverride=false
class _Limited(torch.autograd.Function):
    """The same q and v, whose gradient in each world has at most a given norm, and is zero where it is not finite."""

    @staticmethod
    def forward(ctx: Any, limit: float, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        ctx.limit = limit
        return q.view_as(q), v.view_as(v)

    @staticmethod
    def backward(ctx: Any, q_bar: Tensor, v_bar: Tensor) -> tuple[None, Tensor, Tensor]:
        norm = torch.cat([q_bar, v_bar], 1).norm(dim=1, keepdim=True)
        share = (ctx.limit / norm).clamp(max=1.0).where(norm.isfinite(), 0.0)
        return None, q_bar.nan_to_num() * share, v_bar.nan_to_num() * share
