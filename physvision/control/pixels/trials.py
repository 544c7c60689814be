"""Evaluation and film of a swing-up policy, from initial states that training does not draw, perhaps under changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import interpolate

from physvision.control.pixels.network import FramePolicy
from physvision.control.pixels.policy_file import load_policy
from physvision.control.pixels.renderer import CartPoleRenderer
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
from physvision.report import OutputFolder, VideoFigure

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


FILM_SIZE, INSET_SCALE = (288, 864), 2  # pixels of the film, and film pixels for a pixel of the policy's frame


def film_policy(path: Path, seconds: float, policy: str) -> None:
    """Swing a pole up, film it with the policy's frame in a corner, and print a summary.

    Args:
        path: MP4 file of the film.
        seconds: Duration, in s.
        policy: Name of a policy that comes with physvision, or path of a file.
    """
    network = load_policy(policy)
    task = task_for_policy(network)
    results = run_trials(task, network, 1, seconds, hold_seconds=min(1.0, seconds))
    renderer = CartPoleRenderer(task.engine, *FILM_SIZE)
    with OutputFolder(path.parent), VideoFigure(path, 1 / CONTROL_PERIOD_S) as video:
        for q, v in zip(results.motion.q[0], results.motion.v[0], strict=True):
            state = State(q[None], v[None])
            with torch.no_grad():
                video.add([_with_inset(renderer(state)[0], task.renderer(state)[0])])
    if bool(results.upright[0]):
        print(f"upright from {float(results.rise_times[0]):.2f} s on")
    else:
        print(f"not within {UPRIGHT_TOLERANCE_RAD} rad of upright at the end")
    print(path)


def _with_inset(frame: torch.Tensor, observation: torch.Tensor) -> np.ndarray:
    """Return a frame with the policy's in its upper left corner, 8 bits a channel."""
    inset = interpolate(observation[None], scale_factor=INSET_SCALE, mode="nearest")[0]
    frame = frame.clone()
    frame[:, : inset.shape[1] + 2, : inset.shape[2] + 2] = 1.0
    frame[:, : inset.shape[1], : inset.shape[2]] = inset
    return (255 * frame.clamp(0, 1)).round().byte().movedim(0, -1).numpy()
