"""Throw a marble to a target with an arm: the throw of "Efficient Differentiable Simulation …" (2021).

A torque for each of seven joints and each of 750 steps of 2 ms is sought, from zero, such that the marble, which two
fingers hold by friction until they open after 0.4 s, is 1.2 m ahead on the ground after 1.5 s. Torques are counted from
those that hold the arm up. The paper's program has gravity at 1/980 of a meter a second squared; here it is 9.81.

    python experiments/arm_throw.py [--generations 500] [--out out]
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

import matplotlib as mpl
import torch
from claims import Claim, write_claims
from evolution import Evolved, evolve
from hard_replay import replay
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.physics.articulated import Articulation, scenes
from physvision.report import render_video

mpl.use("Agg")
from matplotlib import pyplot as plt

DT, STEPS, RELEASE = 2e-3, 750, 200
TARGET = torch.tensor([1.2, 0.0], dtype=torch.float64)  # x, y, m; the ground is at z = 0
CLOSE, BAR = 0.05, 20  # m; iterations
SLOW = 0.1  # s, weight of the last speed beside the distance
HELD, OPENED = 2e-3, -0.02  # m, targets of the fingers' servos: the first presses with 16 N
LONGEST = 10.0  # N m, root mean square of a change of the torques while the hand is closed
ALONG = 1e-3  # s, time constant of friction in MuJoCo
SCENE = "throwing_arm"
ENGINE = scenes.load(SCENE, DT)
JOINTS, MARBLE = 7, ENGINE.body_names.index("marble")
POPULATION = 4 + int(3 * math.log(STEPS * JOINTS))  # of CMA-ES


def controls(torques: Tensor) -> Tensor:
    """Controls of all actuators in each step, (batch, steps, 9)."""
    fingers = torques.new_full((*torques.shape[:2], 2), HELD)
    fingers[:, RELEASE:] = OPENED
    return torch.cat([torques, fingers], 2)


def lifting(engine: Articulation, steps: int) -> Tensor:
    """Upward forces that support the weight of every body but the marble, (1, steps, bodies, 6)."""
    wrenches = torch.zeros(len(engine.body_names), 6, dtype=torch.float64)
    wrenches[:, 2] = 9.81 * dict(engine.properties.items())["mass"]
    wrenches[MARBLE] = 0.0
    return wrenches.expand(1, steps, -1, -1)


def thrown(torques: Tensor) -> Trajectory:
    """The motions under torques (batch, steps, 7)."""
    start = ENGINE.initial_state(len(torques), torch.float64)
    wrenches = lifting(ENGINE, STEPS).expand(len(torques), -1, -1, -1)
    return ENGINE.rollout(start, STEPS, controls(torques), wrenches=wrenches)


def missed(motion: Trajectory) -> Tensor:
    """By how much the marble misses in x and y in the end, (batch, 2), m."""
    return motion.final.q[:, 9:11] - TARGET


def speed(motion: Trajectory) -> Tensor:
    """That of the marble in the end, (batch,), m/s."""
    return (motion.final.v[:, 9:12].square().sum(1) + 1e-12).sqrt()


def losses(motion: Trajectory) -> Tensor:
    """The distance and a little of the last speed, (batch,)."""
    return (missed(motion).square().sum(1) + 1e-12).sqrt() + SLOW * speed(motion)


@dataclass(frozen=True)
class Throw:
    """Torques that were found, distances from the target after each rollout, m, and processor time, s."""

    torques: Tensor
    distances: list[float]
    seconds: float


def by_gauss_newton(max_iterations: int = BAR) -> Throw:
    """Gauss–Newton's smallest change of the torques each time, of limited length, half as long after a failure."""
    began = time.process_time()
    torques, longest = torch.zeros(1, STEPS, JOINTS, dtype=torch.float64), LONGEST
    residuals, slopes = linearized(torques)
    distances = [float(residuals.norm())]
    while len(distances) <= max_iterations and distances[-1] > CLOSE:
        change = slopes.T @ torch.linalg.solve(slopes @ slopes.T, residuals)
        size = float(change.norm()) / (RELEASE * JOINTS) ** 0.5
        trial = torques - (change * min(1.0, longest / size)).reshape(torques.shape)
        result = linearized(trial)
        distances.append(float(result[0].norm()))
        if float(result[0].norm()) < float(residuals.norm()):
            torques, (residuals, slopes), longest = trial, result, min(LONGEST, 2 * longest)
        else:
            longest /= 2
    return Throw(torques, distances, time.process_time() - began)


