"""Hit a ball to a target with an articulated linkage: the golf of "Efficient Differentiable Simulation …" (2021).

Two torques for each of 1,000 steps of 1 ms are sought, from zero, such that the ball on its tee is at (0, −3, −1) m
after 1 s; there is no ground, so it flies by. Nothing tells untouched balls from each other: until the club hits, the
smallest gap between them stands for the distance.

    python experiments/golf.py [--generations 1500] [--out out]
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import matplotlib as mpl
import torch
from claims import Claim, write_claims
from evolution import evolve
from hard_replay import replay
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.physics.articulated import scenes
from physvision.report import render_video

mpl.use("Agg")
from matplotlib import pyplot as plt

DT, STEPS = 1e-3, 1000
TARGET = torch.tensor([-3.0, -1.0], dtype=torch.float64)  # y, z; nothing pushes along x
CLOSE, BAR = 0.05, 50  # m; iterations
LONGEST = 2.5  # N m, root mean square of a change of the torques
SMOOTH = 0.01  # m
STROKE = 1e-3  # s, time constant of contact in MuJoCo
FINE = 2.5e-5  # s, MuJoCo's step: with 0.1 ms the stroke is too short for it, and the replay ends half a meter away
CLUB_RADIUS, BALL_RADIUS, CLUB_LENGTH = 0.02, 0.025, 0.5
ENGINE = scenes.load("golf", DT)
CLUB, BALL = (ENGINE.body_names.index(name) for name in ("club", "ball"))


def swung(torques: Tensor) -> Trajectory:
    """The motions under torques (batch, steps, 2)."""
    start = ENGINE.initial_state(len(torques), torch.float64)
    return ENGINE.rollout(start, STEPS, torch.cat([torques, torques.new_zeros(*torques.shape[:2], 6)], 2))


def gaps(motion: Trajectory) -> Tensor:
    """The smallest gap between club and ball over time, (batch,), m, smoothly: at rest all times are the same."""
    poses = ENGINE.poses(motion)
    away = poses[:, :, BALL, :3, 3] - poses[:, :, CLUB, :3, 3]
    along = -poses[:, :, CLUB, :3, 2]
    reach = (away * along).sum(-1, keepdim=True).clamp(0.0, CLUB_LENGTH)
    gap = (away - reach * along).square().sum(-1).sqrt() - CLUB_RADIUS - BALL_RADIUS
    return -SMOOTH * (torch.logsumexp(-gap / SMOOTH, 1) - math.log(gap.shape[1]))


def missed(torques: Tensor) -> tuple[Tensor, Tensor]:
    """By how much the ball misses in y and z, or what grows with the gap; whether it was hit."""
    motion = swung(torques)
    flown = motion.final.q[:, 3:5] - TARGET
    hit = motion.final.v[:, 2:5].detach().norm(dim=1) > 0.1
    untouched = torch.stack([gaps(motion), torch.zeros_like(flown[:, 0])], 1)
    # Behind every hit, so that a hit is always better.
    return torch.where(hit[:, None], flown, 10 * (untouched + 1)), hit


@dataclass(frozen=True)
class Swing:
    """Torques that were found, those of the first hit, distances from the target after each rollout, m, and seconds."""

    torques: Tensor
    first_hit: Tensor
    distances: list[float]
    seconds: float


def linearized(torques: Tensor) -> tuple[Tensor, Tensor, bool]:
    """The two residuals, their derivatives by all torques, (2, unknowns), and whether the ball was hit."""
    worlds = torques.repeat(2, 1, 1).requires_grad_()
    residuals, hit = missed(worlds)
    (slopes,) = torch.autograd.grad(residuals.diagonal().sum(), worlds)
    return residuals[0].detach(), slopes.flatten(1), bool(hit[0])


def improved(max_iterations: int = BAR) -> Swing:
    """Gauss–Newton's smallest change of the torques each time, of limited length, half as long after a failure."""
    began = time.perf_counter()
    torques, longest = torch.zeros(1, STEPS, 2, dtype=torch.float64), LONGEST
    first_hit = torques
    residuals, slopes, hit = linearized(torques)
    distances = [float(residuals.norm()) if hit else float("inf")]
    while len(distances) <= max_iterations and distances[-1] > CLOSE:
        matrix = slopes @ slopes.T
        aimed = residuals if hit else residuals - residuals.new_tensor([10.0 - 0.5, 10.0])  # through the ball
        change = slopes.T @ torch.linalg.lstsq(matrix, aimed.unsqueeze(1), rcond=1e-9).solution
        size = float(change.square().mean().sqrt())
        trial = torques - (change * min(1.0, longest / size)).reshape(torques.shape)
        result = linearized(trial)
        distances.append(float(result[0].norm()) if result[2] else float("inf"))
        if float(result[0].norm()) < float(residuals.norm()):
            first_hit = trial if result[2] and not hit else first_hit
            torques, (residuals, slopes, hit), longest = trial, result, min(LONGEST, 2 * longest)
        else:
            longest /= 2
    return Swing(torques, first_hit, distances, time.perf_counter() - began)


