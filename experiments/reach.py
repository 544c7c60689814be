"""Teach an arm to reach a point: section "robot arm" of "A Differentiable Physics Engine …" (2019).

An arm with two axes at its base and two at its elbow, 1 m long, on servos (30 1/s, 30 N m, 45°/s), starts upright; its
policy, a network of 17,284 parameters, is told how far the tip is from (0.5, 0.5, 0.5) m a hundred times a second for
8 s and answers with targets of the servos. It learns by gradients through all 800 steps. The error is the distance of
the tip averaged over the last half second. Policies of several seeds, and some without one of the four habits of
training, learn side by side, each as if alone. The best are replayed in MuJoCo.

    python experiments/reach.py [--seeds 5] [--updates 150] [--habits 1] [--out out]
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from claims import Claim, write_claims
from evolution import Evolved, evolve
from hard_replay import replay
from jsonargparse import auto_cli
from panel import panel, save
from side_by_side import Many, Teaching, taught
from torch import Tensor

from physvision.control.policies import FeedbackTask, MlpPolicy, PolicyRollout, rollout_policy
from physvision.core import State, Trajectory
from physvision.physics.articulated import scenes
from physvision.report import render_video
from physvision.trainers import StabilizerSettings

DT, TARGET = 0.01, (0.5, 0.5, 0.5)
# Centimetres that are to be reached, and within how many evaluations.
BARS = {4.0: 100, 1.0: 150}
PAPER = "paper: within 4 cm in 100 evaluations, 1 cm in 150; CMA-ES 93 ± 37 cm after 60,000"
SPREADS = (0.01, 0.03, 0.1)  # of CMA-ES at first
ALL = StabilizerSettings()
HABITS = {
    "all four habits": ALL,
    "no decay": replace(ALL, gradient_decay=1.0),
    "no clip": replace(ALL, max_grad_norm=None),
    "last state's loss": replace(ALL, mean_loss=False),
    "random outputs at first": replace(ALL, zero_init_output=False),
}


class Reach(FeedbackTask):
    """The tip of the arm is to be at a point."""

    def __init__(self, seconds: float = 8.0) -> None:
        self.engine = self.arm = scenes.load("arm", DT)
        self.episode_steps = round(seconds / DT)
        body, self.offset = self.engine.sites["tip"]
        self.body = body

    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """The arm stands upright."""
        goal = torch.tensor(TARGET, dtype=torch.float64).expand(batch, 3)
        return self.engine.initial_state(batch, torch.float64), goal

    def tip(self, state: State) -> Tensor:
        """Position of the tip, m."""
        pose = self.arm.poses(state)[:, self.body]
        return pose[:, :3, 3] + pose[:, :3, :3] @ pose.new_tensor(self.offset)

    def distance(self, state: State, goal: Tensor) -> Tensor:
        """From the tip to the goal, m."""
        return ((self.tip(state) - goal).square().sum(-1) + 1e-12).sqrt()

    def observe(self, state: State, goal: Tensor) -> Tensor:
        """Observe the distance to the target, m."""
        return self.distance(state, goal).unsqueeze(-1)

    def act(self, state: State, output: Tensor) -> Tensor:
        """Targets of the servos, rad."""
        return output

    def losses(self, state: State, goal: Tensor) -> Tensor:
        """Distance to the target, m."""
        return self.distance(state, goal)


def network(seed: int) -> MlpPolicy:
    torch.manual_seed(seed)
    return MlpPolicy(1, (128, 128), 4).double()


def measured(rollout: PolicyRollout) -> Tensor:
    """The distance over the last half second, and over all of the episode, cm."""
    distances = 100 * rollout.losses.detach()
    return torch.stack([distances[:, -round(0.5 / DT) :].mean(1), distances.mean(1)], 1)


def first_below(errors: list[float], bar: float) -> float:
    """The number of the first evaluation whose error is below, cm; infinite if none is."""
    return next((count + 1.0 for count, error in enumerate(errors) if error < bar), math.inf)


def replayed(task: Reach, vector: Tensor) -> tuple[float, Trajectory]:
    """The error in MuJoCo, cm, of the policy with these parameters, which is told of MuJoCo's distances."""
    policy = Many([network(0)])
    policy.set(vector[None])
    start, goal = task.reset(1, torch.Generator())
    blank = policy.initial_hidden(start.q)
    motion = replay(
        "arm",
        start,
        task.episode_steps,
        DT,
        controls=lambda state: policy(task.observe(state, goal), blank)[0].detach(),
    )
    states = motion[1:].flatten()
    return 100 * float(task.distance(states, goal)[-round(0.5 / DT) :].mean()), motion


def evolved(seed: int, task: Reach, max_evaluations: int, spread: float) -> tuple[Evolved, list[list[float]]]:
    """By CMA-ES from the policy that stands still; the error and mean distance of each evaluation, cm."""
    policy = Many([network(seed)])
    policy.zero_output()
    candidate: list[list[float]] = []

    def judge(vectors: Tensor) -> tuple[Tensor, Tensor]:
        policy.set(vectors)
        rollout = rollout_policy(task, policy, *task.reset(len(vectors), torch.Generator()))
        candidate.extend(measured(rollout).tolist())
        return rollout.losses.mean(1), torch.zeros(len(vectors), dtype=torch.bool)

    return evolve(judge, policy.vectors()[0], spread, seed, max_evaluations), candidate