def linearized(torques: Tensor) -> tuple[Tensor, Tensor]:
    """By how much the marble misses, and its derivatives by all torques, (2, unknowns)."""
    worlds = torques.repeat(2, 1, 1).requires_grad_()
    residuals = missed(thrown(worlds))
    (slopes,) = torch.autograd.grad(residuals.diagonal().sum(), worlds)
    return residuals[0].detach(), slopes.flatten(1)


def by_descent(make: Callable[[list[Tensor]], torch.optim.Optimizer], max_iterations: int = BAR) -> Throw:
    """An optimizer on the loss, its gradient's norm at most 1."""
    began = time.process_time()
    torques = torch.zeros(1, STEPS, JOINTS, dtype=torch.float64, requires_grad=True)
    optimizer, distances = make([torques]), []
    while True:
        motion = thrown(torques)
        distances.append(float(missed(motion).detach().norm()))
        if len(distances) > max_iterations or distances[-1] <= CLOSE:
            return Throw(torques.detach(), distances, time.process_time() - began)
        optimizer.zero_grad()
        losses(motion).sum().backward()
        torch.nn.utils.clip_grad_norm_([torques], 1.0)
        optimizer.step()


def slope_error(torques: Tensor, step: float = 1e-3) -> tuple[float, float]:
    """The derivative of the loss along its gradient, and by what share central differences differ from it."""
    torques = torques.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(losses(thrown(torques)).sum(), torques)
    direction = gradient / gradient.norm()
    with torch.no_grad():
        ahead, behind = losses(thrown(torch.cat([torques + h * direction for h in (step, -step)])))
    slope = float((gradient * direction).sum())
    return slope, abs(float(ahead - behind) / (2 * step) / slope - 1)


def finer(torques: Tensor, times: int = 10) -> Trajectory:
    """The motion under the same torques in shorter steps."""
    engine = scenes.load(SCENE, DT / times)
    held = controls(torques).repeat_interleave(times, 1)
    return engine.rollout(
        engine.initial_state(dtype=torch.float64), times * STEPS, held, wrenches=lifting(engine, times * STEPS)
    )


def in_mujoco(torques: Tensor) -> Trajectory:
    """The motion under the same torques in MuJoCo."""

    def lifted(model) -> None:
        for body in model.bodies:
            body.gravcomp = float(body.name not in ("world", "marble"))

    start = ENGINE.initial_state(dtype=torch.float64)
    return replay(SCENE, start, STEPS, DT, along=ALONG, change=lifted, controls=controls(torques)[0])


def searched() -> dict[str, Throw]:
    """Results of the searches by gradients."""
    results = {"Gauss–Newton": by_gauss_newton()}
    for rate in (100.0, 300.0, 1000.0):
        results[f"SGD, rate {rate:g}"] = by_descent(partial(torch.optim.SGD, lr=rate, momentum=0.9))
    for rate in (0.1, 0.3, 1.0):
        results[f"Adam, rate {rate:g}"] = by_descent(partial(torch.optim.Adam, lr=rate))
    return results


def evolved(spread: float, generations: int) -> tuple[Evolved, list[float]]:
    """Result of CMA-ES from zero, and the smallest distance in each generation, m."""
    distances = []

    def judge(candidates: Tensor) -> tuple[Tensor, Tensor]:
        motion = thrown(candidates.unflatten(1, (STEPS, JOINTS)))
        away = missed(motion).norm(dim=1)
        distances.append(float(away.min()))
        return losses(motion), away < CLOSE

    start = torch.zeros(STEPS * JOINTS, dtype=torch.float64)
    return evolve(judge, start, spread, 0, generations * POPULATION), distances


