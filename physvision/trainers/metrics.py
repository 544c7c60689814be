"""Metrics of predictions: errors of states and frames at chosen horizons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torchmetrics import CatMetric, MeanMetric

from physvision.core import Coordinates, brightness
from physvision.datasets import Sample
from physvision.losses import psnr, ssim
from physvision.models import Forecast


class MedianMetric(CatMetric):
    """Median of all values."""

    def compute(self) -> Tensor:
        """Compute the median, the lower of two middle values."""
        return torch.as_tensor(super().compute()).median()


class PredictionMetrics(nn.Module):
    """State error, frame error, PSNR and SSIM at several horizons past the last given frame.

    - `state_error`: mean absolute error of positions, angles by the shorter way; `state_error_median`: the median over
      predictions of the mean over positions, robust to a few diverged ones;
    - `velocity_error`: mean absolute error of velocities;
    - `frame_error_mean`, `frame_error_sum`: squared error of brightness a pixel, and summed over a frame;
    - `psnr`, dB, and `ssim`: mean over frames, whose brightness is cut to 0 to 1 first.
    """

    def __init__(self, coordinates: Coordinates, steps: Sequence[int], dt: float) -> None:
        """Choose horizons in steps of `dt` seconds; 0 is the last given frame."""
        super().__init__()
        self.coordinates, self.dt = coordinates, dt
        self.steps = tuple(steps)
        self.measures = nn.ModuleDict({str(step): _measures() for step in self.steps})

    def update(self, forecast: Forecast, sample: Sample) -> None:
        """Add a forecast, whose rendered frames must be those of `steps`."""
        images, true, predicted = brightness(sample.frames_at(self.steps)), sample.ahead, forecast.trajectory
        for index, step in enumerate(self.steps):
            rendered, shown = forecast.frames[:, index].float().clamp(0, 1), images[:, index]
            squares = (rendered - shown).square().flatten(1)
            values = {"frame_error_mean": squares.mean(1), "frame_error_sum": squares.sum(1)}
            values |= {"psnr": psnr(rendered, shown), "ssim": ssim(rendered, shown)}
            if true is not None:
                error = self.coordinates.difference(predicted.q[:, step], true.q[:, step]).abs()
                values |= {"state_error": error, "state_error_median": error.mean(-1)}
                values["velocity_error"] = (predicted.v[:, step] - true.v[:, step]).abs()
            measures: Any = self.measures[str(step)]
            for name, value in values.items():
                measures[name].update(value)

    def compute(self) -> dict[str, Float[Tensor, ""]]:
        """Compute all metrics, named like `state_error/1s`, and reset them."""
        result = {}
        for step in self.steps:
            measures: Any = self.measures[str(step)]
            for name, measure in measures.items():
                if measure.update_called:
                    result[f"{name}/{step * self.dt:.6g}s"] = torch.as_tensor(measure.compute()).float()
                measure.reset()
        return result


def _measures() -> nn.ModuleDict:
    means = ("state_error", "velocity_error", "frame_error_mean", "frame_error_sum", "psnr", "ssim")
    return nn.ModuleDict({"state_error_median": MedianMetric(), **{name: MeanMetric() for name in means}})
