"""Estimates of a trial's properties from tracks, with standard deviations: the prior where the clip shows nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import InputError

# A uniform distribution of width one has this standard deviation.
UNIFORM_STD = 1.0 / math.sqrt(12.0)
# Range of the logarithm of a standard deviation, in units of the prior's.
_LOG_STD = (-4.0, 0.0)
# Error, in standard deviations, beyond which its likelihood falls exponentially: no single error counts for many.
_OUTLIER = 5.0


@dataclass(frozen=True)
class Tracks:
    """Motion of all objects of a clip, as far as frames of the context show it.

    Attributes:
        positions: Positions on the table, px.
        times: Times of the frames, s, zero at the last one.
        confidence: Confidence in each object in each frame, 0 to 1.
        area: Area of each object's mask, px².
        walls: Left, top, right, bottom wall, px.
    """

    positions: Float[Tensor, "batch times slots 2"]
    times: Float[Tensor, " times"]
    confidence: Float[Tensor, "batch times slots"]
    area: Float[Tensor, "batch times slots"]
    walls: Float[Tensor, "batch 4"]

    @property
    def slope(self) -> Float[Tensor, "batch slots 2"]:
        """Mean velocity from the last frame but two to the last one, which are consecutive, px a frame."""
        return 0.5 * (self.positions[:, -1] - self.positions[:, -3])


def radius_of(area: Float[Tensor, "batch times slots"]) -> Float[Tensor, "batch 1 slots"]:
    """Radius of each object from the median area of its masks, px."""
    return (area.detach() / math.pi).clamp(1.0, 200.0).sqrt().median(1, True).values


class TrackPropertyHead(nn.Module):
    """Reads properties of objects and of the trial in tracks, by a recurrent network that all objects share.

    Each property is the middle of its prior range plus a learned deviation, with a standard deviation that starts at
    the prior's. So a network that knows nothing yet returns the prior.
    """

    def __init__(
        self,
        trial: Mapping[str, tuple[float, float]],
        objects: Mapping[str, tuple[float, float]],
        hidden: int = 32,
    ) -> None:
        """Build the layers of the network.

        Args:
            trial: Prior range, lowest and highest, of each property that a trial has once.
            objects: Prior range of each property that every object has. A `radius` is common to all objects, and
                its estimate starts from the area of the masks.
            hidden: Width of the recurrent layer.
        """
        super().__init__()
        for name, (low, high) in {**trial, **objects}.items():
            if not low < high:
                raise InputError(f"{name}: expected a prior range, lowest and highest, got ({low}, {high})")
        self.trial, self.objects = dict(trial), dict(objects)
        self.recurrent = nn.GRU(12, hidden, batch_first=True)
        self.object_head = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2 * len(objects)))
        self.trial_head = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2 * len(trial)))
        for head in (self.object_head, self.trial_head):
            for weights in head[-1].parameters():
                nn.init.zeros_(weights)

    def forward(self, tracks: Tracks) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Estimate means and standard deviations of all properties, by name."""
        batch, _, slots = tracks.confidence.shape
        hidden = self.recurrent(self._features(tracks).transpose(1, 2).flatten(0, 1))[1][0].unflatten(0, (batch, slots))
        present = tracks.confidence.amax(1)[..., None]
        pooled = (hidden * present).sum(1) / present.sum(1).clamp_min(1e-3)
        values, stds = {}, {}
        by_object = self.object_head(torch.cat([hidden, pooled[:, None].expand(-1, slots, -1)], -1))
        by_trial = self.trial_head(pooled)
        for index, (name, prior) in enumerate(self.objects.items()):
            shift = None
            if name == "radius":
                shift, by_object = self._radius(tracks), by_object.clone()
                by_object[..., 2 * index : 2 * index + 2] = by_object[..., 2 * index : 2 * index + 2].mean(1, True)
            values[name], stds[name] = scaled(by_object[..., 2 * index], by_object[..., 2 * index + 1], prior, shift)
        for index, (name, prior) in enumerate(self.trial.items()):
            values[name], stds[name] = scaled(by_trial[..., 2 * index], by_trial[..., 2 * index + 1], prior)
        return values, stds

    @staticmethod
    def _radius(tracks: Tracks) -> Float[Tensor, "batch slots"]:
        """Common radius of the objects from the median area of their masks, px."""
        batch, _, slots = tracks.area.shape
        weighted = torch.where(tracks.confidence > 0.5, tracks.area, torch.nan).flatten(1)
        area = weighted.nanmedian(1).values
        return (torch.where(area.isnan(), 50.0, area) / math.pi).sqrt()[:, None].expand(batch, slots)

    def _features(self, tracks: Tracks) -> Float[Tensor, "batch times slots 12"]:
        """Distances to the walls, velocities before and after, the nearest object, confidence and area."""
        scale = 10.0
        p, walls = tracks.positions, tracks.walls[:, None, None]
        to_walls = torch.cat([p - walls[..., :2], walls[..., 2:] - p], -1)
        steps = (p[:, 1:] - p[:, :-1]) / tracks.times.diff()[:, None, None] / 30.0
        before, after = torch.cat([steps[:, :1], steps], 1), torch.cat([steps, steps[:, -1:]], 1)
        apart = torch.cdist(p, p) + 1e3 * torch.eye(p.shape[2], device=p.device)
        apart = apart + 1e3 * (tracks.confidence < 0.3)[:, :, None]
        nearest = apart.amin(-1, keepdim=True).clamp_max(40.0)
        size = tracks.area.clamp_min(0.0).sqrt()[..., None]
        features = [to_walls / scale, 5.0 * before, 5.0 * (after - before)]
        return torch.cat(
            [*features, nearest / scale, size / scale, tracks.confidence[..., None], before.norm(dim=-1, keepdim=True)],
            -1,
        )


