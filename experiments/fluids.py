"""Viscosity from pictures of stirred dye, and a flow that carries dye into a shape.

The pictures are those of the recipe `dye`, by a pseudo-spectral solver of which our grid shares no line; the state of
the first is known, as the recipe tells it, and what follows is fitted pixel by pixel. What grids blur biases a
viscosity, so the state is refined by its Fourier modes, and the answer of a coarse grid is where a finer one begins.

    python experiments/fluids.py [--tasks '[viscosity,shape]'] [--trials 3] [--updates 120] [--out out]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor

from physvision.core import State
from physvision.datasets import DyeRecipe
from physvision.datasets.dye.spectral import Spectral
from physvision.estimation import descend
from physvision.physics.fluid import Boundary, Flow, FluidMaterial

SIDE, FIRST = 2 * math.pi, 0.15  # m, m²/s
COURANT = 0.6  # cells that anything passes in a step, at most
BARS = {"viscosity": 0.02, "shape": 0.9}


def refined(field: np.ndarray, cells: int, corner: tuple[float, float], wide: tuple[float, float]) -> np.ndarray:
    """Means of cells or faces on a finer grid, from those on this one, by their Fourier modes."""
    n, numbers = len(field), np.fft.fftfreq(len(field), 1 / len(field))
    row, column = (
        np.exp(-2j * np.pi / n * first * numbers) / np.sinc(numbers * width / n)
        for first, width in zip(corner, wide, strict=True)
    )
    return Spectral(n, 0.0, 0.0).rectangle_means(row[:, None] * np.fft.fft2(field) * column, cells, corner, wide)


class Pictures:
    """Frames of a trial, and our flow on a grid with several cells for each pixel.

    Args:
        trial: Trial of the recipe `dye`.
        seconds: from frame to frame.
        fineness: cells along the side of a pixel.
    """

    def __init__(self, trial: Mapping[str, np.ndarray], seconds: float, fineness: int) -> None:
        frames, size = trial["frames"][..., 0], trial["frames"].shape[1]
        cells = fineness * size
        u, v = trial["v"][0].reshape(2, size, size)
        parts = [
            refined(trial["q"][0].reshape(size, size), cells, (0.5, 0.5), (1.0, 1.0)),
            refined(u, cells, (0.0, 0.5), (0.0, 1.0)),
            refined(v, cells, (0.5, 0.0), (1.0, 0.0)),
        ]
        self.steps = math.ceil(seconds * np.abs(trial["v"]).max() * cells / SIDE / COURANT)
        self.flow = Flow(
            (cells, cells),
            (SIDE, SIDE),
            FluidMaterial(FIRST, diffusivity=float(trial["diffusivity"][0])),
            boundary=Boundary(("periodic", "periodic")),
            dt=seconds / self.steps,
        )
        dye, along_x, along_y = (torch.from_numpy(part)[None] for part in parts)
        self.start = self.flow.flow_state(along_x, along_y, dye)
        self.frames_seen, self.fineness = torch.from_numpy(frames[1:] / 255.0), fineness

    def missed(self, log: Tensor) -> Tensor:
        """Mean square of what pixels differ by, in thousandths."""
        run = self.flow.rollout(self.start, self.steps * len(self.frames_seen), properties={"viscosity": log.exp()})
        shown = self.flow.picture(State(run.q[0, self.steps :: self.steps], run.v[0, self.steps :: self.steps]))
        pixels = torch.nn.functional.avg_pool2d(shown, self.fineness)[:, 0]
        return 1e3 * (pixels - self.frames_seen).square().mean()

    def fit(self, log: float, course: list[float], rounds: int = 8) -> float:
        """The logarithm of the viscosity at which the gradient vanishes, by its secant."""
        last: tuple[float, float] | None = None
        for _ in range(rounds):
            z = torch.tensor(log, dtype=torch.float64, requires_grad=True)
            (slope,) = torch.autograd.grad(self.missed(z), z)
            course.append(math.exp(log))
            curved = 0.0 if last is None else (float(slope) - last[1]) / (log - last[0])
            move = -float(slope) / curved if curved > 0 else -math.copysign(0.1, float(slope))
            move, last = max(-1.0, min(1.0, move)), (log, float(slope))
            log += move
            if abs(move) < 1e-3:
                break
        course.append(math.exp(log))
        return log


def viscosity(trials: int, updates: int, out: Path, size: int = 64, fineness: Sequence[int] = (1, 2)) -> bool:
    """From the pictures of each trial, on finer and finer grids."""
    recipe = DyeRecipe(size=size, noise=0.01)
    figure, axis = panel()
    errors = []
    for number in range(trials):
        trial = recipe.make("test", number)
        truth, log, course, result = float(trial["viscosity"][0]), math.log(FIRST), [], []
        for entry in fineness:
            log = Pictures(trial, float(recipe.dt), entry).fit(log, course)
            result.append(math.exp(log) / truth - 1)
        errors.append(abs(result[-1]))
        offs = ", ".join(f"{off:+.2%} with {entry * size}²" for off, entry in zip(result, fineness, strict=True))
        print(f"viscosity {truth:.4f} m²/s of trial {number}: {offs} cells", flush=True)
        axis.plot(np.array(course) / truth, marker=".", label=f"trial {number}")
    axis.axhline(1.0, color="0.6", linestyle=":")
    axis.set(xlabel="gradient", ylabel="viscosity over the true one", yscale="log")
    save(figure, axis, out / "fluid_viscosity.png")
    print(f"viscosity from pictures: {max(errors):.2%} off at most (bar {BARS['viscosity']:.0%})")
    return max(errors) < BARS["viscosity"]


def shape(trials: int, updates: int, out: Path, cells: int = 20, steps: int = 40) -> bool:
    """The stream function at the start that carries a disc of dye into a cross of the same area."""
    flow = Flow((cells, cells), (1.0, 1.0), FluidMaterial(1e-3), dt=0.02)
    h = 1.0 / cells
    line = (torch.arange(cells, dtype=torch.float64) + 0.5) * h
    x, y = line[:, None], line[None]

    def inside(depth: Tensor) -> Tensor:
        return (depth / h * 2).sigmoid()

    disc = inside(0.18 - ((x - 0.4).square() + (y - 0.5).square()).sqrt())
    across, along = ((x - 0.55).abs(), (y - 0.5).abs())
    arms = [torch.minimum(0.2 - long, 0.08 - short) for long, short in ((across, along), (along, across))]
    target = inside(torch.maximum(*arms))
    stream = torch.zeros(cells - 1, cells - 1, dtype=torch.float64, requires_grad=True)

    def carried() -> Tensor:
        wide = torch.nn.functional.pad(stream, (1, 1, 1, 1))
        u, v = wide[1:-1].diff(dim=1) / h, -wide[:, 1:-1].diff(dim=0) / h
        return flow.rollout(flow.flow_state(u[None], v[None], disc[None]), steps).q[0, -1].unflatten(0, (cells, cells))

    def within(dye: Tensor) -> float:
        """The cosine of dye and cross as vectors: one where they are the same."""
        return float((dye * target).sum() / (dye.square().sum() * target.square().sum()).sqrt())

    course: list[float] = []

    def loss() -> Tensor:
        dye = carried()
        course.append(within(dye.detach()))
        return (dye - target).square().mean()

    descend(loss, torch.optim.Adam([stream], lr=3e-3), updates, final_lr_fraction=0.05)
    dye = carried().detach()
    off = float((dye - target).abs().sum() / target.sum())
    print(f"dye in a cross: alike by {within(dye):.3f} (bar {BARS['shape']}), {course[0]:.3f} at first; ", end="")
    print(f"{off:.1%} of the cross amiss")
    figure, axis = panel()
    axis.imshow(dye.T, origin="lower", extent=(0, 1, 0, 1), cmap="Blues")
    for field, label, color in ((disc, "at first", "0.6"), (target, "asked for", "C3")):
        axis.contour(line, line, field.T, levels=[0.5], colors=[color])
        axis.plot([], [], color=color, label=label)
    axis.set(xlabel="x, m", ylabel="y, m", aspect="equal")
    save(figure, axis, out / "fluid_shape.png")
    return within(dye) > BARS["shape"]


TASKS: dict[str, Callable[..., bool]] = {"viscosity": viscosity, "shape": shape}


def main(tasks: Sequence[str] = tuple(TASKS), trials: int = 3, updates: int = 120, out: Path = Path("out")) -> bool:
    """Print what is reached, and draw it; whether every bar is met.

    Args:
        tasks: which of them.
        trials: Trials of the recipe whose viscosities are estimated.
        updates: Updates of the stream function.
        out: folder of the figures.
    """
    torch.set_num_threads(1)
    met = [TASKS[task](trials, updates, out) for task in tasks]
    print("met" if all(met) else "MISSED")
    return all(met)


if __name__ == "__main__":
    auto_cli(main)
