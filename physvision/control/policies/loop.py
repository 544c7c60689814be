"""A policy and an engine in a loop, through which gradients go back in time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.control.policies.networks import Policy
from physvision.control.policies.task import Task
from physvision.core import State, Trajectory
from physvision.physics.engine import Overrides


@dataclass(frozen=True)
class Played:
    """An episode.

    Attributes:
        trajectory: the states at the ends of control periods, the first before the first of them.
        controls: held over the periods.
        losses: of the states after each period.
    """

    trajectory: Trajectory
    controls: Float[Tensor, "batch periods nu"]
    losses: Float[Tensor, "batch periods"]


def play(
    task: Task,
    policy: Policy,
    start: State,
    aim: Float[Tensor, "batch aims"],
    *,
    decay: float = 1.0,
    properties: Overrides = None,
) -> Played:
    """Let a policy move an engine through an episode.

    Args:
        task: what it does.
        policy: asked once a control period.
        start: where every world starts.
        aim: of every world.
        decay: what is left of the backward signal, that of the state and of the policy's memory, after each period it
            passes; 1 for the gradient itself.
        properties: as in `Engine.rollout`.
    """
    engine = task.engine
    known = None if properties is None else engine.checked(properties, start.batch)
    state, memory = start, policy.blank(start.q)
    states, controls = [start], []
    for _ in range(task.periods):
        output, memory = policy(task.sense(state, aim), memory)
        control = task.act(state, output)
        held = control.unsqueeze(1).expand(-1, task.steps, -1)
        state = engine.rollout(state, task.steps, held, known).final
        states.append(state)
        controls.append(control)
        state, memory = State(faded(state.q, decay), faded(state.v, decay)), faded(memory, decay)
    q, v = torch.stack([each.q for each in states], 1), torch.stack([each.v for each in states], 1)
    trajectory = Trajectory(q, v, dt=task.steps * engine.dt)
    # All states at once: a loss may ask for poses, which is a launch.
    losses = task.losses(trajectory[1:].flatten(), aim.repeat_interleave(task.periods, 0))
    return Played(trajectory, torch.stack(controls, 1), losses.unflatten(0, (start.batch, task.periods)))


def faded(tensor: Tensor, decay: float) -> Tensor:
    """The same tensor, whose gradient is smaller by a factor."""
    return tensor if decay == 1.0 else decay * tensor + (1 - decay) * tensor.detach()
