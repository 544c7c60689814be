"""Losses of a table's encoder beside those of states and frames: segmentation and properties."""

from __future__ import annotations

import torch
from torch import Tensor

from physvision.core import Trajectory, brightness
from physvision.datasets import Sample
from physvision.models import Forecast, PredictiveAutoencoder
from physvision.models.camera_decoder import CameraDecoder
from physvision.models.table_encoder import FRAMES, Segmentation
from physvision.models.trial_properties import property_loss
from physvision.trainers.batches import with_labels
from physvision.trainers.segmentation import SegmentationSupervision


def table_terms(
    loss: SegmentationSupervision,
    model: PredictiveAutoencoder,
    sample: Sample,
    forecast: Forecast,
    segmented: Segmentation,
    property_weight: float,
    ramp: float,
) -> dict[str, Tensor]:
    """Compute the losses of segmentation and properties of a table's encoder.

    Args:
        loss: Losses of the segmentation.
        model: Model with the camera that renders silhouettes.
        sample: Prepared batch.
        forecast: Prediction with the encoder's observation.
        segmented: Segmentation behind it.
        property_weight: Weight of the likelihood of true properties.
        ramp: Progress of the weak losses' ramp, 0 to 1.
    """
    observation = forecast.observation
    assert observation is not None
    terms = {"area": loss.area_weight * loss.area_loss(segmented.instances)}
    first, labeled = sample.given - FRAMES, sample.labeled
    recent = slice(first, sample.given)
    if bool(labeled.any()) and sample.trajectory is not None and isinstance(model.decoder, CameraDecoder):
        rows = torch.nonzero(labeled)[:, 0]
        states = sample.trajectory[recent]
        selection = Trajectory(states.q[rows], states.v[rows])
        values = {name: value[rows] for name, value in with_labels(observation.properties, sample).items()}
        poses = None if sample.extrinsics is None else sample.extrinsics[rows][:, recent]
        with torch.no_grad():
            coverage = model.coverage(selection, values, poses)
        fraction = len(rows) / sample.batch
        terms["silhouettes"] = (
            loss.weight * fraction * loss.labeled_loss(segmented.logits[rows].flatten(0, 1), coverage)
        )
    if not bool(labeled.all()):
        rows = torch.nonzero(~labeled)[:, 0]
        frames = brightness(sample.frames[rows][:, recent])
        background = segmented.background[rows].repeat_interleave(FRAMES, 0)
        teacher = loss.teacher_loss(segmented.logits[rows].flatten(0, 1), frames.flatten(0, 1), background)
        terms["teacher"] = loss.teacher_weight * ramp * (len(rows) / sample.batch) * teacher
    if observation.property_std and sample.properties:
        assert observation.properties is not None
        present = sample.properties.get("present", observation.properties["present"]) > 0.5
        values, stds = observation.properties, observation.property_std
        terms["properties"] = property_weight * property_loss(values, stds, sample.properties, labeled, present)
    return terms
