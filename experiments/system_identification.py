"""Recover restitution, friction, damping, spring stiffness and gravity from noisy trajectories; hit a target.

Five scenes, each ruled by one property. Its trajectory is seen with noise, and the property is found from the whole of
it by gradient descent. Then the velocity of a projectile that bounces once is
optimised until it lands on a target, through the bounce. All properties are found in a batch of noises at once.

    python experiments/system_identification.py [--noise 0.5] [--worlds 20] [--out out]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State
from physvision.physics import rigid2d

mpl.use("Agg")
from matplotlib import pyplot as plt

STEPS = 60
UPDATES = 200
RATE = 0.08
TARGET = (180.0, 55.0)


@dataclass(frozen=True)
class Task:
    """A scene, the leaf sought, its true value and a first guess; `leaf` fills it in, (worlds, …), from one number."""

    name: str
    world: rigid2d.World
    truth: float
    guess: float
    leaf: Callable[[Tensor], dict[str, Tensor]]


def floor(restitution: float = 0.0, friction: float = 0.0) -> rigid2d.Rectangle:
    return rigid2d.Rectangle(
        (2000, 20), (0, 110), static=True, name="floor", restitution=restitution, friction=friction
    )


def on_both(name: str) -> Callable[[Tensor], dict[str, Tensor]]:
    """The same value for floor and body, so that it is the pair's."""
    return lambda value: {name: value.unsqueeze(1).expand(-1, 2)}


def tasks() -> list[Task]:
    falling = rigid2d.Circle(10, (0, 0), velocity=(40, 0), friction=0.0)
    sliding = rigid2d.Rectangle((30, 20), (0, 90), velocity=(90, 0), restitution=0.0)
    fading = rigid2d.Circle(10, (0, 0), velocity=(80, -60))
    hanging = rigid2d.Circle(10, (0, 120), velocity=(60, 0), name="bob")
    thrown = rigid2d.Circle(10, (0, 0), velocity=(60, -100))
    spring = rigid2d.Spring("bob", None, to=(0, 0), length=100)
    down = (0.0, 100.0)

    def downwards(value: Tensor) -> dict[str, Tensor]:
        return {"gravity": torch.stack([torch.zeros_like(value), value], 1)}

    return [
        Task("restitution", rigid2d.World([floor(), falling], gravity=down), 0.7, 0.5, on_both("restitution")),
        Task("friction", rigid2d.World([floor(), sliding], gravity=down), 0.45, 0.8, on_both("friction")),
        Task(
            "damping, 1/s",
            rigid2d.World([fading], gravity=down),
            0.6,
            0.1,
            lambda v: {"velocity_decay": v.unsqueeze(1)},
        ),
        Task(
            "stiffness, kg/s²",
            rigid2d.World([hanging], [spring], gravity=down),
            12.0,
            6.0,
            lambda v: {"spring_stiffness": v.unsqueeze(1)},
        ),
        Task("gravity, px/s²", rigid2d.World([floor(0.5), thrown], gravity=down), 100.0, 60.0, downwards),
    ]


def positions(task: Task, value: Tensor) -> Tensor:
    """Where the body is, (worlds, STEPS + 1, 2), given the property of each world."""
    state = task.world.initial_state(value.shape[0], torch.float64)
    return task.world.rollout(state, STEPS, properties=task.leaf(value)).q[..., :2]


def identify(task: Task, seen: Tensor) -> Tensor:
    """The property that each world's trajectory tells, after each update, (updates + 1, worlds): Adam in its logarithm.

    The loss of a world is the mean square distance from what was seen of it; the worlds share nothing.
    """
    logarithm = torch.full((seen.shape[0],), task.guess, dtype=torch.float64).log().requires_grad_()
    optimizer = torch.optim.Adam([logarithm], lr=RATE)
    fade = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, UPDATES, 1e-3 * RATE)
    course = [logarithm.detach().exp()]
    for _ in range(UPDATES):
        optimizer.zero_grad()
        # A pair's restitution is at most 1.
        value = logarithm.exp().clamp(max=1.0) if task.name == "restitution" else logarithm.exp()
        (positions(task, value) - seen).square().mean((1, 2)).sum().backward()
        optimizer.step()
        fade.step()
        course.append(logarithm.detach().exp())
    return torch.stack(course)


