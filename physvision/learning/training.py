"""Training runs of a learner: evaluations, TensorBoard logs, checkpoints, and resuming after an interruption."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.utils.tensorboard.writer import SummaryWriter

from physvision.core import CheckpointError
from physvision.core.checks import check_count, check_positive
from physvision.core.weights import read_saved, write_atomically
from physvision.learning.learner import Learner, evaluate

CHECKPOINT, BEST, PROGRESS = "last.ckpt", "best.ckpt", "progress.jsonl"


@dataclass(frozen=True)
class TrainingSchedule:
    """Schedule of the evaluations, checkpoints and end of a run. Defaults suit the small environments.

    Attributes:
        total_steps: Environment steps of the run, summed over all worlds, and rounded up to whole increments of the
            algorithm (of SHAC num_envs × horizon); more steps train longer.
        eval_every: Environment steps between evaluations; a larger number saves time.
        eval_episodes: Episodes of an evaluation; more of them average out the initial states.
        checkpoint_every: Environment steps between checkpoints; a larger number loses more at an interruption.
        target_reward: Mean reward of an evaluation that ends the run early; None for no early end.
        target_patience: Consecutive evaluations that have to reach the target; more of them rule out a chance success.
        max_cpu_seconds: Processor time, in s, after which the run ends with the next evaluation; None for no limit.
    """

    total_steps: int = 20_000
    eval_every: int = 1000
    eval_episodes: int = 1
    checkpoint_every: int = 5000
    target_reward: float | None = None
    target_patience: int = 1
    max_cpu_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("total_steps", "eval_every", "eval_episodes", "checkpoint_every", "target_patience"):
            check_count(name, getattr(self, name))
        if self.max_cpu_seconds is not None:
            check_positive("max_cpu_seconds", self.max_cpu_seconds)

    def is_finished(self, evaluations: list[dict[str, Any]]) -> bool:
        """Return true if a run ends after the last of these evaluations; a longer schedule can resume there."""
        last = evaluations[-1]
        timeout = self.max_cpu_seconds is not None and last["cpu_seconds"] >= self.max_cpu_seconds
        rewards = [evaluation["reward"] for evaluation in evaluations[-self.target_patience :]]
        solved = (
            self.target_reward is not None
            and len(rewards) == self.target_patience
            and min(rewards) >= self.target_reward
        )
        return last["steps"] >= self.total_steps or timeout or solved


def train(
    learner: Learner, schedule: TrainingSchedule, run_folder: Path, run_config: dict[str, Any]
) -> list[dict[str, Any]]:
    """Train a learner to the end of the schedule, from the last checkpoint in the folder if there is one.

    Args:
        learner: Learner that has not been trained yet.
        schedule: Schedule of the evaluations, the checkpoints and the end of the run.
        run_folder: Folder of checkpoints, progress.jsonl and TensorBoard's files.
        run_config: Configuration of the run with its seed; a checkpoint of another configuration is rejected.

    Returns:
        Metrics of each evaluation, in order.
    """
    run_folder.mkdir(parents=True, exist_ok=True)
    evaluations, previous_cpu_s = resume(learner, run_folder, run_config)
    writer = SummaryWriter(str(run_folder), purge_step=learner.env_steps or None)
    start = time.process_time() - previous_cpu_s
    while not (evaluations and schedule.is_finished(evaluations)):
        before = learner.env_steps
        learner.advance()
        if not _crosses(before, learner.env_steps, schedule.eval_every):
            continue
        evaluations.append(_evaluation(learner, schedule, time.process_time() - start, evaluations))
        for name, value in evaluations[-1].items():
            writer.add_scalar(f"learn/{name}", value, learner.env_steps)
        writer.flush()
        if evaluations[-1]["reward"] >= max(evaluation["reward"] for evaluation in evaluations):
            best = {"run_config": run_config, "env_steps": learner.env_steps, "actor": learner.actor.state_dict()}
            write_atomically(best, run_folder / BEST)
        print(" ".join(f"{name} {value:.5g}" for name, value in evaluations[-1].items()), flush=True)
        if evaluations[-1]["finished"] or _crosses(before, learner.env_steps, schedule.checkpoint_every):
            state = {"run_config": run_config, "evaluations": evaluations, "learner": learner.state_dict()}
            write_atomically(state | {"cpu_seconds": time.process_time() - start}, run_folder / CHECKPOINT)
        (run_folder / PROGRESS).write_text("".join(json.dumps(evaluation) + "\n" for evaluation in evaluations))
    writer.close()
    return evaluations


def _crosses(before: int, after: int, interval: int) -> bool:
    """Return true if a multiple of the interval lies between two counts of steps."""
    return before // interval < after // interval


def _evaluation(
    learner: Learner, schedule: TrainingSchedule, cpu_seconds: float, previous: list[dict[str, Any]]
) -> dict[str, Any]:
    """Evaluate the policy and return its metrics."""
    rewards = evaluate(learner.env, learner.actor, schedule.eval_episodes, seed=schedule.eval_episodes)
    reward = float(rewards.mean()) if len(rewards) else float("-inf")
    evaluation = {"steps": learner.env_steps, "reward": reward, "cpu_seconds": cpu_seconds}
    return evaluation | {"finished": schedule.is_finished([*previous, evaluation])} | learner.metrics()


def resume(learner: Learner, run_folder: Path, run_config: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
    """Restore a checkpoint, if there is one, and return its evaluations and its processor time in s."""
    path = run_folder / CHECKPOINT
    if not path.exists():
        return [], 0.0
    try:
        state = read_saved(path)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; remove it to start again") from error
    keys = {"run_config", "evaluations", "learner", "cpu_seconds"}
    if not isinstance(state, dict) or set(state) != keys or not _are_evaluations(state["evaluations"]):
        raise CheckpointError(f"{path}: is no checkpoint of `physvision learn`; choose another folder or remove it")
    if (stored := state["run_config"]) != run_config:
        raise CheckpointError(
            f"{path}: expected a checkpoint of this run, {run_config}, got one of another run, {stored}; "
            "choose another folder or remove it"
        )
    try:
        learner.load_state_dict(state["learner"])
        return state["evaluations"], float(state["cpu_seconds"])
    except Exception as error:  # whatever the learner's parts make of states that are not theirs
        raise CheckpointError(
            f"{path}: holds the state of another learner ({error}); choose another folder or remove it"
        ) from error


def _are_evaluations(value: Any) -> bool:
    """Return true for a list of the metrics of evaluations, each with those that a schedule asks for."""
    metrics = {"steps", "reward", "cpu_seconds"}
    return isinstance(value, list) and all(
        isinstance(entry, dict) and all(isinstance(entry.get(name), int | float) for name in metrics) for entry in value
    )
