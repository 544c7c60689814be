"""Callbacks that plot a training: physical parameters over time, predicted beside true frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import torch
from lightning import Callback, LightningModule, Trainer
from matplotlib.figure import Figure
from torch import Tensor

from physvision.core import brightness
from physvision.datasets import Sample
from physvision.trainers.module import PredictionTraining

_LOG_INTERVAL = 20  # updates between two logged values of the parameters


def learned_values(module: LightningModule) -> dict[str, Tensor]:
    """The physical parameters that `module` learns, by name, flat."""
    assert isinstance(module, PredictionTraining)
    return {name: value.detach().flatten() for name, value in module.model.engine.learned_values.items()}


class ParameterTracking(Callback):
    """Logs physical parameters, and their errors where the truth is known; plots them in parameters.png."""

    def __init__(self, truth: Mapping[str, Sequence[float] | float] | None = None) -> None:
        """Choose true values and interval.

        Args:
            truth: Known true values, by name.
        """
        self.truth = {name: torch.tensor(value).flatten() for name, value in (truth or {}).items()}
        self.history: dict[str, list[list[float]]] = {}
        self.updates: list[int] = []

    def state_dict(self) -> dict[str, Any]:
        """Save the history, for a resumed run."""
        return {"history": self.history, "updates": self.updates}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the history of the resumed run."""
        self.history, self.updates = state_dict["history"], state_dict["updates"]

    def errors(self, module: LightningModule) -> dict[str, float]:
        """The largest relative error of each parameter whose truth is known."""
        return {
            name: float(((value.cpu() - self.truth[name]) / self.truth[name]).abs().max())
            for name, value in learned_values(module).items()
            if name in self.truth
        }

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Sample, batch_idx: int
    ) -> None:
        """Log the current parameter values."""
        if trainer.global_step % _LOG_INTERVAL:
            return
        values = learned_values(pl_module)
        if not values:
            return
        self.updates.append(trainer.global_step)
        for name, value in values.items():
            self.history.setdefault(name, []).append(value.tolist())
            pl_module.log_dict({f"parameters/{name}[{index}]": x for index, x in enumerate(value.tolist())})
        pl_module.log_dict({f"parameters/{name}_error": error for name, error in self.errors(pl_module).items()})

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Plot the history of each parameter."""
        if not self.history or not trainer.is_global_zero:
            return
        figure = Figure(figsize=(6, 3 * len(self.history)), layout="constrained")
        for index, (name, values) in enumerate(self.history.items()):
            axes = figure.add_subplot(len(self.history), 1, index + 1)
            lines = axes.plot(self.updates, values)
            for line, true in zip(lines, self.truth.get(name, torch.tensor([])).tolist(), strict=False):
                axes.axhline(true, color=line.get_color(), linestyle=":", linewidth=1)
            axes.legend(lines, [f"{name}[{k}]" for k in range(len(lines))], frameon=False)
            axes.set(xlabel="updates", ylabel=name)
            axes.spines[["top", "right"]].set_visible(False)
        _write(figure, Path(trainer.default_root_dir) / "parameters.png")


class PredictionFigure(Callback):
    """Plots predicted frames below the true ones in prediction.png, after each validation."""

    def __init__(self, samples: int = 3, columns: int = 6) -> None:
        """Choose samples and columns.

        Args:
            samples: Number of samples shown.
            columns: Frames of each sample, evenly from the last given one to the end of the horizon.
        """
        self.samples, self.columns = samples, columns

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Sample,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Plot samples of the first batch."""
        if batch_idx or not trainer.is_global_zero:
            return
        assert isinstance(pl_module, PredictionTraining)
        steps = torch.linspace(0, batch.horizon, min(self.columns, batch.horizon + 1)).round().int().tolist()
        # Samples that lie far apart look different.
        rows = torch.linspace(0, batch.batch - 1, min(self.samples, batch.batch)).int().tolist()
        shown = batch[rows]
        with torch.no_grad():
            predicted = pl_module.model(shown.observed, shown.horizon, steps).frames
        times = [step * pl_module.model.engine.dt for step in steps]
        _write(
            self._figure(brightness(shown.frames_at(steps)), predicted, times),
            Path(trainer.default_root_dir) / "prediction.png",
        )

    def _figure(self, true: Tensor, predicted: Tensor, times: list[float]) -> Figure:
        count, columns = true.shape[:2]
        figure = Figure(figsize=(1.3 * columns, 2.6 * count + 0.3), layout="constrained")
        grid = figure.subplots(2 * count, columns, squeeze=False)
        for row, pictures in enumerate(torch.stack([true, predicted], 1).flatten(0, 1)):
            for column, picture in enumerate(pictures):
                axes = grid[row][column]
                axes.imshow(picture.float().clamp(0, 1).permute(1, 2, 0).cpu(), cmap="gray", vmin=0, vmax=1)
                axes.set(xticks=[], yticks=[])
                if row == 0:
                    axes.set_title(f"{times[column]:.3g} s", fontsize=9)
            grid[row][0].set_ylabel("predicted" if row % 2 else "true", fontsize=9)
        return figure


def _write(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"savefig.dpi": 120}):
        figure.savefig(path)
