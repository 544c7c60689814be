"""A policy taught by backpropagation through 200 steps beside iLQR's plans, on the same swing-up of a cartpole.

    python experiments/policy_and_plan.py [--updates 300] [--batch 64] [--seeds 1]

The cartpole of `physvision control cartpole` hangs, somewhat off rest (0.1 m, rad, m/s and rad/s); for 4 s each state
costs the weighted squares of what it misses standing by, and the force, at most 10 N, costs nothing. The policy, two
layers of 64, sees the state every 0.02 s and is taught by gradients through engine and policy, from where it will be
asked to start and, more often, from any angle in motion; what is left of a gradient after each step is 0.96 of it.
iLQR plans each of ten other starts alone, for the same cost. One line a seed goes to out/policy_and_plan.jsonl.
"""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from jsonargparse import auto_cli
from result_cache import cached_results
from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import CosineAnnealingLR

from physvision import State
from physvision.control import Goal, ilqr
from physvision.control.policies import FeedbackTask, MlpPolicy, rollout_policy
from physvision.control.swing_up import SWING_UP_TASKS
from physvision.trainers import PolicyTraining, StabilizerSettings

PERIODS, OFF, TESTS = 200, 0.1, 10
# Of a batch, those that are taught from any angle; and how far off rest: cart and rod, m and m/s, rad/s.
ANYWHERE, PLACE, SPEED, TURN = 0.7, 0.5, 1.0, 2.0


class Swing(FeedbackTask):
    """Stand up and stay."""

    def __init__(self) -> None:
        self.poles = SWING_UP_TASKS["cartpole"]()
        self.engine, self.episode_steps = self.poles.engine, PERIODS
        self.goal = self.poles.goal()

    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """Near hanging at rest."""
        rest = self.poles.reset(batch)
        off = OFF * torch.randn(2, *rest.q.shape, generator=generator, dtype=torch.float64)
        return State(rest.q + off[0], rest.v + off[1]), rest.q[:, :0]

    def observe(self, state: State, goal: Tensor) -> Tensor:
        """Observe the whole state."""
        return self.poles.features(state)

    def act(self, state: State, output: Tensor) -> Tensor:
        """A share of the largest force."""
        return self.poles.control_limit[0] * output.tanh()

    def losses(self, state: State, goal: Tensor) -> Tensor:
        """Cost of the states."""
        return (self.poles.features(state) - self.goal.target).square() @ self.goal.weights


class Practice(Swing):
    """Training task that also starts from states of a swing-up, so that the policy learns to balance."""

    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """Most anywhere, the others near hanging at rest."""
        start, goal = super().reset(batch, generator)
        many = int(ANYWHERE * batch)
        q, v = start.q.clone(), start.v.clone()
        off = torch.randn(3, many, generator=generator, dtype=torch.float64)
        q[:many, 1] = math.pi * (2 * torch.rand(many, generator=generator, dtype=torch.float64) - 1)
        q[:many, 0] += PLACE * off[0]
        v[:many] += torch.stack([SPEED * off[1], TURN * off[2]], 1)
        return State(q, v), goal


class Training(PolicyTraining):
    """With smaller and smaller steps."""

    def configure_optimizers(self) -> Any:
        """Adam, whose rate falls to zero as a cosine."""
        optimizer = Adam(self.policy.parameters(), self.learning_rate)
        schedule = CosineAnnealingLR(optimizer, self.updates)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def taught(seed: int, updates: int, batch: int) -> dict:
    """A policy of this seed, and what it costs from other starts."""
    from lightning import Trainer

    task = Swing()
    torch.manual_seed(seed)
    policy = MlpPolicy(len(task.poles.target), (64, 64), 1).double()
    stabilizers = StabilizerSettings(gradient_decay=0.96)
    training = Training(policy, Practice(), updates, batch, seed, learning_rate=5e-3, stabilizers=stabilizers)
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    start_value = time.process_time()
    Trainer(max_epochs=1, enable_model_summary=False, **options).fit(training)
    seconds = time.process_time() - start_value
    start, goal = task.reset(TESTS, torch.Generator().manual_seed(1_000 + seed))
    start_value = time.process_time()
    with torch.no_grad():
        rollout = rollout_policy(task, policy, start, goal)
    return {
        "method": "policy",
        "seed": seed,
        "updates": updates,
        "batch": batch,
        "cost": rollout.losses.sum(1).tolist(),
        "standing": task.poles.upright_cosine(rollout.trajectory.final).tolist(),
        "seconds": seconds,
        "playing": (time.process_time() - start_value) / TESTS,
    }


def planned(seed: int) -> dict:
    """Plans by iLQR from the same starts, all at once, from random forces; the same cost, force all but free."""
    task = Swing()
    start, _ = task.reset(TESTS, torch.Generator().manual_seed(1_000 + seed))
    goal = Goal(task.goal.features, task.goal.target, task.goal.weights, 1e-9)
    first = 0.5 * task.poles.random_controls(TESTS, PERIODS, seed)
    start_value = time.process_time()
    plan, progress = ilqr(task.engine, start, first, goal, task.poles.bounds(), iterations=200)
    seconds = time.process_time() - start_value
    losses = task.losses(plan.trajectory[1:].flatten(), first).unflatten(0, (TESTS, PERIODS))
    results = {"method": "iLQR", "seed": seed, "cost": losses.sum(1).tolist(), "rounds": progress.iterations.tolist()}
    return results | {"standing": task.poles.upright_cosine(plan.trajectory.final).tolist(), "playing": seconds / TESTS}


def main(updates: int = 300, batch: int = 64, seeds: int = 1, out: Path = Path("out")) -> None:
    """Run what is missing, and print the table."""
    warnings.filterwarnings("ignore", category=UserWarning)
    keys = [(method, seed) for seed in range(seeds) for method in ("iLQR", "policy")]
    result = cached_results(
        out / "policy_and_plan.jsonl",
        keys,
        lambda key: planned(key[1]) if key[0] == "iLQR" else taught(key[1], updates, batch),
        lambda row: (row["method"], row["seed"]),
    )
    for key in keys:
        row, costs = result[key], torch.tensor(result[key]["cost"])
        up = sum(height > 0.95 for height in row["standing"])
        how = f"{row['updates']} updates of {row['batch']}, {row['seconds']:.0f} s" if "updates" in row else "planned"
        print(
            f"{key[0]:6s} seed {key[1]}: cost {costs.median():.0f} ({costs.min():.0f} to {costs.max():.0f}), {up} of "
            f"{TESTS} stand at the end; {how}, {row['playing']:.2f} s of processor time a start"
        )


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
