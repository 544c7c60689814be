"""Young's modulus of a block from its video: three marks are found in the frames, and our motion is fitted to theirs.

The videos are those of the recipe `block`, by scikit-fem. The marks' colors are found in the frames, and their centers
as fractions of pixels. Many moduli are tried at once on a coarse mesh, since a guess that is far off has other minima
between it and the truth; the best one is refined by Gauss and Newton's method on two meshes, whose answers are
extrapolated, for linear triangles err by the square of their size.

    python experiments/soft_video.py [--trials 5] [--out out]
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor
from torch.nn import functional

from physvision.datasets import BlockRecipe
from physvision.datasets.block.recipe import COLORS, MARKS
from physvision.physics import soft

BAR = 0.05
GUESSES = (5e3, 8e4, 48)  # Pa, from, to, and how many


def mark_positions(recipe: BlockRecipe, frames: np.ndarray) -> Tensor:
    """Positions of the marks, m, (frames, marks, 2), from the frames alone; the camera's scale is known."""
    pictures = torch.from_numpy(frames).double() / 255
    # Marks alone have a color: gray is what all three channels share.
    saturated, colors = pictures - pictures.amin(-1, keepdim=True), torch.tensor(COLORS, dtype=torch.float64)
    coverage = (saturated @ colors.mT / colors.square().sum(1)).clamp(0, 1)
    fractions = functional.one_hot(coverage.argmax(-1), len(colors)) * coverage
    middles = torch.arange(recipe.size, dtype=torch.float64) + 0.5
    window = fractions > 0.5
    for _ in range(2):
        # Noise far away would pull the centroid; the second window lies around the first one's.
        inside = window * fractions
        columns, rows = (torch.einsum(f"fhwm,{axis}->fm", inside, middles) / inside.sum((1, 2)) for axis in "wh")
        apart = torch.hypot(middles[:, None] - columns[:, None, None], middles[:, None, None] - rows[:, None, None])
        window = apart < recipe.scale * recipe.radius + 1.5
    x = (columns - recipe.size / 2) / recipe.scale + recipe.side / 2
    y = (0.85 * recipe.size - rows) / recipe.scale
    return torch.stack([x, y], -1)


class Fit:
    """Our block on a mesh of so many squares, beside marks that were seen.

    Args:
        recipe: Known values: size, density, Poisson's ratio and gravity.
        observed: places of the marks in each frame, m.
        squares: along each side.
    """

    def __init__(self, recipe: BlockRecipe, observed: Tensor, squares: int) -> None:
        side = float(recipe.side)
        mesh = soft.rectangle((side, side), (squares, squares))
        stiffest = math.sqrt(1.35 * GUESSES[1] / recipe.density)  # m/s, of sound at this Poisson's ratio
        self.weights_each = math.ceil(2.0 * recipe.dt * stiffest * squares / side)
        self.body = soft.SoftBody(
            mesh,
            soft.Material(GUESSES[0], poissons_ratio=float(recipe.ratio), density=float(recipe.density), law="linear"),
            dt=recipe.dt / self.weights_each,
            gravity=(0.0, -float(recipe.gravity)),
            integrator="symplectic_euler",
            kinematic=np.flatnonzero(np.isclose(mesh.nodes[:, 1], side)).tolist(),
        )
        self.marks, self.observed = [mesh.nearest_node([side * along for along in mark]) for mark in MARKS], observed

    def missed(self, logs: Tensor) -> Tensor:
        """Residuals of positions, in tenths of a millimeter, for each logarithm of the modulus: (batch, numbers)."""
        start = self.body.initial_state(len(logs), torch.float64)
        steps = self.weights_each * (len(self.observed) - 1)
        run = self.body.rollout(start, steps, properties={"youngs_modulus": logs.exp()[:, None]})
        places = self.body.node_positions(run)[:, :: self.weights_each][:, :, self.marks]
        return 1e4 * (places - self.observed).flatten(1)

    def refine(self, log: float, rounds: int = 6) -> float:
        """The least squares near a guess; one unknown, so a derivative is the difference of two worlds of one batch."""
        for _ in range(rounds):
            low, middle, high = self.missed(torch.tensor([log - 1e-3, log, log + 1e-3], dtype=torch.float64))
            slope = (high - low) / 2e-3
            move = -float((slope @ middle) / (slope @ slope))
            log += max(-0.1, min(0.1, move))
            if abs(move) < 1e-4:
                break
        return log


def main(trials: int = 5, squares: tuple[int, int] = (6, 12), out: Path = Path("out")) -> bool:
    """Print what is found, and draw it; whether the bar is met.

    Args:
        trials: Trials of the recipe.
        squares: Squares of the two meshes, along each side.
        out: folder of the figure.
    """
    torch.set_num_threads(1)
    recipe, errors = BlockRecipe(), []
    figure, axis = panel()
    for number in range(trials):
        trial = recipe.make("test", number)
        observed, truth = mark_positions(recipe, trial["frames"]), float(trial["modulus"][0])
        off = (observed - torch.from_numpy(trial["q"]).unflatten(1, (-1, 2))).norm(dim=-1)
        coarse, fine = (Fit(recipe, observed, square) for square in squares)
        logs = torch.linspace(math.log(GUESSES[0]), math.log(GUESSES[1]), GUESSES[2], dtype=torch.float64)
        cost = coarse.missed(logs).square().mean(1).sqrt() / 1e4
        first = coarse.refine(float(logs[cost.argmin()]))
        second = fine.refine(first)
        ratio = (squares[1] / squares[0]) ** 2
        result = math.exp(second + (second - first) / (ratio - 1))
        errors.append(abs(result / truth - 1))
        print(
            f"trial {number}: marks to {1e3 * float(off.mean()):.2f} mm; {result:.0f} Pa of {truth:.0f}, "
            f"{result / truth - 1:+.2%} ({math.exp(first) / truth - 1:+.2%} and {math.exp(second) / truth - 1:+.2%} "
            "on the two meshes)",
            flush=True,
        )
        axis.plot(logs.exp() / truth, 1e3 * cost, label=f"trial {number}")
    axis.set(xlabel="modulus over the true one", ylabel="marks amiss, mm", xscale="log")
    save(figure, axis, out / "soft_video.png")
    met = max(errors) < BAR
    print(f"modulus from video: {max(errors):.2%} off at most (bar {BAR:.0%}): {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    auto_cli(main)
