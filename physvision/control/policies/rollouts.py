"""Control tasks, and rollouts of a policy and an engine on them, through which gradients go back in time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.policies.networks import Policy
from physvision.core import State, Trajectory
from physvision.physics import Engine
from physvision.physics.engine import Overrides


class ControlTask(ABC):
    """A task for a batch of worlds, each with a goal of its own.

    Attributes:
        engine: Engine that simulates the mechanism.
        episode_steps: Control steps of an episode.
        frame_skip: Engine steps in a control step.
    """

    engine: Engine
    episode_steps: int
    frame_skip: int = 1

    @abstractmethod
    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Float[Tensor, "batch goals"]]:
        """Draw initial states and goals."""

    @abstractmethod
    def losses(self, state: State, goal: Float[Tensor, "batch goals"], /) -> Float[Tensor, " batch"]:
        """Return the loss of each world's state."""


class FeedbackTask(ControlTask):
    """A task whose policy observes the state in each control step."""

    @abstractmethod
    def observe(self, state: State, goal: Float[Tensor, "batch goals"], /) -> Float[Tensor, "batch obs"]:
        """Return the observation of the policy."""

    @abstractmethod
    def act(self, state: State, output: Float[Tensor, "batch outputs"]) -> Float[Tensor, "batch nu"]:
        """Return the control of the step from the policy's output."""

    def gradient_cut(self, start: State, end: State) -> Bool[Tensor, " batch"] | None:
        """Return true for worlds through whose step no gradient passes; None if this task cuts none."""
        return None


class OpenLoopTask(ControlTask):
    """A task whose policy observes the goal and the time alone, so that all controls are known in advance."""

    @abstractmethod
    def observe(self, goal: Float[Tensor, "batch goals"]) -> Float[Tensor, "batch #steps obs"]:
        """Return the observations of all control steps, or a single one for all of them."""

    @abstractmethod
    def act(self, output: Float[Tensor, "batch #steps outputs"]) -> Float[Tensor, "batch #steps nu"]:
        """Return the controls from the policy's outputs."""


# Larger observations of a diverging world would end as infinity within a network, whose weights all worlds share.
MAX_OBSERVATION = 1e6


class GradientMonitor:
    """Records and removes non-finite gradients of tensors with one row a world.

    Attributes:
        nonfinite: Pairs of world and step whose gradient was not finite, in the order of the backward pass. Such rows
            are replaced by zeros, so that no other world is affected.
    """

    def __init__(self) -> None:
        self.nonfinite: list[tuple[int, int]] = []

    def attach(self, step: int, *tensors: Tensor) -> None:
        """Monitor the gradients of the tensors of a step."""
        for tensor in tensors:
            if tensor.requires_grad:
                tensor.register_hook(partial(self._check, step))

    def _check(self, step: int, gradient: Tensor) -> Tensor:
        nonfinite_rows = ~gradient.isfinite().all(1)
        if bool(nonfinite_rows.any()):
            pairs = [(world, step) for world in torch.nonzero(nonfinite_rows).flatten().tolist()]
            self.nonfinite += [pair for pair in pairs if pair not in self.nonfinite]
            gradient = torch.where(nonfinite_rows[:, None], 0.0, gradient)
        return gradient


@dataclass(frozen=True)
class PolicyRollout:
    """An episode of a policy.

    Attributes:
        trajectory: States at the ends of control steps, the initial one first.
        controls: Controls of each step.
        losses: Losses of the state at the end of each step.
        failed: If true, the engine could not simulate the step, or its observation exceeded `MAX_OBSERVATION`; None of
            an open loop, for which the engine's status tells.
        gradient_cut: If true, no gradient passes the step; None if the task cuts none.
        starts: States at the starts of control steps, whose gradients have decayed, been limited or cut; None of an
            open loop. A reward that is a difference between two states has to use these: otherwise the gradient of what
            it gains at its end goes back in full, and that of what it had at its start does not.
    """

    trajectory: Trajectory
    controls: Float[Tensor, "batch steps nu"]
    losses: Float[Tensor, "batch steps"]
    failed: Bool[Tensor, "batch steps"] | None = None
    gradient_cut: Bool[Tensor, "batch steps"] | None = None
    starts: Trajectory | None = None