def draw(courses: dict[str, list[list[float]]], file: Path) -> None:
    figure, axis = panel()
    for number, (name, errors) in enumerate(courses.items()):
        for order, entry in enumerate(errors):
            label = None if order else name
            axis.semilogy(range(1, len(entry) + 1), entry, color=f"C{number}", linewidth=1, alpha=0.7, label=label)
    for bar in BARS:
        axis.axhline(bar, color="0.7", linestyle=":")
    axis.set(xlabel="evaluations", ylabel="distance, last half second, cm")
    save(figure, axis, file)


def tell(name: str, courses: list[list[list[float]]]) -> list[float]:
    """Print how policies fared; the median numbers of evaluations after which they were below each bar."""
    errors = [[row[0] for row in course] for course in courses]
    reached = [[first_below(error, bar) for error in errors] for bar in BARS]
    columns = "".join(f"{' '.join(f'{count:.0f}' for count in counts):>26}" for counts in reached)
    minimum = " ".join(f"{min(error):.2f}" for error in errors)
    means = " ".join(f"{course[-1][1]:.1f}" for course in courses)
    print(f"{name:<25}{columns}{minimum:>26}{means:>28}", flush=True)
    return [median(counts) for counts in reached]


def main(
    seeds: int = 5,
    updates: int = 150,
    habits: int = 1,
    evaluations: int = 2000,
    seconds: float = 8.0,
    out: Path = Path("out"),
) -> bool:
    """Train the arm to reach a point.

    Args:
        seeds: Number of seeds of the network; 0, 1, 2 …
        updates: Updates of each policy.
        habits: seeds with which the four habits are taken away one by one too.
        evaluations: Evaluations of CMA-ES, with seed 0; 0 for none.
        seconds: Duration of an episode, s.
        out: folder of the figure and the film.

    Returns:
        Whether the median over seeds meets both bars.
    """
    torch.set_num_threads(1)
    task = Reach(seconds)
    count = sum(parameter.numel() for parameter in network(0).parameters())
    print(f"{PAPER}; network of {count:,} parameters")
    pairs = [(kind, seed) for kind, habit in HABITS.items() for seed in range(seeds if habit is ALL else habits)]
    selected, networks = [HABITS[kind] for kind, _ in pairs], [network(seed) for _, seed in pairs]
    training: Teaching = taught(networks, task, updates, measured, selected, label="cm")
    columns = "".join(f"{f'below {bar:g} cm after':>26}" for bar in BARS)
    print(f"{'a column of numbers a seed':<25}{columns}{'least error, cm':>26}{'mean distance, cm':>28}")
    courses: dict[str, list[list[list[float]]]] = {kind: [] for kind, _ in pairs}
    for (kind, _), course in zip(pairs, training.courses, strict=True):
        courses[kind].append(course)
    medians = {kind: tell(kind, course) for kind, course in courses.items()}["all four habits"]
    met = all(reached <= entry for reached, entry in zip(medians, BARS.values(), strict=True))
    item = training.seconds / len(training.courses[0]) / len(selected)
    print(f"median {medians[0]:.0f} and {medians[1]:.0f} evaluations: {'met' if met else 'MISSED'}; {item:.2f} s each")
    again = [replayed(task, training.best[seed]) for seed in range(seeds)]
    text = " ".join(f"{error:.2f}" for error, _ in again)
    ours = " ".join(f"{error:.2f}" for error in training.best_losses[:seeds].tolist())
    print(f"the best policies, error in cm: ours {ours}; in MuJoCo {text}", flush=True)
    errors = {kind: [[row[0] for row in course] for course in entry] for kind, entry in courses.items()}
    draw(errors, out / "reach.png")
    print(f"figure: {out / 'reach.png'}, film: {render_video(task.engine, again[0][1], out / 'reach.mp4')}", flush=True)
    min_evaluations = math.inf  # evaluations after which CMA-ES is below the first bar
    for spread in SPREADS if evaluations else ():
        result, candidate = evolved(0, task, evaluations, spread)
        counts = [first_below([row[0] for row in candidate], bar) for bar in BARS]
        min_evaluations, reached = min(min_evaluations, counts[0]), " and ".join(f"{count:.0f}" for count in counts)
        error, mean = min(candidate, key=lambda row: row[1])
        text = f"mean distance {mean:.1f}, error {error:.2f} cm; in MuJoCo {replayed(task, result.values)[0]:.2f} cm"
        print(f"CMA-ES, diagonal, σ₀ {spread:g}, {len(candidate)} evaluations, {result.seconds:.0f} s: {text}", end="")
        print(f"; below {' and '.join(f'{bar:g}' for bar in BARS)} cm after {reached}", flush=True)
    name = "evaluations until four servos reach a point within 4 cm"
    peer = min_evaluations if min_evaluations < math.inf else None
    claim = Claim(name, medians[0], "evaluations", seeds=tuple(range(seeds)), reference=peer, source="CMA-ES, as here")
    print(write_claims(__file__, [claim]))
    return met


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
