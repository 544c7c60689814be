"""Poses and states from one frame, by gradient descent through the camera.

    python experiments/inverse_camera.py

Recovers the pose of a textured ball (position and orientation), the position of a flat-colored ball and the state of a
cartpole, each from one frame and several starts, with soft and with hard edges, and prints the median error. The figure
out/inverse_camera.png shows the frames and how the losses change along one coordinate.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from physvision.camera import Camera, Light, RayCaster
from physvision.core import Sphere, State
from physvision.estimation import descend
from physvision.losses import mean_square, multi_scale
from physvision.physics import articulated

HEIGHT, WIDTH = 64, 96
STARTS = 16
Frames = Callable[[Tensor], Tensor]


@dataclass
class Task:
    """Something to be found.

    Attributes:
        name: for people.
        frames: from coordinates (batch, n), by the edges that are asked for.
        truth: the coordinates that the frame was made from, (n,).
        spread: Spread of the initial guesses about the truth, (n,).
        units: Groups of coordinates whose errors are printed: columns, factor, name.
    """

    name: str
    frames: Callable[[str], Frames]
    truth: Tensor
    spread: Tensor
    units: list[tuple[slice, float, str]]


def moved(places: Tensor, turns: Tensor) -> Tensor:
    """Poses from positions and rotation vectors, (batch, 1, 4, 4)."""
    zero = torch.zeros_like(turns[:, 0])
    x, y, z = turns.unbind(1)
    rotation = torch.matrix_exp(torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], 1).view(-1, 3, 3))
    pose = torch.cat([rotation, places[:, :, None]], 2)
    last = torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(len(pose), 1, 4)
    return torch.cat([pose, last], 1)[:, None]


def ball(textured: bool) -> Task:
    """A ball before a pinhole: x, y, z, and with a texture a rotation vector."""
    camera = Camera.pinhole(HEIGHT, WIDTH, position=(0, -5, 0), target=(0, 0, 0), fov=0.7)
    generator = torch.Generator().manual_seed(3)
    image = torch.rand(3, 6, 10, generator=generator) if textured else torch.tensor([0.9, 0.4, 0.1])
    background = torch.tensor([0.15, 0.25, 0.35])

    def frames(edges: str) -> Frames:
        caster = RayCaster(camera, [Sphere(0.5)], background=background, edges=edges)
        if textured:
            return lambda c: caster(moved(c[:, :3], c[:, 3:]), [image])
        return lambda c: caster(moved(c, torch.zeros_like(c)), [image])

    truth, spread = torch.tensor([0.3, 0.2, -0.1]), torch.tensor([0.5, 0.4, 0.4])
    units = [(slice(0, 3), 1e3, "mm")]
    if textured:
        truth = torch.cat([truth, torch.tensor([0.4, -0.3, 0.8])])
        spread = torch.cat([spread, torch.full((3,), 0.3)])
        units.append((slice(3, 6), 180 / math.pi, "degrees"))
    return Task("textured ball" if textured else "flat ball", frames, truth, spread, units)


def cartpole() -> Task:
    """A cartpole, through the kinematics of its engine: position of the cart, angle of the pole."""
    engine = articulated.cartpole(links=1)
    camera = Camera.pinhole(HEIGHT, WIDTH, position=(0, -4.5, 0.2), target=(0, 0, 0.2), fov=0.7)

    def frames(edges: str) -> Frames:
        bound = camera.bind(engine, edges=edges, background=(0.9, 0.9, 0.85), light=Light((0.3, -1.0, 0.6)))
        return lambda q: bound(State(q, torch.zeros_like(q)))

    units = [(slice(0, 1), 1e3, "mm"), (slice(1, 2), 180 / math.pi, "degrees")]
    return Task("cartpole", frames, torch.tensor([0.3, 0.5]), torch.tensor([0.6, 0.6]), units)


def recover(task: Task, edges: str, loss: Callable[[Tensor, Tensor], Tensor], steps: int) -> Tensor:
    """Recover the coordinates from every initial guess, (starts, n)."""
    generator = torch.Generator().manual_seed(0)
    frames = task.frames(edges)
    goal = frames(task.truth[None]).detach().expand(STARTS, -1, -1, -1)
    offset = 2 * torch.rand(STARTS, len(task.truth), generator=generator) - 1
    result = (task.truth + task.spread * offset).requires_grad_()
    descend(lambda: loss(frames(result), goal), torch.optim.Adam([result], lr=0.03), steps, final_lr_fraction=3e-4)
    return result.detach()


def landscape(task: Task, edges: str, loss: Callable[[Tensor, Tensor], Tensor], offsets: Tensor) -> Tensor:
    """The loss along the first coordinate."""
    frames = task.frames(edges)
    goal = frames(task.truth[None])
    places = task.truth.repeat(len(offsets), 1)
    places[:, 0] += offsets
    with torch.no_grad():
        return torch.stack([loss(frame[None], goal) for frame in frames(places)])


def draw(tasks: list[Task], path: Path) -> None:
    """A row of each task: the frame, the landscape over a meter, and over a centimetre."""
    figure, axes = plt.subplots(len(tasks), 3, figsize=(11, 2.7 * len(tasks)), constrained_layout=True)
    kinds = [("soft", mean_square, "C0-"), ("soft", multi_scale, "C2-"), ("hard", mean_square, "C1-")]
    for task, row in zip(tasks, axes, strict=True):
        row[0].imshow(task.frames("soft")(task.truth[None])[0].permute(1, 2, 0).clamp(0, 1))
        row[0].set_title(task.name)
        row[0].axis("off")
        for axis, width, unit, factor in ((row[1], 1.0, "m", 1.0), (row[2], 0.02, "mm", 1e3)):
            offsets = torch.linspace(-width, width, 161)
            for edges, loss, style in kinds:
                values = landscape(task, edges, loss, offsets)
                label = f"{edges} edges, {loss.__name__.replace('_', ' ')}"
                axis.plot(offsets * factor, values / values.max(), style, label=label, linewidth=1.2)
            axis.set_xlabel(f"offset along the first coordinate, {unit}")
            axis.set_ylabel("loss / largest")
    axes[0, 1].legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tasks = [ball(True), ball(False), cartpole()]
    print(
        f"{STARTS} starts, {arguments.steps} steps on a frame of {WIDTH}×{HEIGHT}: median error, starts that end close"
    )
    for task in tasks:
        for edges in ("soft", "hard"):
            error = (recover(task, edges, multi_scale, arguments.steps) - task.truth).abs()
            medians = [
                f"{factor * float(error[:, at].amax(1).median()):9.3f} {unit}" for at, factor, unit in task.units
            ]
            close = (error < 0.02 * task.spread).all(1).float().mean()
            print(f"{task.name:14}{edges} edges  {'  '.join(medians):36}{100 * close:4.0f} %")
    draw(tasks, arguments.out / "inverse_camera.png")
    print(f"drawn: {arguments.out / 'inverse_camera.png'}")


if __name__ == "__main__":
    main()