def draw(courses: dict[str, tuple[range, list[float]]], motions: dict[str, Trajectory], file: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, (counts, distances) in courses.items():
        left.loglog(counts, list(accumulate(distances, min)), label=name)
    left.axhline(CLOSE, color="0.7", linestyle=":")
    left.set(xlabel="rollouts", ylabel="marble from target, the least so far, m")
    for name, motion in motions.items():
        right.plot(motion.q[0, :, 9], motion.q[0, :, 11], label=name)
    shown = next(iter(motions.values()))
    poses = ENGINE.poses(State(shown.q[0], shown.v[0]))
    arm = [ENGINE.body_names.index(name) for name in ("shoulder", "forearm", "wrist", "hand", "left finger")]
    for step, shade in ((0, "0.6"), (RELEASE, "0.75"), (STEPS, "0.9")):
        right.plot(poses[step, arm, 0, 3], poses[step, arm, 2, 3], color=shade, linewidth=3, zorder=0)
    right.plot(float(TARGET[0]), 0.0, "x", color="black")
    right.set(xlabel="x, m", ylabel="z, m", aspect="equal")
    left.set(xlim=(0.8, 4e4))  # room for the legend
    for axis in (left, right):
        axis.legend(frameon=False, fontsize="small")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(
    generations: int = 500, spreads: Sequence[float] = (1.0, 5.0, 20.0), out: Path = Path("out"), filmed: bool = True
) -> bool:
    """Search for the throw.

    Args:
        generations: Generations of CMA-ES; 0 for none. The paper gave it 500.
        spreads: Initial standard deviations σ₀ of CMA-ES, N m.
        out: folder of the figure and the film.
        filmed: If true, write a film.

    Returns:
        Whether SGD came within 5 cm in at most 20 iterations.
    """
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    slope, error = slope_error(torch.zeros(1, STEPS, JOINTS, dtype=torch.float64))
    print(f"gradient at zero: {slope:.4g} a N m, central differences {error:.1e} of it away")
    print("paper: 20 iterations of SGD; marble from the target, its speed, under the same torques")
    throws = searched()
    for name, throw in throws.items():
        text = f"{name:<16}{len(throw.distances) - 1:>3} iterations, {throw.seconds:.2f} s: {throw.distances[-1]:.3f} m"
        if throw.distances[-1] <= CLOSE:
            again = {"steps of 0.2 ms": finer(throw.torques), "MuJoCo": in_mujoco(throw.torques)}
            text += f", {speed(thrown(throw.torques)).item():.2f} m/s" + "".join(
                f"; {where} {missed(motion).norm().item():.3f} m, {speed(motion).item():.2f} m/s"
                for where, motion in again.items()
            )
        print(text, flush=True)
    courses = {
        name: (range(1, len(throws[name].distances) + 1), throws[name].distances)
        for name in ("Gauss–Newton", "SGD, rate 300", "Adam, rate 1")
    }
    for spread in spreads if generations else ():
        result, distances = evolved(spread, generations)
        name = f"CMA-ES, σ₀ {spread:g} N m"
        courses[name] = (range(POPULATION, result.evaluations + 1, POPULATION), distances)
        print(f"{name}: {result.evaluations} rollouts in {result.seconds:.0f} s, {distances[-1]:.3f} m", flush=True)
    needed = {
        f"iterations of {name} until a marble lands within 5 cm, by 5,250 torques": len(throw.distances) - 1
        for name, throw in throws.items()
        if throw.distances[-1] <= CLOSE
    }
    source = "Degrave et al. 2019, by SGD"
    claims = [Claim(name, count, "iterations", None, (), BAR, source) for name, count in needed.items()]
    print(write_claims(__file__, claims))
    best = throws["SGD, rate 300"]
    motion = thrown(best.torques)
    draw(courses, {"here": motion, "in MuJoCo": in_mujoco(best.torques)}, out / "arm_throw.png")
    print(f"figure: {out / 'arm_throw.png'}")
    if filmed:
        print(f"film: {render_video(ENGINE, motion, out / 'arm_throw.mp4')}")
    return best.distances[-1] <= CLOSE


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