def slope_error(torques: Tensor) -> tuple[float, float]:
    """The derivative of the distance along its gradient, and by what share central differences differ from it."""
    torques = torques.clone().requires_grad_()
    distance = missed(torques)[0].norm()
    (gradient,) = torch.autograd.grad(distance, torques)
    direction = gradient / gradient.norm()
    with torch.no_grad():
        ahead, behind = (missed(torques + h * direction)[0].norm() for h in (1e-5, -1e-5))
    slope = float((gradient * direction).sum())
    return slope, abs(float(ahead - behind) / 2e-5 / slope - 1)


def in_mujoco(torques: Tensor, along: float) -> Trajectory:
    """The motion under the torques in MuJoCo; its contact is a damped spring that gives half of the speed back.

    The spring's time constant is 1 ms, so the stroke takes 0.7 ms, in which friction along the surfaces acts with a
    time constant of its own. It has to be far shorter than the stroke, or the ball leaves while it slides on the club;
    but what slides is pushed apart by MuJoCo's convex friction, so it must not be so short that the first force exceeds
    the friction cone: with f_t / f_n ≈ (1 ms / along) u_t m_t / (u_n m_n) below 2, a quarter of the spring's remains.
    """
    ratio = math.log(2) / math.hypot(math.pi, math.log(2))

    def adapt(model) -> None:
        model.pair_solref[:] = (STROKE, ratio)

    forces = torch.cat([torques[0], torques.new_zeros(STEPS, 6)], 1)
    start = ENGINE.initial_state(dtype=torch.float64)
    return replay("golf", start, STEPS, DT, step=FINE, along=along, adapt=adapt, forces=forces)


def stroke(motion: Trajectory) -> str:
    """Outcome of the stroke: the ball's velocity and spin 3 ms later, and the total energies before and then."""
    a_step = motion.dt or DT
    hit = int((motion.v[0, :, 3:5].norm(dim=1) > 0.1).nonzero()[0]) * a_step
    before, after = (round((hit + shift) / a_step) for shift in (-DT, 3 * DT))
    lost = sum(motion.v.new_tensor([1.0, -1.0]) @ energy[:, 0] for energy in energies(motion, before, after))
    y, z, spin = motion.v[0, after, 3:6].tolist()
    return f"ball {y:.2f}, {z:.2f} m/s, {spin:.0f} rad/s; {float(lost):.2f} J lost"


def energies(motion: Trajectory, *steps: int) -> list[Tensor]:
    """Kinetic and potential energy at these steps, (steps, 1) each."""
    selected = motion.flatten()
    rows = torch.tensor(steps)
    return [entry[:, None] for entry in ENGINE.energy(State(selected.q[rows], selected.v[rows]))]


