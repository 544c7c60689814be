"""Trials of a policy that sees: 75 s from starts that it was not trained on, as it learned it or otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.pixels.network import FramePolicy
from physvision.control.pixels.task import DT, STEPS, UPRIGHT, FromFrames, Starts, Upright, leaning, stays_up
from physvision.control.policies import Policy, play
from physvision.core import InputError, State, Trajectory

SECONDS, LAST, PUSHED = 75.0, 60.0, 10.0
UNSEEN = 1_000_000_007  # a seed that no update has


@dataclass(frozen=True)
class Trials:
    """What a policy did.

    Attributes:
        motion: at the ends of decisions.
        angles: from upright, rad.
        stays: whether the pole was upright all of the last time.
    """

    motion: Trajectory
    angles: Float[Tensor, "batch times"]
    stays: Bool[Tensor, " batch"]

    @property
    def rises(self) -> Float[Tensor, " batch"]:
        """When each pole was upright for good, s; the end of the trial where it was not."""
        times = torch.arange(1, self.angles.shape[1] + 1) * DT * STEPS
        return (times * ~(self.angles.abs() < UPRIGHT)).amax(1)


@torch.no_grad()
def trials(
    task: Upright,
    policy: Policy,
    count: int = 20,
    seconds: float = SECONDS,
    last: float = LAST,
    push: float = 0.0,
    varied: bool = False,
) -> Trials:
    """Let a policy swing poles up that hang, from starts that training does not draw.

    Args:
        task: what it is told and what moves.
        policy: without a memory beyond the last frames.
        count: of starts.
        seconds: of a trial.
        last: seconds at its end in which the pole has to be upright.
        push: change of the pole's rate after 10 s, rad/s.
        varied: whether light and textures vary, as in training, from start to start.
    """
    before, after = (round(each / (DT * STEPS)) for each in (min(PUSHED, seconds), max(seconds - PUSHED, 0)))
    if before < 1:
        raise InputError(f"seconds: expected at least those of one decision, {DT * STEPS:g}, got {seconds:g}")
    task.starts, task.varied, task.periods = Starts(), float(varied), before
    start, aim = task.begin(count, torch.Generator().manual_seed(UNSEEN))
    first = play(task, policy, start, aim).trajectory
    parts = [first[1:]]
    if after:
        final = first.final
        kick = torch.tensor([0.0, push]).to(final.v)
        task.periods = after
        parts.append(play(task, policy, State(final.q, final.v + kick), aim).trajectory[1:])
    q, v = torch.cat([each.q for each in parts], 1), torch.cat([each.v for each in parts], 1)
    angles = leaning(State(q.flatten(0, 1), v.flatten(0, 1))).unflatten(0, q.shape[:2])
    return Trials(Trajectory(q, v, dt=DT * STEPS), angles, stays_up(angles, round(last / (DT * STEPS))))


def task_of(policy: FramePolicy) -> FromFrames:
    """The task that a policy sees in its frames' size."""
    _, height, width = policy.shape
    return FromFrames(height, width)
