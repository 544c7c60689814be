"""Teach an arm to reach a point: section "robot arm" of "A Differentiable Physics Engine …" (2019).

An arm with two axes at its base and two at its elbow, 1 m long, on servos (30 1/s, 30 N m, 45°/s), starts upright; its
policy, a network of 17,284 parameters, is told how far the tip is from (0.5, 0.5, 0.5) m a hundred times a second for
8 s and answers with targets of the servos. It learns by gradients through all 800 steps. The error is the distance of
the tip averaged over the last half second. The four habits of training are taken away one by one.

    python experiments/reach.py [--seeds 5] [--updates 150] [--habits true] [--out out]
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import matplotlib as mpl
import torch
from evolution import evolve
from jsonargparse import auto_cli
from torch import Tensor, nn
from torch.optim import Optimizer

from physvision.control.policies import Dense, Policy, Servo, Task, play
from physvision.core import State
from physvision.physics.articulated import scenes
from physvision.report import film
from physvision.trainers import PolicyTraining

mpl.use("Agg")
from matplotlib import pyplot as plt

DT, TARGET = 0.01, (0.5, 0.5, 0.5)
# Centimetres that are to be reached, and within how many evaluations.
BARS = {4.0: 100, 1.0: 150}
PAPER = "paper: within 4 cm in 100 evaluations, 1 cm in 150; CMA-ES 93 ± 37 cm after 60,000"


class Reach(Task):
    """The tip of the arm is to be at a point."""

    def __init__(self, seconds: float = 8.0) -> None:
        self.engine = self.arm = scenes.load("arm", DT)
        self.periods = round(seconds / DT)
        self.servo = Servo(30.0, math.radians(45.0), 30.0)
        body, self.offset = self.engine.sites["tip"]
        self.body = body

    def begin(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """The arm stands upright."""
        aim = torch.tensor(TARGET, dtype=torch.float64).expand(batch, 3)
        return self.engine.initial_state(batch, torch.float64), aim

    def distance(self, state: State, aim: Tensor) -> Tensor:
        """From the tip to the aim, m."""
        pose = self.arm.poses(state)[:, self.body]
        tip = pose[:, :3, 3] + pose[:, :3, :3] @ pose.new_tensor(self.offset)
        return ((tip - aim).square().sum(-1) + 1e-12).sqrt()

    def sense(self, state: State, aim: Tensor) -> Tensor:
        """The distance, m."""
        return self.distance(state, aim).unsqueeze(-1)

    def act(self, state: State, output: Tensor) -> Tensor:
        """Torques of the servos whose targets, rad, the outputs are."""
        return self.servo(self.arm, state, output)

    def losses(self, state: State, aim: Tensor) -> Tensor:
        """The distance, m."""
        return self.distance(state, aim)


class Many(Policy):
    """Networks that differ from world to world: batches of matrices."""

    def __init__(self, networks: Sequence[Dense]) -> None:
        super().__init__()
        layers = [[*network.hidden, network.output] for network in networks]
        self.weights = nn.ParameterList(
            torch.stack([each.weight.detach().mT for each in row]) for row in zip(*layers, strict=True)
        )
        self.biases = nn.ParameterList(
            torch.stack([each.bias.detach()[None] for each in row]) for row in zip(*layers, strict=True)
        )

    def still(self) -> None:
        """Make all outputs zero."""
        nn.init.zeros_(self.weights[-1])
        nn.init.zeros_(self.biases[-1])

    def set(self, vectors: Tensor) -> None:
        """Take each world's parameters from a row, the layers one after another."""
        parts = [each for pair in zip(self.weights, self.biases, strict=True) for each in pair]
        for part, given in zip(parts, vectors.split([each[0].numel() for each in parts], 1), strict=True):
            part.data = given.reshape(-1, *part.shape[1:])

    def forward(self, sensed: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Each world's outputs by its own network."""
        layer = sensed.unsqueeze(1)
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            layer = torch.baddbmm(bias, layer.relu() if number else layer, weight)
        return layer.squeeze(1), memory


def network(seed: int) -> Dense:
    torch.manual_seed(seed)
    return Dense(1, (128, 128), 4).double()


class Teaching(PolicyTraining):
    """Trains several policies side by side, each on a world of its own as if alone, until all are good enough."""

    def __init__(self, policy: Many, *args, enough: float, **kwargs) -> None:
        super().__init__(policy, *args, batch=len(policy.weights[0]), **kwargs)
        self.errors: list[list[float]] = [[] for _ in range(self.batch)]
        self.means: list[list[float]] = [[] for _ in range(self.batch)]
        self.enough, self.seconds = enough, 0.0

    def training_step(self, batch: int, batch_idx: int) -> Tensor:
        """The sum of the policies' losses, so that each has the gradient that it would have alone."""
        return self.batch * super().training_step(batch, batch_idx)

    def configure_gradient_clipping(
        self, optimizer: Optimizer, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip each policy's gradient."""
        gradients = [each.grad for each in self.policy.parameters() if each.grad is not None]
        norms = torch.stack([each.flatten(1).square().sum(1) for each in gradients]).sum(0).sqrt()
        if self.clip is not None:
            for each in gradients:
                each *= (self.clip / norms).clamp(max=1.0)[:, None, None]

    def on_train_batch_end(self, outputs: object, batch: int, batch_idx: int) -> None:
        """Take down what the episode was like, cm."""
        assert self.last is not None
        distances = 100 * self.last.losses.detach()
        for world, row in enumerate(distances):
            self.errors[world].append(float(row[-round(0.5 / DT) :].mean()))
            self.means[world].append(float(row.mean()))
        worst = max(min(each) for each in self.errors)
        if len(self.errors[0]) % 10 == 0:
            print(f"  {len(self.errors[0]):>4} updates: {worst:.2f} cm at worst", flush=True)
        self.trainer.should_stop = worst < self.enough


def taught(seeds: Sequence[int], updates: int, task: Reach, enough: float, **habits) -> Teaching:
    """How policies of these seeds were trained."""
    from lightning import Trainer

    module = Teaching(Many([network(seed) for seed in seeds]), task, updates, enough=enough, **habits)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data loaders without workers
        Trainer(max_epochs=1, accelerator="cpu", **quiet).fit(module)
    module.seconds = time.perf_counter() - began
    return module


def first_below(errors: list[float], bar: float) -> float:
    """The number of the first evaluation whose error is below, cm; infinite if none is."""
    return next((count + 1.0 for count, error in enumerate(errors) if error < bar), math.inf)


def evolved(seed: int, task: Reach, most: int) -> tuple[float, int, float]:
    """The best mean distance, cm, by CMA-ES from the policy that stands still; evaluations, and seconds."""
    policy = Many([network(seed)])
    policy.still()
    start = torch.cat([each.flatten() for pair in zip(policy.weights, policy.biases, strict=True) for each in pair])
    best = math.inf

    def judge(vectors: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal best
        policy.set(vectors)
        played = play(task, policy, *task.begin(len(vectors), torch.Generator()))
        losses = played.losses.mean(1)
        best = min(best, 100 * float(losses.min()))
        return losses, torch.zeros(len(vectors), dtype=torch.bool)

    found = evolve(judge, start.detach(), 0.01, seed, most)
    return best, found.evaluations, found.seconds


def draw(courses: dict[str, list[list[float]]], file: Path) -> None:
    figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for number, (name, errors) in enumerate(courses.items()):
        for each in errors:
            axis.semilogy(range(1, len(each) + 1), each, color=f"C{number}", linewidth=1, label=name)
            name = None
    for bar in BARS:
        axis.axhline(bar, color="0.7", linestyle=":")
    axis.set(xlabel="evaluations", ylabel="distance, last half second, cm")
    axis.legend(frameon=False, fontsize="small")
    axis.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


HABITS = {
    "no decay": {"decay": 1.0},
    "no clip": {"clip": None},
    "last state's loss": {"averaged": False},
    "random outputs at first": {"still": False},
}


def told(name: str, training: Teaching, world: int = 0) -> None:
    errors = training.errors[world]
    reached = "".join(f"{first_below(errors, bar):>12.0f}" for bar in BARS)
    print(f"{name:<26}{reached}{min(errors):>11.2f}{training.means[world][-1]:>11.1f}", end="")
    print(f"{training.seconds / len(errors) / training.batch:>9.2f}", flush=True)


def main(
    seeds: int = 5,
    updates: int = 150,
    habits: bool = True,
    evaluations: int = 2000,
    seconds: float = 8.0,
    out: Path = Path("out"),
) -> bool:
    """Teach the arm.

    Args:
        seeds: of the network; 0, 1, 2 …
        updates: at most so many for each policy.
        habits: whether the four habits are taken away one by one, with seed 0.
        evaluations: of CMA-ES, with seed 0; 0 for none.
        seconds: of an episode.
        out: folder of the figure and the film.

    Returns:
        Whether the median over seeds meets both bars.
    """
    torch.set_num_threads(1)
    task = Reach(seconds)
    count = sum(each.numel() for each in Dense(1, (128, 128), 4).parameters())
    print(f"{PAPER}; network of {count:,} parameters")
    columns = "".join(f"{f'{bar:g} cm after':>12}" for bar in BARS)
    print(f"{'':<26}{columns}{'least, cm':>11}{'mean, cm':>11}{'s each':>9}")
    whole = taught(range(seeds), updates, task, min(BARS))
    for seed in range(seeds):
        told(f"seed {seed}", whole, seed)
    courses = {"all four habits": whole.errors}
    reached = {bar: median(first_below(each, bar) for each in whole.errors) for bar in BARS}
    met = all(reached[bar] <= most for bar, most in BARS.items())
    print(f"median {reached[4.0]:.0f} and {reached[1.0]:.0f} evaluations: {'met' if met else 'MISSED'}", flush=True)
    for name, left_out in HABITS.items() if habits else ():
        course = taught([0], updates, task, min(BARS), **left_out)
        told(name, course)
        courses[name] = course.errors
    if evaluations:
        best, tried, spent = evolved(0, task, evaluations)
        print(f"CMA-ES, {tried} evaluations in {spent:.0f} s: least mean distance {best:.1f} cm")
    assert whole.last is not None
    draw(courses, out / "reach.png")
    print(f"figure: {out / 'reach.png'}, film: {film(task.engine, whole.last.trajectory, out / 'reach.mp4')}")
    return met


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
