"""Errors of what an encoder sees in a clip: how large they are, how long they last, and where they are larger.

Without a law they are measured by differences: a motion is smooth from frame to frame, so differences of high order
are noise, of standard deviation σ √(2n over n) for differences of order n. The residuals of a fit then tell more: their
own scale s, and their lag-one autocorrelation ρ, by which N frames say no more than N (1 − ρ)/(1 + ρ) independent ones
(`estimation.uncertainty`). A number counts with the standard deviation

    √( s² (1 + ρ)/(1 − ρ) (1 + l/d) + a² + b² ).

For discs, d is the step from frame to frame and l the length over which errors change with the place: frames of a disc
that rests have one and the same error. a grows with the step, and b is an error that is the same at each visit, where a
neighbor or the border of the image reaches into what the encoder looks at, or the frames of its window hold an impact.
Such an error does not decrease with the number of visits, so these frames have to count for little. Links hide one
another: where differences are several times the usual ones, s is that of the neighborhood.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.core import Coordinates, Scene
from physvision.estimation.uncertainty import autocorrelation
from physvision.prediction.settings import ClipFitSettings

# Size that a quarter of a standard normal distribution is within.
_QUARTER = 0.3186
# Frames that an encoder reads a disc's place from: the last ones of its window.
_READ_FRAMES = 3
_MAX_AUTOCORRELATION = 0.9


class ObservationNoise:
    """Standard deviations of what an encoder sees.

    Attributes:
        std: Standard deviation of each number in one frame, as differences of neighboring frames have it.
        inflation: Ratio of the one that each number counts with to it.
    """

    def __init__(self, scene: Scene, numbers: int, settings: ClipFitSettings, angles: bool) -> None:
        """Start with the smallest errors.

        Args:
            scene: Scene of the encoder.
            numbers: Number of coordinates that are observed; x and y of each disc, or angles.
            settings: Tuning numbers.
            angles: If true, they are angles.
        """
        self._scene, self._settings, self._angles = scene, settings, angles
        self._space = Coordinates(numbers, tuple(range(numbers)) if angles else ())
        self._floor = settings.min_angle_std if angles else settings.min_pixel_std
        self.std = torch.full((numbers,), self._floor, dtype=torch.float64)
        self.inflation = torch.full_like(self.std, settings.max_inflation)
        repeated = (1 + 2 * settings.angle_correlation) / settings.angle_roughness
        self._min_inflation = math.sqrt(repeated) if angles else 1.0

    def measure(self, q: Float[Tensor, "windows times numbers"]) -> None:
        """Measure errors by differences of neighboring frames."""
        difference = self._differences(q).abs()
        if not self._angles:
            # What hardly moves repeats its error.
            step = self._steps(q)[:, self._settings.pixel_order :].repeat_interleave(2, -1)
            difference = torch.where(step > self._settings.error_length, difference, torch.nan)
        # The quarter of the smallest: impacts are far apart even where balls are fast.
        size = difference.flatten(0, 1).nanquantile(0.25, dim=0) / _QUARTER
        self.std = size.nan_to_num(0.0).clamp_min(self._floor)

    @staticmethod
    def _steps(q: Tensor) -> Float[Tensor, "windows times objects"]:
        """Distance of each disc from where it was in the frame before; in the first frame, that to the second."""
        step = q.unflatten(-1, (-1, 2)).diff(dim=1).norm(dim=-1).nan_to_num(0.0)
        return torch.cat([step[:, :1], step], 1)

    def _differences(self, q: Tensor) -> Tensor:
        """Differences of high order, with the standard deviation of one number."""
        order = self._settings.angle_order if self._angles else self._settings.pixel_order
        difference = q
        for _ in range(order):
            difference = self._space.unwind(difference.diff(dim=-2))
        return difference / math.sqrt(math.comb(2 * order, order))

    def of(self, q: Float[Tensor, "windows times numbers"]) -> Float[Tensor, "windows times numbers"]:
        """Standard deviations that observed positions count with."""
        usual = (self.std * self.inflation).expand_as(q)
        return self._hidden(q, usual) if self._angles else self._moving(q, usual)

    def _hidden(self, q: Tensor, usual: Tensor) -> Tensor:
        """Errors of links, which are larger where one hides another."""
        order = self._settings.angle_order
        local = self._differences(q).nan_to_num(0.0).square().mT
        # Each frame takes part in the differences of `order` + 1 neighborhoods.
        local = functional.avg_pool1d(functional.pad(local, (order, order)), order + 1, 1, count_include_pad=False)
        ends = torch.arange(q.shape[1], device=q.device)
        multiples = (order + 1) / torch.minimum(ends + 1, ends.flip(0) + 1).clamp(1, order + 1)
        local = (local * multiples).sqrt().mT
        return torch.where(local > self._settings.hidden_ratio * self.std, torch.maximum(usual, local), usual)

    def _moving(self, q: Tensor, usual: Tensor) -> Tensor:
        """Errors of discs: repeated where they rest, growing with their step, lasting near others or the border."""
        settings, centers, step = self._settings, q.unflatten(-1, (-1, 2)), self._steps(q)
        radius = torch.tensor([item.radius or 0.0 for item in self._scene.objects]).to(q)
        size = torch.tensor(self._scene.size).to(q)
        repeats = (1.0 + settings.error_length / step.clamp_min(1e-6)).clamp_max(float(q.shape[1]))
        to_border = torch.minimum(centers, size - centers).amin(-1) - radius
        apart = (centers[..., None, :] - centers[..., None, :, :]).norm(dim=-1) - radius - radius[:, None]
        apart = apart + torch.diag(torch.full_like(radius, torch.inf))
        gap = torch.minimum(to_border.nan_to_num(torch.inf), apart.nan_to_num(torch.inf).amin(-1))
        is_near = gap < torch.maximum(settings.contact_reach * radius, step)
        # Walls need not be at the border: whatever turns a disc is an impact.
        turn = functional.pad(centers.diff(dim=1).diff(dim=1).norm(dim=-1).nan_to_num(0.0), (0, 0, 2, 0))
        is_near = (is_near | (turn > settings.impact_turn * step.clamp_min(settings.error_length))).to(q)
        is_near = functional.max_pool1d(functional.pad(is_near.mT, (_READ_FRAMES - 1, 0)), _READ_FRAMES, 1).mT
        extra = torch.hypot(settings.step_error * step, settings.contact_error * radius * is_near)
        return torch.hypot(usual * repeats.sqrt().repeat_interleave(2, -1), extra.repeat_interleave(2, -1))

    def calibrate(
        self,
        residuals: Float[Tensor, "windows times numbers"],
        std: Float[Tensor, "windows times numbers"],
        valid: Tensor,
        unknowns: int,
    ) -> None:
        """Measure scale and duration of errors by the residuals of a fit, where nothing makes them much larger.

        Args:
            residuals: Residuals of windows that the fit explains, in the standard deviations that they counted with.
            std: These standard deviations.
            valid: Mask of the numbers that were observed.
            unknowns: Unknowns of each window.
        """
        determined = float(unknowns * len(residuals))
        left = 1.0 - determined / max(float(valid.sum()), determined + 1.0)
        valid = valid & (std < 2.0 * self.std * self.inflation)
        if int(valid.sum()) < 2 * determined:
            return
        # As in the fit, an outlier counts by its size and not by its square.
        limit, rows = 3.0, torch.where(valid, residuals, 0.0).flatten(0, 1)
        weights = limit / rows.abs().clamp_min(limit)
        count, total = valid.flatten(0, 1).sum(0).clamp_min(1), (weights * valid.flatten(0, 1)).sum(0).clamp_min(1e-9)
        scale = ((weights * rows.square()).sum(0) / total / left).sqrt()
        scale = torch.where(count > unknowns, scale, 1.0)
        weighted = weights.sqrt() * rows / scale.clamp_min(1e-9)
        ones = torch.ones(len(rows)).to(rows)
        rho = autocorrelation(weighted, ones, valid.any(-1).flatten(), determined, _MAX_AUTOCORRELATION)
        inflation = self.inflation * scale * math.sqrt((1 + rho) / (1 - rho))
        self.inflation = inflation.clamp(self._min_inflation, self._settings.max_inflation)
