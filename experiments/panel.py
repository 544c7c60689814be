"""Figures of experiments in one style: one panel, or rows of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

mpl.use("Agg")
from matplotlib import pyplot as plt


def panel() -> tuple[Figure, Axes]:
    """An empty panel in a figure of its own."""
    return plt.subplots(figsize=(6, 3.8), layout="constrained")


def save(figure: Figure, axis: Axes, file: Path) -> None:
    """Write the panel with its legend to a file, whose folder is made, and close its figure."""
    axis.legend(frameon=False, fontsize="small")
    axis.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def save_pictures(rows: Sequence[dict[str, Tensor]], file: Path) -> None:
    """Write rows of pictures (channels, height, width), brightness 0 to 1, under the titles of the first row."""
    figure, grid = plt.subplots(
        len(rows), len(rows[0]), figsize=(8, 1.64 * len(rows)), layout="constrained", squeeze=False
    )
    for panels, pictures in zip(grid, rows, strict=True):
        for axes, picture in zip(panels, pictures.values(), strict=True):
            axes.imshow(picture.permute(1, 2, 0), vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
    for axes, title in zip(grid[0], rows[0], strict=True):
        axes.set_title(title, fontsize=9)
    figure.savefig(file, dpi=120)
    plt.close(figure)
