"""Probability that an object is where it is said to be.

An object of radius r counts as being there if it is within a fraction of r; one whose coordinates are angles if each
link is within an angle. With a normal error of variance σ² in each direction, the first has the probability
1 − exp(−d² / 2σ²) at a distance d, the second erf(d / σ √2). So of all positions said with 0.9, nine in ten are within
that distance.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Scene
from physvision.prediction.settings import DEFAULT_SETTINGS, PredictionSettings


def confidence(
    std: Float[Tensor, "frames positions"], scene: Scene, settings: PredictionSettings = DEFAULT_SETTINGS
) -> Float[Tensor, "frames objects"]:
    """Probability of each object to be where it is said to be; NaN where the standard deviation is unknown.

    Args:
        std: Standard deviations of the coordinates of all objects.
        scene: Meaning of these coordinates.
        settings: Distances that count as being there.
    """
    units = list(scene.coordinates.values())
    own = std.unflatten(-1, (len(scene.objects), len(units)))
    plane = [index for index, unit in enumerate(units) if unit == "px"]
    if plane:
        radius = torch.tensor([item.radius or 1.0 for item in scene.objects]).to(std)
        variance = own[..., plane].square().mean(-1)
        return -torch.expm1(-0.5 * (settings.confident_radii * radius).square() / variance.clamp_min(1e-12))
    widest = own.amax(-1).clamp_min(1e-9)
    return torch.special.erf(settings.confident_angle / (math.sqrt(2) * widest))


def limit_by_frames(
    confidence: Float[Tensor, "frames objects"], score: Float[Tensor, " frames"], scene: Scene
) -> Float[Tensor, "frames objects"]:
    """Limit confidence by the reprojection score where a frame does not show the rendered state.

    Args:
        confidence: Confidence in each object.
        score: Reprojection score of each frame.
        scene: Scene, which names the score that is usual.
    """
    is_shown = (score >= scene.min_reprojection_score)[:, None]
    return torch.where(is_shown, confidence, torch.minimum(confidence, score[:, None]))


def describe(scene: Scene, settings: PredictionSettings = DEFAULT_SETTINGS) -> str:
    """Describe what confidence means in a scene."""
    if "px" in scene.coordinates.values():
        return f"probability that an object is within {settings.confident_radii:g} radii of where it is said to be"
    return f"probability that an object is within {settings.confident_angle:g} rad of where it is said to be"