def rollout_policy(
    task: FeedbackTask,
    policy: Policy,
    start: State,
    goal: Float[Tensor, "batch *steps goals"],
    *,
    gradient_decay: float | Float[Tensor, "batch 1"] = 1.0,
    max_state_grad_norm: float | None = None,
    properties: Overrides = None,
    monitor: GradientMonitor | None = None,
) -> PolicyRollout:
    """Simulate an episode of a policy that acts on feedback.

    Args:
        task: Task with engine, observations, controls and losses.
        policy: Policy that acts once a control step.
        start: Initial state of each world.
        goal: Goal of each world, or of each world in each step.
        gradient_decay: Factor of the gradient of state and hidden state for each control step it passes; 1 for the
            exact gradient. One factor for all worlds, or one for each.
        max_state_grad_norm: Largest norm of the gradient of a world's state between two control steps: near unstable
            states it grows without bounds, and a single world would dominate all others. None for no limit.
        properties: Overrides of the engine's properties, as in `Engine.rollout`.
        monitor: Monitor of the gradients of states and controls; None without.
    """
    engine = task.engine
    overrides = None if properties is None else engine.checked(properties, start.batch)
    state, hidden = start, policy.initial_hidden(start.q)
    states, starts, controls, failed, cuts = [start], [], [], [], []
    for step in range(task.episode_steps):
        starts.append(state)
        obs = task.observe(state, goal if goal.ndim == 2 else goal[:, step])
        diverged = ~(obs.detach().abs().amax(1) < MAX_OBSERVATION)
        if bool(diverged.any()):
            obs = torch.where(diverged[:, None], 0.0, obs)
        output, hidden = policy(obs, hidden)
        control = task.act(state, output)
        repeated = control.unsqueeze(1).expand(-1, task.frame_skip, -1)
        trajectory, before = engine.rollout(state, task.frame_skip, repeated, overrides), state
        state, step_failed = _last_valid_state(trajectory, before, diverged)
        if monitor is not None:
            monitor.attach(step, state.q, state.v, control)
        states.append(state)
        controls.append(control)
        failed.append(step_failed)
        cut = task.gradient_cut(before, state)
        if cut is not None:
            cuts.append(cut)
            gradient_factor = 1.0 - cut[:, None].to(state.q)
            state = State(scale_gradient(state.q, gradient_factor), scale_gradient(state.v, gradient_factor))
        state = State(scale_gradient(state.q, gradient_decay), scale_gradient(state.v, gradient_decay))
        if max_state_grad_norm is not None:
            state = State(*_LimitedGradient.apply(max_state_grad_norm, state.q, state.v))
        hidden = scale_gradient(hidden, gradient_decay) if policy.hidden_size else hidden
    dt = task.frame_skip * engine.dt
    rollout = _with_losses(task, Trajectory.stack(states, dt), torch.stack(controls, 1), goal)
    gradient_cut, step_starts = torch.stack(cuts, 1) if cuts else None, Trajectory.stack(starts, dt)
    return replace(rollout, failed=torch.stack(failed, 1), gradient_cut=gradient_cut, starts=step_starts)


def _last_valid_state(
    trajectory: Trajectory, before: State, diverged: Bool[Tensor, " batch"]
) -> tuple[State, Bool[Tensor, " batch"]]:
    """Return the final state, in failed worlds the state before, and true for failed worlds."""
    if trajectory.status is None or trajectory.status.is_pending:
        return trajectory.final, diverged
    failed = diverged | ~trajectory.status.converged
    # Numbers that are not finite would reach all worlds through the weights.
    end, failed_mask = trajectory.final, failed[:, None]
    q, v = torch.where(failed_mask, before.q.detach(), end.q), torch.where(failed_mask, before.v.detach(), end.v)
    return State(q, v), failed


def rollout_open_loop(
    task: OpenLoopTask,
    policy: Policy,
    start: State,
    goal: Float[Tensor, "batch goals"],
    *,
    gradient_decay: float | Float[Tensor, "batch 1"] = 1.0,
    chunk_steps: int = 10,
) -> PolicyRollout:
    """Simulate an episode of a policy that does not observe the state, with many control steps in one launch.

    Args:
        task: Task with engine, observations, controls and losses.
        policy: Policy without a hidden state, evaluated once for all control steps.
        start: Initial state of each world.
        goal: Goal of each world.
        gradient_decay: Factor of the gradient for each control step, as in `rollout_policy`, applied between launches.
        chunk_steps: Control steps of a launch; all of them if the gradient does not decay.
    """
    engine, skip = task.engine, task.frame_skip
    output, _ = policy(task.observe(goal), policy.initial_hidden(start.q))
    controls = task.act(output).expand(-1, task.episode_steps, -1)
    exact = isinstance(gradient_decay, float) and gradient_decay == 1.0
    chunk_steps = task.episode_steps if exact else chunk_steps
    state, q, v = start, [start.q.unsqueeze(1)], [start.v.unsqueeze(1)]
    for chunk in controls.repeat_interleave(skip, 1).split(chunk_steps * skip, 1):
        trajectory = engine.rollout(state, chunk.shape[1], chunk)
        q.append(trajectory.q[:, skip::skip])
        v.append(trajectory.v[:, skip::skip])
        chunk_decay = gradient_decay**chunk_steps
        state = State(scale_gradient(trajectory.final.q, chunk_decay), scale_gradient(trajectory.final.v, chunk_decay))
    return _with_losses(task, Trajectory(torch.cat(q, 1), torch.cat(v, 1), dt=skip * engine.dt), controls, goal)


def _with_losses(task: ControlTask, trajectory: Trajectory, controls: Tensor, goal: Tensor) -> PolicyRollout:
    """Return the rollout with the losses of the states after each control step."""
    # All states at once, because a loss may need poses, which take a launch.
    goals = goal.repeat_interleave(task.episode_steps, 0) if goal.ndim == 2 else goal.flatten(0, 1)
    losses = task.losses(trajectory[1:].flatten(), goals)
    return PolicyRollout(trajectory, controls, losses.unflatten(0, (len(goal), task.episode_steps)))


def scale_gradient(tensor: Tensor, factor: float | Tensor) -> Tensor:
    """Return the tensor itself with its gradient scaled by a factor, or by one for each row."""
    return tensor if isinstance(factor, float) and factor == 1.0 else factor * tensor + (1 - factor) * tensor.detach()


# pyright: reportIncompatibleMethodOverride=false
class _LimitedGradient(torch.autograd.Function):
    """Identity of q and v whose gradient has at most a given norm in each world, and is zero if it is not finite."""

    @staticmethod
    def forward(ctx: Any, limit: float, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        ctx.limit = limit
        return q.view_as(q), v.view_as(v)

    @staticmethod
    def backward(ctx: Any, q_bar: Tensor, v_bar: Tensor) -> tuple[None, Tensor, Tensor]:
        norm = torch.cat([q_bar, v_bar], 1).norm(dim=1, keepdim=True)
        scale = (ctx.limit / norm).clamp(max=1.0).where(norm.isfinite(), 0.0)
        return None, q_bar.nan_to_num() * scale, v_bar.nan_to_num() * scale
