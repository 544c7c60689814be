"""Two fingers learn to lift a ball and to hold it, through contact; then to squeeze it no more than they must.

Targets of three servos, of the hand's height and of either finger, are sought at eight times, between which they are
straight: from zero, where nothing touches the ball. It is to be 0.2 m up after 1.5 s and stay there. A ball on the
ground does not tell how hard it has to be squeezed: until friction bears its weight it does not move at all. So the
search begins with a twentieth of the weight, which a light touch lifts, and raises it as it goes on. What slides tells.

    python experiments/grasp.py [--seeds 5] [--evaluations 2000] [--out out]
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import torch
from claims import Claim, write_claims
from evolution import Evolved, evolve
from hard_replay import replay
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import Trajectory
from physvision.physics.articulated import scenes
from physvision.report import render_video

mpl.use("Agg")
from matplotlib import pyplot as plt

DT, STEPS = 2e-3, 1000
AIMED, HELD = 500, 250  # last steps, in which the ball is wanted in its place, and in which it has to be there
HEIGHT, CLOSE = 0.2, 5e-3  # m
KNOTS = 8
UNITS = torch.tensor([0.05, 0.01, 0.01], dtype=torch.float64)  # m, of the unknowns: height, left, right
RADIUS, OPEN = 0.03, 0.05  # m: the ball's, and from the middle to a finger that is told nothing
SQUEEZE, DAMPING, FRICTION, MASS, WEIGHT = 400.0, 40.0, 0.5, 0.2, 9.81
RATE = 0.1  # of Adam
LIGHT, NEAR, HEAVIER = 0.05, 0.05, 1.3  # share of the weight at first; m from its place, below which that is raised
ENGINE = scenes.load("gripper", DT)
POPULATION = 4 + int(3 * math.log(3 * KNOTS))  # of CMA-ES
EFFORT = 0.01  # weight of the squared squeeze, in units of the least one
ALONG = 1e-3  # s, time constant of friction in MuJoCo
MIN_FORCE_N = MASS * WEIGHT / (2 * FRICTION)


def targets(unknowns: Tensor) -> Tensor:
    """Targets of all servos in each step, (worlds, steps, 3), from (worlds, KNOTS × 3) unknowns."""
    knots = unknowns.unflatten(1, (KNOTS, 3)) * UNITS
    # Zero at the start, where the servos are at rest.
    knots = torch.cat([torch.zeros_like(knots[:, :1]), knots], 1)
    return torch.nn.functional.interpolate(knots.mT, STEPS, mode="linear", align_corners=True).mT


def lifted(unknowns: Tensor, fractions: Tensor | float = 1.0, others: dict[str, Tensor] | None = None) -> Trajectory:
    """The motions with shares of the weight, and other properties if given."""
    worlds = len(unknowns)
    gravity = -WEIGHT * torch.tensor([0.0, 0.0, 1.0]).double() * torch.as_tensor(fractions).expand(worlds)[:, None]
    start = ENGINE.initial_state(worlds, torch.float64)
    return ENGINE.rollout(start, STEPS, targets(unknowns), properties={"gravity": gravity} | (others or {}))


def away(motion: Trajectory, steps: int = HELD) -> Tensor:
    """Distance of the ball from its target in the last steps, (worlds, steps), m."""
    place = motion.q.new_tensor([0.0, 0.0, RADIUS + HEIGHT])
    return (motion.q[:, -steps:, 3:6] - place).norm(dim=2)


def forces(motion: Trajectory, unknowns: Tensor) -> Tensor:
    """By how much either finger's servo pushes, (worlds, steps, 2), N."""
    return SQUEEZE * (targets(unknowns)[..., 1:] - motion.q[:, 1:, 1:3]) - DAMPING * motion.v[:, 1:, 1:3]


def losses(motion: Trajectory) -> Tensor:
    """Squared distance of the ball from its target, and distance of the fingers from the ball, (worlds,)."""
    ball = motion.q[:, :, 3]
    gaps = torch.stack([ball + OPEN - RADIUS - motion.q[:, :, 1], OPEN - RADIUS - ball - motion.q[:, :, 2]], 2)
    return away(motion, AIMED).square().mean(1) / HEIGHT**2 + gaps.abs().mean((1, 2)) / OPEN


def held(motion: Trajectory) -> Tensor:
    """If true, the ball stays at its target, (worlds,)."""
    return away(motion).detach().amax(1) < CLOSE


@dataclass(frozen=True)
class Search:
    """Result of the searches by gradients: unknowns, rollouts until each held, and losses."""

    unknowns: Tensor
    reached: list[float]
    courses: list[list[float]]
    seconds: float


def search(start: Tensor, max_updates: int) -> Search:
    """Adam through contact, each row of the start by itself, with a weight that is raised."""
    began = time.perf_counter()
    unknowns = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([unknowns], RATE)
    result, reached = start.clone(), [math.inf] * len(start)
    courses: list[list[float]] = [[] for _ in start]
    fractions = torch.full((len(start),), LIGHT, dtype=torch.float64)
    for count in range(1, max_updates + 1):
        motion = lifted(unknowns, fractions)
        good = held(motion) & (fractions == 1.0)
        near = away(motion).detach().mean(1) < NEAR
        fractions = torch.where(near, HEAVIER * fractions, fractions).clamp(max=1.0)
        loss = losses(motion)
        for row, entry in enumerate(loss.tolist()):
            courses[row].append(entry)
            if good[row] and math.isinf(reached[row]):
                reached[row] = count
                result[row] = unknowns[row].detach()
        if not math.isinf(max(reached)):
            break
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
    return Search(result, reached, courses, time.perf_counter() - began)


