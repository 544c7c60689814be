"""Runs of a learner: evaluations, what is drawn by TensorBoard, checkpoints, and going on after any interruption."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.tensorboard.writer import SummaryWriter

from physvision.core import CheckpointError
from physvision.core.checkpoints import write_atomically
from physvision.learning.learner import Learner, evaluate

CHECKPOINT, BEST, PROGRESS = "last.ckpt", "best.ckpt", "progress.jsonl"


@dataclass(frozen=True)
class Length:
    """How long a run is, and how often one looks.

    Attributes:
        steps: of the game, in all worlds together, at most.
        every: steps between two evaluations.
        episodes: of an evaluation.
        keep: steps between two checkpoints.
        aim: of the mean reward of an evaluation, at which the run ends; none if not given.
        held: evaluations in a row that have to reach it.
        seconds: of processor time after which the run ends with the next evaluation; none if not given.
    """

    steps: int
    every: int = 1000
    episodes: int = 1
    keep: int = 5000
    aim: float | None = None
    held: int = 1
    seconds: float | None = None


def run(learner: Learner, length: Length, folder: Path, about: dict[str, Any]) -> list[dict[str, Any]]:
    """Learn to the end, from the last checkpoint in the folder if there is one; a line of progress an evaluation.

    Args:
        learner: fresh.
        length: when to end.
        folder: of checkpoint, progress and TensorBoard's files.
        about: what the run is, with its seed; a checkpoint of another run is refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines, spent = _resume(learner, folder, about)
    writer = SummaryWriter(str(folder), purge_step=learner.steps or None)
    began = time.process_time() - spent
    while not (lines and _ends(lines, length)):
        before = learner.steps
        learner.advance()
        if not _passes(before, learner.steps, length.every):
            continue
        lines.append(_look(learner, length, time.process_time() - began, lines))
        for name, value in lines[-1].items():
            writer.add_scalar(f"learn/{name}", value, learner.steps)
        writer.flush()
        if lines[-1]["reward"] >= max(line["reward"] for line in lines):
            best = {"about": about, "steps": learner.steps, "actor": learner.actor.state_dict()}
            write_atomically(best, folder / BEST)
        print(" ".join(f"{name} {value:.5g}" for name, value in lines[-1].items()), flush=True)
        if lines[-1]["ended"] or _passes(before, learner.steps, length.keep):
            seconds = time.process_time() - began
            kept = {"about": about, "seconds": seconds, "lines": lines, "learner": learner.state_dict()}
            write_atomically(kept, folder / CHECKPOINT)
        (folder / PROGRESS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    writer.close()
    return lines


def _passes(before: int, now: int, every: int) -> bool:
    return before // every < now // every


def _look(learner: Learner, length: Length, seconds: float, before: list[dict[str, Any]]) -> dict[str, Any]:
    """What is known after so many steps."""
    earned = evaluate(learner.game, learner.actor, length.episodes, seed=length.episodes)
    reward = float(earned.mean()) if len(earned) else float("-inf")
    line = {"steps": learner.steps, "reward": reward, "seconds": seconds}
    return line | {"ended": _ends([*before, line], length)} | learner.told()


def _ends(lines: list[dict[str, Any]], length: Length) -> bool:
    """Whether a run of this length ends with the last of these evaluations; a longer one goes on from it."""
    last = lines[-1]
    ended = last["steps"] >= length.steps or (length.seconds is not None and last["seconds"] >= length.seconds)
    held = [line["reward"] for line in lines[-length.held :]]
    return ended or (length.aim is not None and len(held) == length.held and min(held) >= length.aim)


def _resume(learner: Learner, folder: Path, about: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
    """The lines of progress so far, and the seconds that they took."""
    path = folder / CHECKPOINT
    if not path.exists():
        return [], 0.0
    try:
        kept = torch.load(path, weights_only=True)
    except Exception as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); remove it to begin anew") from error
    if kept["about"] != about:
        raise CheckpointError(f"{path}: is of another run, {kept['about']}; give another folder, or remove it")
    learner.load_state_dict(kept["learner"])
    return kept["lines"], kept["seconds"]
