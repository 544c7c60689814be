"""Probability that an estimated position is correct.

The position of an object of radius r is correct if its error is below a fraction of r; angles of links are correct if
each error is below an angle. With a normal error of variance σ² in each direction, the first has the probability
1 − exp(−d² / 2σ²) for a distance d, the second erf(d / σ √2). So of all positions with a confidence of 0.9, nine in ten
are correct.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Scene
from physvision.prediction.settings import SETTINGS


def confidence(std: Float[Tensor, "frames positions"], scene: Scene) -> Float[Tensor, "frames objects"]:
    """Probability that the estimated position of each object is correct; NaN where the standard deviation is unknown.

    Args:
        std: Standard deviations of the coordinates of all objects.
        scene: Meaning of these coordinates.
    """
    units = list(scene.coordinates.values())
    object_std = std.unflatten(-1, (len(scene.objects), len(units)))
    plane = [index for index, unit in enumerate(units) if unit == "px"]
    if plane:
        radius = torch.tensor([item.radius or 1.0 for item in scene.objects]).to(std)
        variance = object_std[..., plane].square().mean(-1)
        return -torch.expm1(-0.5 * (SETTINGS.confident_radii * radius).square() / variance.clamp_min(1e-12))
    widest = object_std.amax(-1).clamp_min(1e-9)
    return torch.special.erf(SETTINGS.confident_angle / (math.sqrt(2) * widest))


def limit_by_frames(
    confidence: Float[Tensor, "frames objects"], score: Float[Tensor, " frames"], scene: Scene
) -> Float[Tensor, "frames objects"]:
    """Limit confidence by the reprojection score where a frame does not show the rendered state.

    Args:
        confidence: Confidence in each object.
        score: Reprojection score of each frame.
        scene: Scene with the smallest expected score.
    """
    is_shown = (score >= scene.min_reprojection_score)[:, None]
    return torch.where(is_shown, confidence, torch.minimum(confidence, score[:, None]))


def describe(scene: Scene) -> str:
    """Describe what confidence means in a scene."""
    if "px" in scene.coordinates.values():
        return f"probability that an object is within {SETTINGS.confident_radii:g} radii of its estimated position"
    return f"probability that an object is within {SETTINGS.confident_angle:g} rad of its estimated position"
