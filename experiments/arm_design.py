"""Design an arm for a path: find the Denavit–Hartenberg parameters whose tip follows it, through the engine.

The experiment is that of Heiden et al., *Interactive Differentiable Simulation* (2019). The joints of an arm with four
hinges move as is known; the path of its tip is given; the arm's table (a, α, d, θ of each link) is sought. The last
link's twist α turns the tip without moving it, so no path can tell it: it is not sought. The twists between the axes
are far from zero: an arm with nearly parallel axes could shift along them almost without moving its tip.

    python experiments/arm_design.py [--seeds 5] [--noise 0.0] [--out out]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import torch
from claims import Claim, write_claims
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State
from physvision.estimation import PointResidual, Unknown, Unknowns, gauss_newton
from physvision.physics import articulated

mpl.use("Agg")
from matplotlib import pyplot as plt

# Rows a (m), α (rad), d (m), θ (rad); one column a link.
TRUTH = torch.tensor(
    [[0.10, 0.40, 0.35, 0.20], [math.pi / 2, 0.80, -1.00, 0.0], [0.40, 0.05, 0.10, 0.15], [0.10, -0.20, 0.30, 0.05]],
    dtype=torch.float64,
)
NAMES = ("a, m", "alpha, rad", "d, m", "theta, rad")
SOUGHT = torch.ones(4, 4, dtype=torch.bool)
SOUGHT[1, 3] = False
BAR = 1e-3  # m


@dataclass(frozen=True)
class Design:
    """The table found, (4, 4), and the root mean square distance from the path after each iteration, m."""

    table: Tensor
    distance: list[float]


def joint_motion(samples: int) -> Tensor:
    """Angles of the four joints over time, (samples, 4), rad: incommensurate swings, one phase after another."""
    time = torch.linspace(0.0, 10.0, samples, dtype=torch.float64)
    rates = torch.tensor([0.7, 1.1, 1.7, 2.3], dtype=torch.float64)
    return 0.9 * torch.sin(time.unsqueeze(-1) * rates + torch.arange(4.0, dtype=torch.float64))


def tip_path(engine: articulated.Articulation, angles: Tensor, table: Tensor) -> Tensor:
    """Path of the tip of the arm with this table of parameters, (samples, 3), m."""
    properties = articulated.from_dh_properties(*table)
    return engine.poses(State(angles, torch.zeros_like(angles)), properties=properties)[:, -1, :3, 3]


def design(angles: Tensor, path: Tensor, start: Tensor) -> Design:
    """The table whose tip follows the path best, by least squares from `start`."""
    engine = articulated.from_dh(*TRUTH)
    sought = Unknowns([Unknown("table", start[SOUGHT])])

    def table(design: Tensor) -> Tensor:
        whole = start.repeat(len(design), 1, 1)
        whole[:, SOUGHT] = design
        return whole

    def tip(values, sample) -> Tensor:
        return tip_path(engine, angles[sample], table(values["table"]).movedim(1, 0))

    problem = PointResidual(sought, tip, path)
    course = gauss_newton(problem, tolerance=1e-14).history[:, 0]
    distance = problem.residual(course).square().sum(-1).mean(-1).sqrt()
    return Design(table(course[-1:])[0], distance.tolist())


def first_guess(seed: int) -> Tensor:
    """The true table, every length off by up to 15 cm and every angle by up to 0.4 rad (23°)."""
    generator = torch.Generator().manual_seed(seed)
    off = 2 * torch.rand(4, 4, generator=generator, dtype=torch.float64) - 1
    reach = torch.tensor([0.15, 0.4, 0.15, 0.4], dtype=torch.float64).unsqueeze(-1)
    return TRUTH + off * reach * SOUGHT


def draw(angles: Tensor, path: Tensor, start: Tensor, design: Design, file: Path) -> None:
    engine = articulated.from_dh(*TRUTH)
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    space = figure.add_subplot(1, 2, 1, projection="3d")
    space.plot(*path.T, color="0.75", linewidth=4, label="given")
    space.plot(*tip_path(engine, angles, start).T, color="#d65f4d", linewidth=1, label="first guess")
    space.plot(*tip_path(engine, angles, design.table).T, color="#3a7cbf", linewidth=1.2, label="designed")
    space.set(xlabel="x, m", ylabel="y, m", zlabel="z, m", title="Path of the tip")
    space.legend(frameon=False, loc="upper left")
    space.set_box_aspect(None, zoom=0.82)
    course = figure.add_subplot(1, 2, 2)
    course.semilogy(design.distance, color="0.2")
    course.axhline(BAR, color="#3a7cbf", linestyle=":", linewidth=1)
    course.set(xlabel="iteration", ylabel="distance from the path, m", title="Gauss–Newton")
    course.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main(seeds: int = 5, samples: int = 200, noise: float = 0.0, out: Path = Path("out")) -> float:
    """Design the arm from several first guesses.

    Args:
        seeds: Number of initial guesses; seeds 0, 1, 2 …
        samples: Number of given points of the path.
        noise: standard deviation of the given points, m.
        out: folder of the figure.

    Returns:
        The largest error of a length in any run, m.
    """
    angles = joint_motion(samples)
    exact = tip_path(articulated.from_dh(*TRUTH), angles, TRUTH)
    path = exact + noise * torch.randn(exact.shape, generator=torch.Generator().manual_seed(0), dtype=exact.dtype)
    print("Distance is the root mean square distance from the path; errors are the largest of their row of the table.")
    columns = ("seed", "distance, m", "then", "iterations", *NAMES)
    print("".join(f"{column:>13}" for column in columns))
    rendered, lengths = None, []
    for seed in range(seeds):
        start = first_guess(seed)
        result = design(angles, path, start)
        errors = (result.table - TRUTH).abs().max(-1).values.tolist()
        cells = (seed, f"{result.distance[0]:.3f}", f"{min(result.distance):.1e}", len(result.distance))
        print("".join(f"{cell:>13}" for cell in (*cells, *(f"{error:.1e}" for error in errors))))
        lengths.append(max(errors[0], errors[2]))
        rendered = rendered or (start, result)
    worst = max(lengths)
    if rendered:
        draw(angles, exact, *rendered, out / "arm_design.png")
    name, spread = "error of an arm's lengths, from the path of its tip", (min(lengths), worst)
    print(write_claims(__file__, [Claim(name, worst, "m", spread, tuple(range(seeds)))]))
    print(f"largest error of a length {worst:.1e} m; bar {BAR:g} m: {'met' if worst <= BAR else 'MISSED'}")
    print(f"figure: {out / 'arm_design.png'}")
    return worst


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
