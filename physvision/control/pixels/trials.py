"""Evaluation of a swing-up policy on initial states that training does not draw, as it was trained or under changes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.pixels.network import FramePolicy
from physvision.control.pixels.task import (
    CONTROL_PERIOD_S,
    UPRIGHT_TOLERANCE_RAD,
    CartPoleTask,
    PixelCartPoleTask,
    StartDistribution,
    is_upright,
    upright_angle,
)
from physvision.control.policies import Policy, rollout_policy
from physvision.core import InputError, State, Trajectory

TRIAL_SECONDS, HOLD_SECONDS, PUSH_TIME_S = 75.0, 60.0, 10.0  # those of the paper, and the time of a push
TEST_SEED = 1_000_000_007  # no update of the training has it


@dataclass(frozen=True)
class TrialResults:
    """Motion and success of a policy.

    Attributes:
        motion: States at the ends of control steps.
        angles: Angles from upright, in rad.
        upright: If true, the pole was upright during the whole hold time at the end.
    """

    motion: Trajectory
    angles: Float[Tensor, "batch times"]
    upright: Bool[Tensor, " batch"]

    @property
    def rise_times(self) -> Float[Tensor, " batch"]:
        """Time from which each pole stays upright, in s; the end of the trial if it does not."""
        times = torch.arange(1, self.angles.shape[1] + 1) * CONTROL_PERIOD_S
        return (times * ~(self.angles.abs() < UPRIGHT_TOLERANCE_RAD)).amax(1)


@torch.no_grad()
def run_trials(
    task: CartPoleTask,
    policy: Policy,
    count: int = 20,
    seconds: float = TRIAL_SECONDS,
    hold_seconds: float = HOLD_SECONDS,
    push: float = 0.0,
) -> TrialResults:
    """Swing up hanging poles by a policy, from initial states that training does not draw.

    Args:
        task: Task with engine and observations; its starts, variation and episode length are changed.
        policy: Policy without a hidden state beyond the last frames.
        count: Number of trials.
        seconds: Duration of a trial, in s.
        hold_seconds: Time at its end in which the pole has to be upright, in s.
        push: Change of the pole's angular velocity after 10 s, in rad/s.
    """
    steps_before, steps_after = (
        round(duration / CONTROL_PERIOD_S) for duration in (min(PUSH_TIME_S, seconds), max(seconds - PUSH_TIME_S, 0))
    )
    if steps_before < 1:
        raise InputError(f"seconds: expected at least those of one decision, {CONTROL_PERIOD_S:g}, got {seconds:g}")
    task.starts, task.variation_fraction, task.episode_steps = StartDistribution(), 0.0, steps_before
    start, goal = task.reset(count, torch.Generator().manual_seed(TEST_SEED))
    segments = [rollout_policy(task, policy, start, goal).trajectory[1:]]
    if steps_after:
        final = segments[0].final
        task.episode_steps = steps_after
        pushed = State(final.q, final.v + torch.tensor([0.0, push]).to(final.v))
        segments.append(rollout_policy(task, policy, pushed, goal).trajectory[1:])
    q, v = torch.cat([segment.q for segment in segments], 1), torch.cat([segment.v for segment in segments], 1)
    angles = upright_angle(State(q.flatten(0, 1), v.flatten(0, 1))).unflatten(0, q.shape[:2])
    motion = Trajectory(q, v, dt=CONTROL_PERIOD_S)
    return TrialResults(motion, angles, is_upright(angles, round(hold_seconds / CONTROL_PERIOD_S)))


def task_for_policy(policy: FramePolicy) -> PixelCartPoleTask:
    """Build the task with frames of the policy's size."""
    _, height, width = policy.shape
    return PixelCartPoleTask(height, width)
