"""Figures of experiments that have one panel, in one style."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