@dataclass(frozen=True)
class Light:
    """The lightest squeeze that still holds: its unknowns, mean force while it holds, N, and all forces on the way."""

    unknowns: Tensor
    force: float
    course: list[float]


def loosen(start: Tensor, updates: int) -> Light:
    """Adam on the same loss and a little of the squared forces, from one grasp that holds, (1, KNOTS × 3)."""
    unknowns = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([unknowns], 0.3 * RATE)
    result = Light(start, math.inf, [])
    for _ in range(updates):
        motion = lifted(unknowns)
        pushes = forces(motion, unknowns)
        force = float(pushes.detach()[:, -HELD:].mean())
        if bool(held(motion)) and force < result.force:
            result = Light(unknowns.detach().clone(), force, result.course)
        result.course.append(force)
        optimizer.zero_grad()
        (losses(motion) + EFFORT * (pushes / MIN_FORCE_N).square().mean((1, 2))).sum().backward()
        optimizer.step()
    return result


def draw(unknowns_found: Search, light: Light, evolved: list[list[float]], file: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for number, course in enumerate(unknowns_found.courses):
        left.plot(range(1, len(course) + 1), course, color="C0", linewidth=1, label=None if number else "gradients")
    for number, course in enumerate(evolved):
        counts = range(POPULATION, POPULATION * len(course) + 1, POPULATION)
        left.plot(counts, course, color="C1", linewidth=1, label=None if number else "CMA-ES")
    left.set(xscale="log", xlabel="rollouts", ylabel="loss")
    left.legend(frameon=False, fontsize="small")
    seconds = DT * torch.arange(STEPS)
    for name, unknowns in {"first found": unknowns_found.unknowns[:1], "lightest": light.unknowns}.items():
        with torch.no_grad():
            right.plot(seconds, forces(lifted(unknowns), unknowns)[0].mean(1), label=name)
    right.axhline(MIN_FORCE_N, color="0.7", linestyle=":")
    right.set(xlabel="s", ylabel="squeeze, N")
    right.legend(frameon=False, fontsize="small")
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def replayed(unknowns: Tensor) -> float:
    """Largest distance of the ball from its target during the hold, m, with the same targets in MuJoCo."""
    start = ENGINE.initial_state(dtype=torch.float64)
    return float(away(replay("gripper", start, STEPS, DT, along=ALONG, controls=targets(unknowns)[0])).amax())


def evolve_grasp(seed: int, max_updates: int) -> Evolved:
    """By CMA-ES, with all of the weight."""

    def judge(candidates: Tensor) -> tuple[Tensor, Tensor]:
        motion = lifted(candidates)
        return losses(motion), held(motion)

    return evolve(judge, torch.zeros(3 * KNOTS, dtype=torch.float64), 1.0, seed, max_updates)


def main(seeds: int = 5, updates: int = 200, evaluations: int = 2000, out: Path = Path("out")) -> bool:
    """Search for targets that lift the ball.

    Args:
        seeds: starts; the first is zero, the others are near it.
        updates: Maximum number of updates of each search by gradients.
        evaluations: Maximum number of evaluations of CMA-ES for each seed; 0 for none.
        out: folder of the figure and the film.

    Returns:
        Whether the ball is held from each start, and in MuJoCo.
    """
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    start = 0.1 * torch.randn(seeds, 3 * KNOTS, generator=generator, dtype=torch.float64)
    start[0] = 0.0
    result = search(start, updates)
    counts = [float(count) for count in result.reached]
    text = " ".join(f"{count:.0f}" for count in counts)
    print(f"gradients: held after {text} rollouts, all of them in {result.seconds:.1f} s", flush=True)
    motion = lifted(result.unknowns)
    pushes = forces(motion, result.unknowns)[:, -HELD:].mean((1, 2))
    text = " ".join(f"{push:.2f}" for push in pushes.tolist())
    print(f"squeezed while held by {text} N; the least that friction allows is {MIN_FORCE_N:.3f} N")
    light = loosen(result.unknowns[:1], updates)
    print(f"lightest that holds, after {updates} more: {light.force:.3f} N; at the end {light.course[-1]:.3f} N")
    evolved: list[list[float]] = []
    references: list[Evolved] = []
    for seed in range(seeds if evaluations else 0):
        reference = evolve_grasp(seed, evaluations)
        evolved.append(reference.course)
        references.append(reference)
        reached = "held" if reference.reached else f"not held, loss {reference.course[-1]:.3f}"
        print(f"CMA-ES, seed {seed}: {reached} after {reference.evaluations} in {reference.seconds:.0f} s", flush=True)
    quantity, spread = "rollouts until two fingers hold a ball, most of all starts", (min(counts), max(counts))
    best = min((entry.evaluations for entry in references if entry.reached), default=None)
    source = "" if best is None else "CMA-ES, as here, best seed"
    claim = Claim(quantity, max(counts), "rollouts", spread, tuple(range(seeds)), best, source)
    print(write_claims(__file__, [claim]))
    again = [replayed(unknown[None]) for unknown in result.unknowns]
    print("in MuJoCo the ball is from its place by", " ".join(f"{1e3 * entry:.1f}" for entry in again), "mm", end="")
    print(f"; held lightest by {1e3 * replayed(light.unknowns):.1f} mm")
    draw(result, light, evolved, out / "grasp.png")
    print(f"figure: {out / 'grasp.png'}")
    print(f"film: {render_video(ENGINE, motion, out / 'grasp.mp4')}")
    return max(result.reached) <= updates and max(again) < 2 * CLOSE


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