def scaled(
    output: Tensor, log_std: Tensor, prior: tuple[float, float], start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Turn outputs into a property near its prior range, and its standard deviation.

    Args:
        output: Deviation of the property from the middle of its range, or from `start`.
        log_std: Logarithm of its standard deviation, in units of the prior's.
        prior: Lowest and highest value.
        start: Estimates that the deviation is added to.
    """
    low, high = prior
    width = high - low
    if start is None:
        value = 0.5 * (low + high) + 0.6 * width * torch.tanh(output)
    else:
        value = start.clamp(low - 0.2 * width, high + 0.2 * width) + 0.3 * width * torch.tanh(output)
    return value, width * UNIFORM_STD * log_std.clamp(*_LOG_STD).exp()


def robust_likelihood(error: Tensor, std: Tensor, outlier: float) -> Tensor:
    """Negative log-likelihood of errors, normal up to `outlier` standard deviations and exponential beyond."""
    ratio = error / std
    return functional.huber_loss(ratio, torch.zeros_like(ratio), reduction="none", delta=outlier) + std.log()


def property_loss(
    values: Mapping[str, Tensor],
    stds: Mapping[str, Tensor],
    true: Mapping[str, Tensor],
    labeled: Tensor,
    present: Tensor,
) -> Float[Tensor, ""]:
    """Negative log-likelihood of true properties, mean over samples, properties and objects that are present.

    Args:
        values: Estimated properties, by name.
        stds: Their standard deviations.
        true: True properties of at least these names; NaN where unknown.
        labeled: Samples whose truth is known, (batch,).
        present: Slots that hold an object, (batch, slots).
    """
    terms = []
    for name, value in values.items():
        if name not in stds or name not in true:
            continue
        weight = labeled[:, None] & present if value.dim() == 2 else labeled
        truth = torch.where(weight, true[name], value.detach())
        if name == "mass":
            # Only ratios of masses have an effect on the motion.
            scale = _mean(truth, weight) / _mean(value, weight).clamp_min(1e-3)
            truth = truth / scale[:, None].detach()
        likelihood = robust_likelihood(value - truth, stds[name], _OUTLIER)
        terms.append(torch.where(weight, likelihood, 0.0).sum() / max(1, weight.numel()))
    return torch.stack(terms).sum() if terms else torch.zeros((), device=labeled.device)


def _mean(values: Tensor, weight: Tensor) -> Tensor:
    count = weight.sum(1).clamp_min(1)
    return torch.where(weight.any(1), (values * weight).sum(1) / count, 1.0)