def draw(courses: dict[str, tuple[list[int], list[float]]], file: Path) -> None:
    figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for name, (counts, distances) in courses.items():
        axis.loglog(counts, distances, label=name)
    axis.axhline(CLOSE, color="0.7", linestyle=":")
    axis.set(xlabel="rollouts", ylabel="ball from target, the least so far, m")
    axis.legend(frameon=False, fontsize="small")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main(
    generations: int = 1500, spreads: Sequence[float] = (1.0, 5.0, 20.0), out: Path = Path("out"), filmed: bool = True
) -> bool:
    """Search for the swing.

    Args:
        generations: Generations of CMA-ES; 0 for none. The paper gave it 1,500.
        spreads: Initial standard deviations σ₀ of CMA-ES, N m.
        out: folder of the figure and the film.
        filmed: If true, write a film.

    Returns:
        Whether the ball came within 5 cm in at most 50 iterations.
    """
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    swing = improved()
    met = swing.distances[-1] <= CLOSE
    course = " ".join("–" if distance == math.inf else f"{distance:.2f}" for distance in swing.distances)
    print(f"distance after each rollout, m (– where the ball was not hit): {course}")
    print(f"paper: 50 iterations of SGD; ours {len(swing.distances) - 1}, {swing.seconds:.1f} s, ", end="")
    print(f"{swing.distances[-1]:.4f} m; below {CLOSE:g} m in at most {BAR}: {'met' if met else 'MISSED'}")
    quantity = "iterations until a golf ball rolls to 5 cm of its target, by 2,000 torques"
    count = Claim(quantity, len(swing.distances) - 1, "iterations", None, (), BAR, "Degrave et al. 2019, by SGD")
    print(write_claims(__file__, [count, Claim("distance from the target", swing.distances[-1], "m")]))
    for name, torques in {
        "at zero": torch.zeros_like(swing.torques),
        "at the first hit": swing.first_hit,
        "at the end": swing.torques,
    }.items():
        slope, error = slope_error(torques)
        print(f"gradient {name}: {slope:.4g} m a N m, central differences {error:.1e} of it away")
    motion = swung(swing.torques)
    fine = scenes.load("golf", DT / 10)
    forces = torch.cat([swing.torques, swing.torques.new_zeros(1, STEPS, 6)], 2).repeat_interleave(10, 1)
    replays = {
        "the same torques": motion,
        "with steps of 0.1 ms": fine.rollout(fine.initial_state(dtype=torch.float64), 10 * STEPS, forces),
    } | {
        f"in MuJoCo, friction {1e3 * along:g} ms": in_mujoco(swing.torques, along)
        for along in (STROKE / 4, 10 * STROKE)
    }
    for name, entry in replays.items():
        away = float((entry.final.q[0, 3:5] - TARGET).norm())
        print(f"{name:<30}{away:.3f} m from the target; {stroke(entry)}", flush=True)
    minimum = list(accumulate(swing.distances, min))
    courses = {"Gauss–Newton": (list(range(1, len(minimum) + 1)), minimum)}
    if generations:

        def judge(candidates: Tensor) -> tuple[Tensor, Tensor]:
            residuals, hit = missed(candidates.unflatten(1, (STEPS, 2)))
            distances = residuals.norm(dim=1)
            return distances, hit & (distances < CLOSE)

        population = 4 + int(3 * math.log(2 * STEPS))
        start = torch.zeros(2 * STEPS, dtype=torch.float64)
        for spread in spreads:
            result = evolve(judge, start, spread, 0, generations * population)
            with torch.no_grad():
                residuals, hit = missed(result.values.unflatten(0, (1, STEPS, 2)))
            text = f"{float(residuals.norm()):.2f} m from the target" if bool(hit) else "the ball is not hit"
            counts = range(population, result.evaluations + 1, population)
            # What misses the ball is behind 10 m.
            courses[f"CMA-ES, σ₀ {spread:g} N m"] = list(counts), [x if x < 10 else math.inf for x in result.course]
            print(
                f"CMA-ES, σ₀ {spread:g} N m: {result.evaluations} rollouts in {result.seconds:.0f} s, {text}",
                flush=True,
            )
    draw(courses, out / "golf.png")
    print(f"figure: {out / 'golf.png'}")
    if filmed:
        print(f"film: {render_video(ENGINE, motion, out / 'golf.mp4')}")
    return met


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
