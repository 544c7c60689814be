"""What is measured of predictions: errors of states and frames at chosen times."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torchmetrics import CatMetric, MeanMetric, Metric

from physvision.core import Coordinates, brightness
from physvision.datasets import Sample
from physvision.losses import psnr, ssim
from physvision.models import Forecast


class MedianMetric(CatMetric):
    """The median of all values."""

    def compute(self) -> Tensor:
        """The middle one, or the lower of the two."""
        return torch.as_tensor(super().compute()).median()


class PredictionMetrics(nn.Module):
    """State error, frame error, PSNR and SSIM at each of some numbers of steps past the last frame given.

    - `state_error`: mean absolute error of positions, angles by the shorter way; `state_error_median`: the median over
      predictions of what is its mean over positions, which a few that have lost their way do not rule;
    - `velocity_error`: mean absolute error of velocities;
    - `frame_error_mean`, `frame_error_sum`: squared error of brightness a pixel, and summed over a frame;
    - `psnr`, dB, and `ssim`: mean over frames, whose brightness is cut to 0 to 1 first.
    """

    def __init__(self, coordinates: Coordinates, steps: Sequence[int], dt: float) -> None:
        """Measure at `steps`, of `dt` seconds each; 0 is the last frame given."""
        super().__init__()
        self.coordinates, self.dt = coordinates, dt
        self.steps = tuple(steps)
        self.found = nn.ModuleDict({str(step): _measures() for step in self.steps})

    def update(self, forecast: Forecast, sample: Sample) -> None:
        """Take in a forecast, whose drawn frames must be those of `steps`."""
        pictures, true, found = brightness(sample.frames_at(self.steps)), sample.ahead, forecast.trajectory
        for index, step in enumerate(self.steps):
            if true is not None:
                away = self.coordinates.difference(found.q[:, step], true.q[:, step]).abs()
                self._add(step, "state_error", away)
                self._add(step, "state_error_median", away.mean(-1))
                self._add(step, "velocity_error", (found.v[:, step] - true.v[:, step]).abs())
            self._add_frames(step, forecast.frames[:, index], pictures[:, index])

    def _add_frames(
        self,
        step: int,
        seen: Float[Tensor, "batch channels height width"],
        true: Float[Tensor, "batch channels height width"],
    ) -> None:
        seen = seen.float().clamp(0, 1)
        squares = (seen - true).square().flatten(1)
        self._add(step, "frame_error_mean", squares.mean(1))
        self._add(step, "frame_error_sum", squares.sum(1))
        self._add(step, "psnr", psnr(seen, true))
        self._add(step, "ssim", ssim(seen, true))

    def _add(self, step: int, name: str, values: Tensor) -> None:
        measures = self.found[str(step)]
        assert isinstance(measures, nn.ModuleDict)
        measure = measures[name]
        assert isinstance(measure, Metric)
        measure.update(values)

    def compute(self) -> dict[str, Float[Tensor, ""]]:
        """All measures, named like `state_error/1s`; forgets what was taken in."""
        result = {}
        for step in self.steps:
            measures = self.found[str(step)]
            assert isinstance(measures, nn.ModuleDict)
            for name, measure in measures.items():
                assert isinstance(measure, Metric)
                if measure.update_called:
                    result[f"{name}/{step * self.dt:.6g}s"] = torch.as_tensor(measure.compute()).float()
                measure.reset()
        return result


def _measures() -> nn.ModuleDict:
    means = ("state_error", "velocity_error", "frame_error_mean", "frame_error_sum", "psnr", "ssim")
    return nn.ModuleDict({"state_error_median": MedianMetric(), **{name: MeanMetric() for name in means}})
