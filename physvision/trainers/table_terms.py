"""Losses of a table's encoder beside those of states and frames: segmentation and properties."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from physvision.core import Trajectory, brightness
from physvision.datasets import Sample
from physvision.models import Observation, PredictiveAutoencoder
from physvision.models.camera_decoder import CameraDecoder
from physvision.models.table_encoder import FRAMES, Segmentation
from physvision.models.trial_properties import property_loss
from physvision.trainers.batches import with_labels
from physvision.trainers.segmentation import SegmentationSupervision


def segmentation_terms(
    loss: SegmentationSupervision,
    model: PredictiveAutoencoder,
    sample: Sample,
    segmented: Segmentation,
    properties: Mapping[str, Tensor] | None,
    ramp: float,
) -> dict[str, Tensor]:
    """Compute the losses of a segmentation.

    Args:
        loss: Losses of the segmentation.
        model: Model with the camera that renders silhouettes.
        sample: Prepared batch.
        segmented: Segmentation of its last given frames.
        properties: Properties of the trials where labels have none.
        ramp: Progress of the weak losses' ramp, 0 to 1.
    """
    terms = {"area": loss.area_weight * loss.area_loss(segmented.instances)}
    first, labeled = sample.given - FRAMES, sample.labeled
    recent = slice(first, sample.given)
    if bool(labeled.any()) and sample.trajectory is not None and isinstance(model.decoder, CameraDecoder):
        rows = torch.nonzero(labeled)[:, 0]
        states = sample.trajectory[recent]
        selection = Trajectory(states.q[rows], states.v[rows])
        values = {name: value[rows] for name, value in with_labels(properties, sample).items()}
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
    return terms


def property_terms(observation: Observation, sample: Sample, weight: float) -> dict[str, Tensor]:
    """Compute the loss of an encoder's properties on a prepared batch, if it estimates any."""
    if not observation.property_std or not sample.properties:
        return {}
    assert observation.properties is not None
    values, stds = observation.properties, observation.property_std
    present = sample.properties.get("present", values["present"]) > 0.5
    return {"properties": weight * property_loss(values, stds, sample.properties, sample.labeled, present)}
