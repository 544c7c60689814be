"""Open choices of the losses of the billiards paper: norm, states, labels; and a pendulum without labels.

Trainings are those of billiards_supervision.py, each with several seeds:

- physics, whose states are compared by the size of their errors, by their squares, and as the configurations do it (the
  square below a pixel, the size beyond);
- the MLP with and without losses of the states that it predicts: then frames alone teach it to move;
- physics and MLP without any label.

The pendulum without labels has the camera for a decoder, knows its rods, and an encoder that knows nothing.

    python experiments/billiards_losses.py [--seeds 3] [--updates 400] [--trials 40] [--out out]
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import torch
from billiards_supervision import Memory, configurations, source, supervision_of, train
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor

from physvision.camera import Camera
from physvision.core import Coordinates, brightness
from physvision.datasets import (
    BilliardsRecipe,
    DataModule,
    LabelSettings,
    PendulumRecipe,
    Recipe,
    WindowShape,
    generate,
)
from physvision.estimation import descend
from physvision.losses import multi_scale
from physvision.models import MlpEncoder, PredictiveAutoencoder
from physvision.physics import articulated

SMALL, LARGE = 1e-2, 1e2  # px: beyond the one an error counts by its size, below the other by its square
# With s the scale, an error of d px counts (d/s)² below s and 2 d/s − 1 beyond; weighted so that a pixel counts one.
SIZE, SQUARE = {"scale": SMALL, "weight": SMALL / 2}, {"scale": LARGE, "weight": LARGE**2}
# Which engine, share of labels, whether unlabeled samples are left out, and the loss.
VARIANTS: dict[str, tuple[str, float, bool, dict[str, Any]]] = {
    "physics, square, then size": ("physics", 1.0, False, {}),
    "physics, size of errors": ("physics", 1.0, False, SIZE),
    "physics, squares of errors": ("physics", 1.0, False, SQUARE),
    "MLP, predicted states too": ("MLP", 1.0, True, {}),
    "MLP, frames alone ahead": ("MLP", 1.0, True, {"states": False}),
    "physics, no labels": ("physics", 0.0, False, {}),
    "MLP, no labels": ("MLP", 0.0, False, {}),
}
AHEAD, PIXELS, LENGTHS = 10, 48, (3.0, 3.0)  # frames, px, m


def data_of(recipe: Recipe, folder: Path) -> str:
    """A data set of the recipe, made unless it is there."""
    path = folder / f"{recipe.name}-{recipe.trials}"
    if not (path / "dataset.json").exists():
        generate(recipe, path, workers=1, progress=False)
    return str(path)


def billiards(seeds: int, updates: int, data: str, runs: Path) -> dict[str, list[tuple[float, float]]]:
    """Held-out errors for each variant and seed: of a ball after ten frames, px, and of that frame, mean square."""
    memory, result = Memory(), configurations()
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
    print(f"{'':<28} {'seed':>4} {'labels':>6} {'px':>8} {'frame MSE':>10}")
    for seed in range(seeds):
        for name, (kind, fraction, alone, options) in VARIANTS.items():
            folder = runs / f"{name}-{seed}".replace(", ", "-").replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            loss = supervision_of(**options)
            run = train(name, result[kind], source(data, 20, fraction, alone), updates, folder, memory, loss, seed)
            results[name].append((run.position, run.frame))
            print(f"{name:<28} {seed:>4} {run.labels:>6} {run.position:>8.3f} {run.frame:>10.2e}", flush=True)
    return results


def pendulum(seed: int, updates: int, data: str) -> tuple[float, float, float]:
    """Errors of angles before training, after it, and ten frames ahead, rad: means over held-out windows."""
    torch.manual_seed(seed)
    source = DataModule(data, 16, WindowShape(horizon=AHEAD, stride=5), LabelSettings(0.0), memory=True)
    source.setup("fit")
    recipe = PendulumRecipe(lengths=LENGTHS, size=PIXELS)
    distance, angle = recipe.view
    engine = articulated.chain(list(LENGTHS), dt=float(recipe.dt), integrator="runge_kutta_4", substeps=2)
    camera = Camera.pinhole(PIXELS, PIXELS, position=(0.0, -distance, 0.0), target=(0.0, 0.0, 0.0), fov=angle)
    levels = [torch.full((1,), float(level)) for level in torch.linspace(1.0, 0.4, len(LENGTHS))]
    coordinates = Coordinates(len(LENGTHS), tuple(range(len(LENGTHS))))
    encoder = MlpEncoder((1, PIXELS, PIXELS), coordinates, dt=float(recipe.dt), pool=2)
    model = PredictiveAutoencoder(
        encoder, engine, camera.bind(engine, textures=levels, background=(0.0,)), max_speed=60.0
    )
    windows, generator = source.windows("train"), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        batch = windows.__getitems__(torch.randint(len(windows), (16,), generator=generator).tolist())
        # The present first: a motion from a wrong place only teaches where wrong motions lead.
        selected = sorted({0, int(torch.randint(AHEAD + 1, (1,), generator=generator))})
        forecast = model(batch.observed, AHEAD, selected)
        return multi_scale(forecast.frames.flatten(0, 1), brightness(batch.frames_at(selected)).flatten(0, 1))

    @torch.no_grad()
    def errors() -> tuple[float, float]:
        source.setup("test")
        off: tuple[list[Tensor], list[Tensor]] = ([], [])
        for batch in source.test_dataloader():
            motion = model(batch.observed, AHEAD, ()).trajectory
            for entry, at in zip(off, (0, AHEAD), strict=True):
                away = motion.q[:, at] - batch.ahead.q[:, at]
                entry.append(torch.atan2(away.sin(), away.cos()).abs())
        now, ahead = (float(torch.cat(entry).mean()) for entry in off)
        return now, ahead

    first, _ = errors()
    descend(
        loss, torch.optim.Adam(model.encoder.parameters(), lr=1e-3), updates, final_lr_fraction=0.05, max_grad_norm=1.0
    )
    return first, *errors()


def main(
    seeds: int = 3,
    updates: int = 400,
    trials: int = 40,
    data: Path = Path("out/billiards_losses/data"),
    runs: Path = Path("out/billiards_losses/runs"),
    out: Path = Path("out"),
) -> dict[str, list[tuple[float, float]]]:
    """Train, measure, and draw; the errors of each variant.

    Args:
        seeds: Number of seeds for each variant.
        updates: Updates of each training; three times as many for the pendulum.
        trials: Trials of each data set.
        data: folder of the data sets.
        runs: where trainings are kept.
        out: folder of the figure.
    """
    torch.set_num_threads(1)
    result = billiards(seeds, updates, data_of(BilliardsRecipe(trials=trials), data), runs)
    print(f"{'median and range of seeds':<28} {'px':>22} {'frame MSE':>26}")
    for name, entry in result.items():
        cells = []
        for column in zip(*entry, strict=True):
            cells.append(f"{median(column):.3g} ({min(column):.3g} to {max(column):.3g})")
        print(f"{name:<28} {cells[0]:>22} {cells[1]:>26}")
    figure, axis = panel()
    for place, (name, item) in enumerate(result.items()):
        axis.plot([error for error, _ in item], [place] * len(item), "o", label=name)
    axis.set(xlabel="error of a ball ten frames ahead, px", xscale="log", yticks=[])
    save(figure, axis, out / "billiards_losses.png")
    swinging = data_of(PendulumRecipe(trials=trials, frames=60, lengths=LENGTHS, size=PIXELS), data)
    for seed in range(seeds):
        first, now, ahead = pendulum(seed, 3 * updates, swinging)
        rest = f"{now:.3f} after, {ahead:.3f} ten frames ahead"
        print(f"pendulum, no labels, seed {seed}: {first:.3f} rad before, {rest}", flush=True)
    return result


if __name__ == "__main__":
    auto_cli(main)
