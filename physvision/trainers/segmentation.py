"""Training of the segmentation: silhouettes at labeled states, an averaged teacher elsewhere, a prior of areas."""

from __future__ import annotations

import copy
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.models import SegmentationNetwork
from physvision.models.segmentation import Instances

AREA_WEIGHT = 0.05  # of the prior of areas


class SegmentationSupervision(nn.Module):
    """Losses of a segmentation network, and the exponential average of its weights that teaches it.

    Labeled samples have silhouettes that the camera renders at their true states. On unlabeled ones, the averaged
    network sees the frames as they are and the trained one sees them with other brightness and colors; it learns what
    the average is sure of. An object whose area lies outside the prior range is penalized, so that objects neither
    vanish nor fill the frame.
    """

    def __init__(
        self,
        weight: float = 1.0,
        teacher_weight: float = 0.3,
        decay: float = 0.99,
        radius_range: tuple[float, float] = (2.0, 7.0),
        min_confidence: float = 0.3,
    ) -> None:
        """Choose weights and the prior.

        Args:
            weight: Weight of the silhouettes of labeled samples.
            teacher_weight: Weight of the teacher's masks of unlabeled samples.
            decay: Factor of the averaged weights an update.
            radius_range: Lowest and highest radius of objects, px.
            min_confidence: Confidence from which an object counts, 0 to 1.
        """
        super().__init__()
        self.weight, self.teacher_weight = weight, teacher_weight
        self.decay, self.min_confidence = decay, min_confidence
        self.areas = (math.pi * radius_range[0] ** 2, math.pi * radius_range[1] ** 2)
        self.teacher: SegmentationNetwork | None = None

    def start(self, network: SegmentationNetwork) -> None:
        """Copy the network as its own teacher."""
        self.teacher = copy.deepcopy(network).requires_grad_(False)

    @torch.no_grad()
    def follow(self, network: SegmentationNetwork) -> None:
        """Average the network's weights after an update."""
        assert self.teacher is not None
        for average, value in zip(self.teacher.parameters(), network.parameters(), strict=True):
            average.lerp_(value, 1.0 - self.decay)

    def labeled_loss(
        self, logits: Float[Tensor, "batch outputs rows columns"], coverage: Float[Tensor, "batch slots height width"]
    ) -> Float[Tensor, ""]:
        """Cross entropy with silhouettes, given the coverage of each object in the frame."""
        assert self.teacher is not None
        target = self.teacher.targets(coverage)
        return _weighted_cross_entropy(logits.float(), target, torch.ones_like(target), self.teacher.emphasis)

    def teacher_loss(
        self,
        logits: Float[Tensor, "batch outputs rows columns"],
        frames: Float[Tensor, "batch 3 height width"],
        background: Float[Tensor, "batch 3 height width"],
    ) -> Float[Tensor, ""]:
        """Cross entropy with the teacher's masks, weighted by its certainty."""
        assert self.teacher is not None
        with torch.no_grad():
            target = torch.sigmoid(self.teacher(frames, background).float())
            certainty = (2.0 * target - 1.0).abs()
        return _weighted_cross_entropy(logits.float(), target, certainty, self.teacher.emphasis)

    def area_loss(self, instances: list[Instances]) -> Float[Tensor, ""]:
        """Relative excess of the objects' areas over the prior range, or lack of it."""
        area = torch.stack([entry.area for entry in instances], 1)
        present = torch.stack([entry.confidence for entry in instances], 1) > self.min_confidence
        low, high = self.areas
        misfit = (1.0 - area / low).clamp_min(0.0) + (area / high - 1.0).clamp_min(0.0)
        return (misfit * present).sum() / present.sum().clamp_min(1)


def _weighted_cross_entropy(
    logits: Tensor, target: Tensor, certainty: Tensor, emphasis: tuple[float, ...]
) -> Float[Tensor, ""]:
    extra = target.new_tensor(emphasis)[:, None, None]
    losses = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return (losses * certainty * (1.0 + extra * target)).mean()
