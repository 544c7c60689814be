"""Recover restitution, friction, damping, spring stiffness and gravity from noisy trajectories; hit a target.

Five scenes, each ruled by one property. Its trajectory is seen with noise, and the property is found from the whole of
it by Gauss–Newton through the engine. Then the velocity of a projectile that bounces once is found so that it lands on
a target, through the bounce. All properties are found in a batch of noises at once.

    python experiments/system_identification.py [--noise 0.5] [--worlds 20] [--out out]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State
from physvision.estimation import MotionResidual, Optimum, Setup, Unknown, Unknowns, gauss_newton
from physvision.physics import rigid2d

mpl.use("Agg")
from matplotlib import pyplot as plt

STEPS = 60
TARGET = (180.0, 55.0)


@dataclass(frozen=True)
class Task:
    """A scene, the property sought, its true value; `leaf` fills it in, (worlds, …), from one number."""

    sought: Unknown
    world: rigid2d.World
    truth: float
    leaf: Callable[[Tensor], dict[str, Tensor]]

    def problem(self) -> MotionResidual:
        """Estimation problem of the property from positions of the body, without observations yet."""

        def setup(values) -> Setup:
            value = values[self.sought.name]
            return Setup(self.world.initial_state(len(value), torch.float64), self.leaf(value))

        times = self.world.dt * torch.arange(STEPS + 1, dtype=torch.float64)
        empty = torch.full((STEPS + 1, 2), torch.nan, dtype=torch.float64)
        return MotionResidual(
            self.world, Unknowns([self.sought]), setup, times, empty, lambda entry: entry.state.q[:, :2]
        )


def floor(restitution: float = 0.0, friction: float = 0.0) -> rigid2d.Rectangle:
    return rigid2d.Rectangle(
        (2000, 20), (0, 110), static=True, name="floor", restitution=restitution, friction=friction
    )


def on_both(name: str) -> Callable[[Tensor], dict[str, Tensor]]:
    """Give floor and body the same value, which is then that of the pair."""
    return lambda value: {name: value.unsqueeze(1).expand(-1, 2)}


def tasks() -> list[Task]:
    falling = rigid2d.Circle(10, (0, 0), velocity=(40, 0), friction=0.0)
    sliding = rigid2d.Rectangle((30, 20), (0, 90), velocity=(90, 0), restitution=0.0)
    fading = rigid2d.Circle(10, (0, 0), velocity=(80, -60))
    hanging = rigid2d.Circle(10, (0, 120), velocity=(60, 0), name="bob")
    thrown = rigid2d.Circle(10, (0, 0), velocity=(60, -100))
    spring = rigid2d.Spring("bob", None, to=(0, 0), length=100)
    down = (0.0, 100.0)
    falls, slides = (rigid2d.World([floor(), body], gravity=down) for body in (falling, sliding))
    fades, hangs = rigid2d.World([fading], gravity=down), rigid2d.World([hanging], [spring], gravity=down)
    flies = rigid2d.World([floor(0.5), thrown], gravity=down)
    return [
        Task(Unknown("restitution", 0.5, 0.0, 1.0), falls, 0.7, on_both("restitution")),
        Task(Unknown("friction", 0.8, 0.0), slides, 0.45, on_both("friction")),
        Task(Unknown("damping, 1/s", 0.1, 0.0), fades, 0.6, lambda v: {"velocity_decay": v.unsqueeze(1)}),
        Task(Unknown("stiffness, kg/s²", 6.0, 0.0), hangs, 12.0, lambda v: {"spring_stiffness": v.unsqueeze(1)}),
        Task(
            Unknown("gravity, px/s²", 60.0, 0.0),
            flies,
            100.0,
            lambda v: {"gravity": torch.stack([torch.zeros_like(v), v], 1)},
        ),
    ]


def aim() -> tuple[MotionResidual, Optimum]:
    """Throw a ball so that it is at the target after two seconds, a bounce on its way: what is sought, and found."""
    ball = rigid2d.Circle(10, (0, 0), restitution=0.8, friction=0.3, name="ball")
    world = rigid2d.World([floor(0.8, 0.3), ball], gravity=(0, 100))

    def setup(values) -> Setup:
        v = torch.cat([values["velocity"], torch.zeros_like(values["velocity"][:, :1])], 1)
        return Setup(State(torch.zeros_like(v), v))

    times = torch.tensor([STEPS * world.dt], dtype=torch.float64)
    goal = torch.tensor([TARGET], dtype=torch.float64)
    sought = Unknowns([Unknown("velocity", (60.0, 10.0), scale=10.0)])
    problem = MotionResidual(world, sought, setup, times, goal, lambda entry: entry.state.q[:, :2])
    return problem, gauss_newton(problem, damping=0.0, max_iterations=6)


def draw(courses: dict[str, Tensor], paths: Tensor, file: Path) -> None:
    figure, (result, throw) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=(1, 1.2))
    for name, error in courses.items():
        result.semilogy(error.clamp(min=1e-12).median(1).values, label=name, linewidth=1.3)
    result.set(title="Recovered from noisy trajectories", xlabel="update", ylabel="relative error, median of worlds")
    result.legend(frameon=False, fontsize="small")
    result.spines[["top", "right"]].set_visible(False)
    for number, path in enumerate(paths):
        last = number == len(paths) - 1
        throw.plot(*path.T, color="C0" if last else "0.75", linewidth=1.6 if last else 0.8, zorder=2 + last)
    throw.plot(*TARGET, marker="x", color="C3", markersize=10, linestyle="")
    throw.axhspan(100, 115, color="0.6")
    throw.set(title="A throw aimed through its bounce", xlabel="x, px", ylabel="y, px", aspect="equal", ylim=(115, -60))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main(noise: float = 0.5, worlds: int = 20, out: Path = Path("out")) -> bool:
    """Identify all five properties, and aim the throw.

    Args:
        noise: standard deviation of every coordinate that is seen, px.
        worlds: Number of noise realizations from which each property is recovered; one more is without noise.
        out: folder of the figure.

    Returns:
        Whether every property was found, without noise, to a thousandth, and the target hit to a thousandth of a pixel.
    """
    generator = torch.Generator().manual_seed(0)
    print(f"noise {noise} px, {worlds} worlds, seed 0")
    print(f"{'property':<18}{'truth':>8}{'guess':>8}{'updates':>9}{'median found':>14}{'spread':>10}", end="")
    print(f"{'error without noise':>21}")
    courses, met = {}, True
    for task in tasks():
        problem, name = task.problem(), task.sought.name
        exact = problem.predictions(problem.unknowns.unconstrain({name: task.truth})).detach()
        blur = noise * torch.randn((worlds + 1, *exact.shape[1:]), generator=generator, dtype=torch.float64)
        blur[0] = 0
        course = problem.unknowns.flat_values(
            gauss_newton(replace(problem, observed=exact + blur), problem.unknowns.start(worlds + 1)).history
        )[..., 0]
        final, clean = course[-1, 1:], float(course[-1, 0] / task.truth - 1)
        met &= abs(clean) < 1e-3
        courses[name] = (course[:, 1:] / task.truth - 1).abs()
        print(f"{name:<18}{task.truth:>8.3g}{task.sought.start:>8.3g}{len(course) - 1:>9}", end="")
        print(f"{float(final.median()):>14.5g}{float(final.std()):>10.1e}{clean:>21.1e}")
    problem, aimed = aim()
    distances = problem.residual(aimed.history[:, 0]).norm(dim=(1, 2))
    print(f"throw: distance from the target after each update, px: {', '.join(f'{d:.3g}' for d in distances.tolist())}")
    met &= float(distances[-1]) < 1e-3
    draw(courses, problem.rollout(aimed.history[:, 0]).q[..., :2], out / "system_identification.png")
    print(f"every property to 0.1 % without noise, target hit to 0.001 px: {'met' if met else 'MISSED'}")
    print(f"figure: {out / 'system_identification.png'}")
    return met


if __name__ == "__main__":
    auto_cli(main)
