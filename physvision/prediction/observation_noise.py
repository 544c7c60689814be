"""Errors of an encoder's observations in a clip: their size, their autocorrelation, and where they are larger.

Without a law they are measured by differences: a motion is smooth from frame to frame, so differences of high order
are noise, of standard deviation σ √(2n over n) for differences of order n. The residuals of a fit then show their scale
s, and their lag-one autocorrelation ρ, by which N frames hold no more information than N (1 − ρ)/(1 + ρ) independent
ones (`estimation.uncertainty`). A coordinate is weighted by the standard deviation

    √( s² (1 + ρ)/(1 − ρ) (1 + l/d) + a² + b² ).

For discs, d is the step from frame to frame and l the length over which errors change with the position: all frames of
a disc at rest have the same error. a grows with the step, and b is an error that is the same whenever a disc passes the
same position: near a neighbor or the border of the image, which the encoder sees too, or in windows with an impact.
Such an error does not decrease with the number of frames, so these frames need a low weight. Links occlude one another:
where differences are several times their median, s is that of the neighborhood.
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

# Quantile of |x| at 1/4, for a standard normal x.
_NORMAL_QUARTILE = 0.3186
# Number of frames, the last of its window, from which an encoder estimates a disc's position.
_OBSERVED_FRAMES = 3
_MAX_AUTOCORRELATION = 0.9


class ObservationNoise:
    """Standard deviations of an encoder's observations.

    Attributes:
        std: Standard deviation of each coordinate in one frame, measured by differences of neighboring frames.
        inflation: Factor of `std` for each coordinate, by the scale and the autocorrelation of a fit's residuals.
    """

    def __init__(self, scene: Scene, numbers: int, settings: ClipFitSettings, angles: bool) -> None:
        """Start with the smallest standard deviations, and the largest inflation.

        Args:
            scene: Scene of the encoder.
            numbers: Number of coordinates that are observed; x and y of each disc, or angles.
            settings: Tuning numbers.
            angles: If true, the coordinates are angles.
        """
        self._scene, self._settings, self._angles = scene, settings, angles
        self._space = Coordinates(numbers, tuple(range(numbers)) if angles else ())
        self._floor = settings.min_angle_std if angles else settings.min_pixel_std
        self.std = torch.full((numbers,), self._floor, dtype=torch.float64)
        self.inflation = torch.full_like(self.std, settings.max_inflation)
        squared_inflation = (1 + 2 * settings.angle_correlation) / settings.angle_roughness
        self._min_inflation = math.sqrt(squared_inflation) if angles else 1.0

    def measure(self, q: Float[Tensor, "windows times numbers"]) -> None:
        """Measure errors by differences of neighboring frames."""
        difference = self._differences(q).abs()
        if not self._angles:
            # A disc that hardly moves has the same error in all frames, which differences do not show.
            step = self._steps(q)[:, self._settings.pixel_order :].repeat_interleave(2, -1)
            difference = torch.where(step > self._settings.error_length, difference, torch.nan)
        # The lower quartile: an impact enlarges the differences around it, but impacts are far apart.
        std = difference.flatten(0, 1).nanquantile(0.25, dim=0) / _NORMAL_QUARTILE
        self.std = std.nan_to_num(0.0).clamp_min(self._floor)

    @staticmethod
    def _steps(q: Tensor) -> Float[Tensor, "windows times objects"]:
        """Distance that each disc moves from frame to frame; in the first frame, that to the second."""
        step = q.unflatten(-1, (-1, 2)).diff(dim=1).norm(dim=-1).nan_to_num(0.0)
        return torch.cat([step[:, :1], step], 1)

    def _differences(self, q: Tensor) -> Tensor:
        """Differences of high order, scaled to the standard deviation of a coordinate."""
        order = self._settings.angle_order if self._angles else self._settings.pixel_order
        difference = q
        for _ in range(order):
            difference = self._space.unwind(difference.diff(dim=-2))
        return difference / math.sqrt(math.comb(2 * order, order))

    def observation_std(self, q: Float[Tensor, "windows times numbers"]) -> Float[Tensor, "windows times numbers"]:
        """Standard deviations by which observed coordinates are weighted."""
        base_std = (self.std * self.inflation).expand_as(q)
        return self._angle_std(q, base_std) if self._angles else self._disc_std(q, base_std)

    def _angle_std(self, q: Tensor, base_std: Tensor) -> Tensor:
        """Standard deviations of the angles of links, which are larger where one occludes another."""
        order = self._settings.angle_order
        local = self._differences(q).nan_to_num(0.0).square().mT
        # Each frame takes part in the differences of `order` + 1 neighborhoods.
        local = functional.avg_pool1d(functional.pad(local, (order, order)), order + 1, 1, count_include_pad=False)
        ends = torch.arange(q.shape[1], device=q.device)
        multiples = (order + 1) / torch.minimum(ends + 1, ends.flip(0) + 1).clamp(1, order + 1)
        local = (local * multiples).sqrt().mT
        return torch.where(local > self._settings.hidden_ratio * self.std, torch.maximum(base_std, local), base_std)

    def _disc_std(self, q: Tensor, base_std: Tensor) -> Tensor:
        """Standard deviations of the positions of discs, larger at rest, at speed, and near others or the border."""
        settings, centers, step = self._settings, q.unflatten(-1, (-1, 2)), self._steps(q)
        radius = torch.tensor([item.radius or 0.0 for item in self._scene.objects]).to(q)
        size = torch.tensor(self._scene.size).to(q)
        repeats = (1.0 + settings.error_length / step.clamp_min(1e-6)).clamp_max(float(q.shape[1]))
        to_border = torch.minimum(centers, size - centers).amin(-1) - radius
        separation = (centers[..., None, :] - centers[..., None, :, :]).norm(dim=-1) - radius - radius[:, None]
        separation = separation + torch.diag(torch.full_like(radius, torch.inf))
        distance = torch.minimum(to_border.nan_to_num(torch.inf), separation.nan_to_num(torch.inf).amin(-1))
        is_near = distance < torch.maximum(settings.contact_reach * radius, step)
        # Walls need not be at the border: any sudden change of the step is an impact.
        step_change = functional.pad(centers.diff(dim=1).diff(dim=1).norm(dim=-1).nan_to_num(0.0), (0, 0, 2, 0))
        is_near = (is_near | (step_change > settings.impact_turn * step.clamp_min(settings.error_length))).to(q)
        is_near = functional.max_pool1d(functional.pad(is_near.mT, (_OBSERVED_FRAMES - 1, 0)), _OBSERVED_FRAMES, 1).mT
        extra = torch.hypot(settings.step_error * step, settings.contact_error * radius * is_near)
        return torch.hypot(base_std * repeats.sqrt().repeat_interleave(2, -1), extra.repeat_interleave(2, -1))

    def calibrate(
        self,
        residuals: Float[Tensor, "windows times numbers"],
        std: Float[Tensor, "windows times numbers"],
        valid: Tensor,
        unknowns: int,
    ) -> None:
        """Measure scale and autocorrelation of errors by the residuals of a fit, away from neighbors and impacts.

        Args:
            residuals: Residuals of windows that the fit explains, in units of `std`.
            std: Standard deviations by which the fit weighted them.
            valid: Mask of the numbers that were observed.
            unknowns: Number of unknowns of each window.
        """
        num_unknowns = float(unknowns * len(residuals))
        df_fraction = 1.0 - num_unknowns / max(float(valid.sum()), num_unknowns + 1.0)
        valid = valid & (std < 2.0 * self.std * self.inflation)
        if int(valid.sum()) < 2 * num_unknowns:
            return
        # As in the fit, outliers have Huber's weights.
        limit, rows = 3.0, torch.where(valid, residuals, 0.0).flatten(0, 1)
        weights = limit / rows.abs().clamp_min(limit)
        count, total = valid.flatten(0, 1).sum(0).clamp_min(1), (weights * valid.flatten(0, 1)).sum(0).clamp_min(1e-9)
        scale = ((weights * rows.square()).sum(0) / total / df_fraction).sqrt()
        scale = torch.where(count > unknowns, scale, 1.0)
        weighted = weights.sqrt() * rows / scale.clamp_min(1e-9)
        ones = torch.ones(len(rows)).to(rows)
        rho = autocorrelation(weighted, ones, valid.any(-1).flatten(), num_unknowns, _MAX_AUTOCORRELATION)
        inflation = self.inflation * scale * math.sqrt((1 + rho) / (1 - rho))
        self.inflation = inflation.clamp(self._min_inflation, self._settings.max_inflation)
