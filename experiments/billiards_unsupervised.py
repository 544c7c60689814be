"""Restitution and ball radius from video alone: no labels, the camera as decoder, from several wrong first guesses.

The encoder (perception, and a network that begins by saying nothing), the two physical parameters and nothing else are
learned from the frames that follow: the loss is the multi-scale difference between the camera's frames and true ones.
The paper reports that training without labels fails. What is left of that is shown by the guesses that do not arrive.

    python experiments/billiards_unsupervised.py [--restitution 0.7] [--radius 3.2] [--updates 200] [--out out]
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import brightness
from physvision.datasets import BilliardsRecipe, DataModule, LabelSettings, WindowShape, generate
from physvision.estimation import descend
from physvision.losses.frames import multi_scale
from physvision.models import ObjectEncoder, PredictiveAutoencoder, TableCamera, VggEncoder, learned_table
from physvision.perception.flow import DenseInverseSearch
from physvision.perception.segmentation import find_colors

mpl.use("Agg")
from matplotlib import pyplot as plt

BALLS, AHEAD, BATCH = 3, 10, 8
BAR = 0.05  # of each parameter, relative


def build_model(folder: Path, restitution: float, radius: float, seed: int) -> str:
    """A data set of fast balls, so that enough of them bounce within the third of a second that is seen."""
    path = folder / f"e{restitution:g}-r{radius:g}-s{seed}"
    if not (path / "dataset.json").exists():
        recipe = BilliardsRecipe(
            trials=20, frames=60, balls=BALLS, restitution=restitution, radius=radius, speed=(1.0, 3.0), seed=seed
        )
        generate(recipe, path, workers=1, progress=False)
    return str(path)


def model_of(colors: Tensor, restitution: float, radius: float) -> PredictiveAutoencoder:
    """An autoencoder that knows colors, found from the frames, and first guesses."""
    torch.manual_seed(0)
    shades = [tuple(color) for color in colors.tolist()]
    network = VggEncoder(13, 4, width=0.125, pool=1, dropout=0.0)
    encoder = ObjectEncoder((64, 64), 1 / 30, radius, shades, network, DenseInverseSearch(), crop=32)
    engine = learned_table(BALLS, radius, restitution=restitution)
    return PredictiveAutoencoder(encoder, engine, TableCamera(BALLS, shades), max_speed=1000.0)


def learn(model: PredictiveAutoencoder, source: DataModule, updates: int) -> list[tuple[float, float]]:
    """The way of both parameters."""
    physical = list(model.engine.learned.parameters())
    groups = [{"params": physical, "lr": 0.03}, {"params": model.encoder.network.parameters(), "lr": 3e-5}]
    generator = torch.Generator().manual_seed(0)
    windows = source.windows("train")
    way = []

    def loss() -> Tensor:
        selected = torch.randint(len(windows), (BATCH,), generator=generator).tolist()
        batch = windows.__getitems__(selected)
        sample = sorted(torch.randperm(AHEAD + 1, generator=generator)[:3].tolist())
        forecast = model(batch.observed, AHEAD, sample)
        return multi_scale(forecast.frames, brightness(batch.frames_at(sample)))

    def keep() -> None:
        values = model.engine.learned_values
        way.append((values["restitution"].item(), values["radius"].item()))

    descend(loss, torch.optim.Adam(groups), updates, final_lr_fraction=0.0, max_grad_norm=1.0, callback=keep)
    return way


@torch.no_grad()
def state_errors(model: PredictiveAutoencoder, source: DataModule) -> tuple[float, float]:
    """Median errors of positions now and after ten frames on held-out windows, pixels."""
    model.eval()
    now, later = [], []
    for batch in source.test_dataloader():
        trajectory = model(batch.observed, AHEAD, ()).trajectory
        # Which color was found first does not say which ball the data calls the first.
        for entry, true, errors in (
            (trajectory.q[:, 0], batch.ahead.q[:, 0], now),
            (trajectory.q[:, -1], batch.ahead.q[:, -1], later),
        ):
            places = (value.unflatten(1, (BALLS, 3))[..., :2] for value in (entry, true))
            errors.append(torch.cdist(*places).amin(2).flatten())
    return float(torch.cat(now).median()), float(torch.cat(later).median())


def draw(ways: dict[str, list[tuple[float, float]]], truth: tuple[float, float], path: Path) -> None:
    figure, grid = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for axes, index, name in zip(grid, (0, 1), ("restitution", "radius, px"), strict=True):
        for label, way in ways.items():
            axes.plot([values[index] for values in way], label=label)
        axes.axhline(truth[index], color="black", linestyle=":", linewidth=1)
        axes.set(xlabel="updates", ylabel=name)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(
    restitution: float = 0.7,
    radius: float = 3.2,
    guesses: tuple[tuple[float, float], ...] = ((0.95, 4.0), (0.4, 2.4), (0.95, 6.0), (0.95, 1.0), (0.95, 12.0)),
    updates: int = 200,
    seed: int = 0,
    data: Path = Path("out/billiards_unsupervised"),
    out: Path = Path("out"),
) -> float:
    """Recover the parameters; the largest relative error of the first guess's run.

    Args:
        restitution: the true one.
        radius: the true one, pixels.
        guesses: restitution and radius to start from.
        updates: Updates of each run.
        seed: Seed of the data.
        data: folder of the data sets.
        out: folder of the figure.
    """
    torch.set_num_threads(1)
    source = DataModule(
        build_model(data, restitution, radius, seed),
        32,
        WindowShape(horizon=AHEAD, stride=3),
        LabelSettings(0.0),
        memory=True,
    )
    source.setup()
    clip = torch.from_numpy(source.windows("train").dataset.frames(0)).permute(0, 3, 1, 2).float() / 255
    colors = find_colors(clip, BALLS).colors
    print(
        f"truth: restitution {restitution:g}, radius {radius:g} px; colors found: {colors.round(decimals=2).tolist()}"
    )
    print(f"{'first guess':<22} {'restitution':>12} {'radius':>8} {'off, %':>8} {'px now':>8} {'px 10 later':>12}")
    ways, errors = {}, []
    for guess in guesses:
        model = model_of(colors, *guess)
        way = learn(model, source, updates)
        label = f"{guess[0]:g}, {guess[1]:g} px"
        ways[label] = [guess, *way]
        error = max(abs(way[-1][0] / restitution - 1), abs(way[-1][1] / radius - 1))
        errors.append(error)
        now, later = state_errors(model, source)
        print(f"{label:<22} {way[-1][0]:>12.3f} {way[-1][1]:>8.3f} {100 * error:>8.2f} {now:>8.3f} {later:>12.3f}",
              flush=True)  # fmt: skip
    draw(ways, (restitution, radius), out / "billiards_unsupervised.png")
    verdict = "met" if errors[0] <= BAR else "MISSED"
    print(f"first guess, largest error {100 * errors[0]:.2f} %; bar {100 * BAR:g} %: {verdict}")
    print(f"figure: {out / 'billiards_unsupervised.png'}")
    return errors[0]


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
