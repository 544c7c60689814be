"""Infer the mass of a chain that a ball strikes: section 4.1 of "End-to-End Differentiable Physics" (2018).

A ball hits the end of a hanging chain; from where everything is after 100 steps, or from the whole trajectory, the
chain's mass is found, from 1 to the true 7. Three panels are drawn: the scene, the course of the mass, and the time of
the analytic and of the numerical gradient with respect to the masses of all links.

    python experiments/mass_inference.py [--links '[5,10]'] [--steps 100] [--out out]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import matplotlib as mpl
import torch
from claims import Claim, write_claims
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import Trajectory
from physvision.estimation import MotionResidual, Setup, Unknown, Unknowns, descend, gauss_newton
from physvision.physics import rigid2d

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # where the scenes are
import rigid2d_scenes as scenes  # pyright: ignore[reportMissingImports]

mpl.use("Agg")
from matplotlib import pyplot as plt

TRUE, FIRST = 7.0, 1.0
CLOSE = 1e-3  # relative
PUBLISHED = {5: 14, 10: 20}  # updates that the published engine needed
MAX_ITERATIONS = 8
Runs = Callable[[Tensor], Trajectory]


def chain_runs(links: int, steps: int) -> tuple[rigid2d.World, Runs]:
    """The struck chain, and its trajectories given masses of all links, (batch, links)."""
    world = scenes.struck_chain(links)

    def run(masses: Tensor) -> Trajectory:
        batch = masses.shape[0]
        mass = torch.cat([masses, masses.new_ones(batch, 1)], 1)
        state = world.initial_state(batch, torch.float64)
        return world.rollout(state, steps, scenes.push(world, steps, batch), {"mass": mass})

    return world, run


def spread(total: Tensor, links: int) -> Tensor:
    """Masses of equal links, (batch, links), given those of the chains, (batch)."""
    return (total / links).unsqueeze(1).expand(-1, links)


def published(run: Runs, links: int, target: Tensor, whole: bool, max_iterations: int = 200) -> list[float]:
    """The paper's procedure: gradient descent at rate 0.01, gradients clipped at 100; the mass after each update."""
    mass = torch.tensor([FIRST], dtype=torch.float64, requires_grad=True)
    course = [FIRST]

    def loss() -> Tensor:
        q = run(spread(mass, links)).q
        return ((q if whole else q[:, -1:]) - target).square().mean()

    def close() -> bool:
        course.append(float(mass.detach()))
        return abs(course[-1] - TRUE) <= CLOSE * TRUE

    descend(loss, torch.optim.SGD([mass], lr=0.01), max_iterations, max_grad_norm=100.0, callback=close)
    return course


def least_squares(links: int, steps: int, target: Tensor) -> list[float]:
    """Gauss–Newton in the logarithm of the mass, from where all is at the end; the mass after each update."""
    world, _ = chain_runs(links, steps)

    def setup(values) -> Setup:
        mass = values["mass"]
        batch = len(mass)
        masses = torch.cat([spread(mass, links), mass.new_ones(batch, 1)], 1)
        return Setup(world.initial_state(batch, torch.float64), {"mass": masses}, scenes.push(world, steps, batch))

    times = torch.tensor([steps * world.dt], dtype=torch.float64)
    problem = MotionResidual(world, Unknowns([Unknown("mass", FIRST, low=0.0)]), setup, times, target[0, -1:])
    course = problem.unknowns.flat_values(gauss_newton(problem, damping=0.0).history).flatten().tolist()
    close = [abs(mass - TRUE) <= CLOSE * TRUE for mass in course]
    return course[: close.index(True) + 1] if any(close) else course


def gradient_times(links: int, steps: int, rounds: int = 5) -> tuple[float, float]:
    """Seconds for the gradient with respect to the mass of each link: analytic, and by forward differences."""
    _, run = chain_runs(links, steps)
    masses = torch.full((1, links), TRUE / links, dtype=torch.float64)

    def loss(values: Tensor) -> Tensor:
        return run(values).q[:, -1].square().mean()

    def analytic() -> None:
        values = masses.clone().requires_grad_()
        torch.autograd.grad(loss(values), values)

    def numerical() -> None:
        base = loss(masses)
        for link in range(links):
            moved = masses.clone()
            moved[0, link] += 1e-6
            difference = (loss(moved) - base) / 1e-6
            assert bool(difference.isfinite())

    times: list[list[float]] = [[], []]
    for _ in range(rounds + 1):
        for entry, work in zip(times, (analytic, numerical), strict=True):
            began = time.thread_time()
            work()
            entry.append(time.thread_time() - began)
    return median(times[0][1:]), median(times[1][1:])