def aim(updates: int = 6) -> tuple[rigid2d.World, list[Tensor], list[float]]:
    """Throw a ball so that it is at the target after two seconds, a bounce on its way: by Newton's method.

    Returns:
        The world, the path after each update, (STEPS + 1, 2), and the distance from the target, px.
    """
    ball = rigid2d.Circle(10, (0, 0), restitution=0.8, friction=0.3, name="ball")
    world = rigid2d.World([floor(0.8, 0.3), ball], gravity=(0, 100))
    state = world.initial_state(1, torch.float64)
    velocity = torch.tensor([[60.0, 10.0]], dtype=torch.float64)
    target = torch.tensor(TARGET, dtype=torch.float64)
    paths, distances = [], []
    for _ in range(updates):
        # Two worlds, one for each coordinate of the place: a backward pass gives both rows of the Jacobian.
        thrown = velocity.repeat(2, 1).requires_grad_()
        v = torch.cat([thrown, thrown.new_zeros(2, 1)], 1)
        q = world.rollout(State(state.q.repeat(2, 1), v), STEPS).q[..., :2]
        off = (q[0, -1] - target).detach()
        jacobian = torch.autograd.grad(q[:, -1].diagonal().sum(), thrown)[0]
        paths.append(q[0].detach())
        distances.append(float(off.norm()))
        velocity = velocity - torch.linalg.solve(jacobian, off)
    return world, paths, distances


def draw(courses: dict[str, tuple[Task, Tensor]], aimed: tuple, file: Path) -> None:
    figure, (found, throw) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=(1, 1.2))
    for number, (name, (task, course)) in enumerate(courses.items()):
        error = (course / task.truth - 1).abs().clamp(min=1e-12)
        found.semilogy(error.median(1).values, color=f"C{number}", label=name, linewidth=1.3)
    found.set(title="Recovered from noisy trajectories", xlabel="update", ylabel="relative error, median of worlds")
    found.legend(frameon=False, fontsize="small")
    found.spines[["top", "right"]].set_visible(False)
    _, paths, _ = aimed
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
        worlds: how many noises each property is recovered from; another is without noise.
        out: folder of the figure.

    Returns:
        Whether every property was found, without noise, to a thousandth, and the target hit to a thousandth of a pixel.
    """
    generator = torch.Generator().manual_seed(0)
    print(f"noise {noise} px, {worlds} worlds, seed 0; {UPDATES} updates")
    print(f"{'property':<18}{'truth':>8}{'guess':>8}{'median found':>14}{'spread':>10}{'error without noise':>21}")
    courses, met = {}, True
    for task in tasks():
        exact = positions(task, torch.tensor([task.truth], dtype=torch.float64)).repeat(worlds + 1, 1, 1)
        blur = noise * torch.randn(exact.shape, generator=generator, dtype=torch.float64)
        blur[0] = 0
        course = identify(task, exact + blur)
        final, clean = course[-1, 1:], float(course[-1, 0] / task.truth - 1)
        met &= abs(clean) < 1e-3
        courses[task.name] = (task, course[:, 1:])
        print(f"{task.name:<18}{task.truth:>8.3g}{task.guess:>8.3g}{float(final.median()):>14.5g}", end="")
        print(f"{float(final.std()):>10.1e}{clean:>21.1e}")
    aimed = aim()
    shown = ", ".join(f"{distance:.3g}" for distance in aimed[2])
    print(f"throw: distance from the target before each update, px: {shown}")
    met &= aimed[2][-1] < 1e-3
    draw(courses, aimed, out / "system_identification.png")
    print(f"every property to 0.1 % without noise, target hit to 0.001 px: {'met' if met else 'MISSED'}")
    print(f"figure: {out / 'system_identification.png'}")
    return met


if __name__ == "__main__":
    auto_cli(main)