def draw(courses: dict[str, list[float]], clock: dict[int, tuple[float, float]], steps: int, file: Path) -> None:
    figure, (scene, course, times) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    world, run = chain_runs(10, steps)
    trajectory = run(spread(torch.tensor([TRUE], dtype=torch.float64), 10))
    rigid2d.plot(world, trajectory.final, axes=scene)
    for body in range(world.nq // 3):
        scene.plot(*trajectory.q[0, :, 3 * body : 3 * body + 2].T, color="0.6", linewidth=0.5, zorder=0)
    scene.set(title=f"After {steps} steps", xlabel="x, px", ylabel="y, px")
    for number, (label, masses) in enumerate(courses.items()):
        color, line = f"C{number % 3}", ("-", "--", ":")[number // 3 % 3]
        course.plot(masses, label=label, linewidth=1.3, color=color, linestyle=line)
    course.axhline(TRUE, color="0.6", linestyle=":")
    course.set(title="Mass found", xlabel="update", ylabel="mass, kg", xscale="symlog", xlim=(0, None))
    course.set_ylim(0, 1.1 * TRUE)
    course.legend(frameon=False, fontsize="x-small", loc="lower right")
    for column, label in enumerate(("analytic", "numerical")):
        times.plot(list(clock), [1e3 * pair[column] for pair in clock.values()], marker=".", label=label)
    times.set(title="Gradient to the masses of all links", xlabel="links", ylabel="time, ms", yscale="log")
    times.legend(frameon=False)
    for axes in (course, times):
        axes.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main(links: tuple[int, ...] = (5, 10), steps: int = 100, out: Path = Path("out")) -> bool:
    """Infer the mass by three procedures, and time the gradients.

    Args:
        links: lengths of the chains whose mass is inferred.
        steps: Number of simulated steps of 1/30 s.
        out: folder of the figure.

    Returns:
        Whether every procedure came within 0.1 % in as few updates as it should.
    """
    torch.set_num_threads(1)
    met, courses, claims = True, {}, []
    print(f"{'links':>5}  {'procedure':<34}{'updates':>8}{'at most':>9}{'mass':>11}")
    for count in links:
        _, run = chain_runs(count, steps)
        target = run(spread(torch.tensor([TRUE], dtype=torch.float64), count)).q
        results = {
            "final position, SGD": (published(run, count, target[:, -1:], False), PUBLISHED.get(count, 200)),
            "final position, Gauss–Newton": (least_squares(count, steps, target), MAX_ITERATIONS),
            "whole trajectory, SGD": (published(run, count, target, True), 200),
        }
        for name, (course, limit) in results.items():
            courses[f"{name}, {count} links"] = course
            quantity = f"updates until a mass is within 0.1 %: {name}, {count} links"
            paper = PUBLISHED.get(count) if name == "final position, SGD" else None
            source = "de Avila Belbute-Peres et al. 2018" if paper else ""
            claims.append(Claim(quantity, len(course) - 1, "updates", None, (), paper, source))
            met &= abs(course[-1] - TRUE) <= CLOSE * TRUE and len(course) - 1 <= limit
            print(f"{count:>5}  {name:<34}{len(course) - 1:>8}{limit:>9}{course[-1]:>11.5f}")
    print(write_claims(__file__, claims))
    print(f"every mass within {CLOSE:.1%} in at most so many updates: {'met' if met else 'MISSED'}")
    print(f"\n{'links':>5}{'analytic, ms':>14}{'numerical, ms':>15}{'ratio':>8}")
    clock = {}
    for count in (1, 2, 3, 5, 7, 10, 15, 20):
        clock[count] = gradient_times(count, steps)
        print(f"{count:>5}{clock[count][0] * 1e3:>14.2f}{clock[count][1] * 1e3:>15.2f}", end="")
        print(f"{clock[count][1] / clock[count][0]:>8.1f}")
    draw(courses, clock, steps, out / "mass_inference.png")
    print(f"figure: {out / 'mass_inference.png'}")
    return met


if __name__ == "__main__":
    auto_cli(main)
