"""Losses of a segmenting encoder beside those of states and frames: segmentation and properties."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State, Trajectory, brightness
from physvision.datasets import Sample
from physvision.models import ClipContext, Encoder, Forecast, Observation, PredictiveAutoencoder, TableEncoder
from physvision.models.camera_decoder import CameraDecoder
from physvision.models.link_encoder import LinkEncoder
from physvision.models.object_order import aligned
from physvision.models.segmenting_encoder import FRAMES, Segmentation, SegmentingEncoder
from physvision.models.trial_properties import property_loss, robust_likelihood
from physvision.trainers.batches import context_of, evaluated, with_labels
from physvision.trainers.segmentation import AREA_WEIGHT, SegmentationSupervision
from physvision.trainers.supervision import Supervision

# Largest distance, px, at which what is seen later counts as the predicted ball.
_MAX_LATER = 8.0
# Error, in standard deviations, beyond which its likelihood falls exponentially.
_OUTLIER = 3.0
# Weight of the likelihood of errors of the state: it teaches standard deviations alone.
_STATE_STD_WEIGHT = 0.1


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
    terms = {"area": AREA_WEIGHT * loss.area_loss(segmented.instances)}
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


def later_terms(
    model: PredictiveAutoencoder, forecast: Forecast, sample: Sample, loss: Supervision, ramp: float
) -> dict[str, Tensor]:
    """Compute the distance of predicted positions from those that the encoder sees later, in unlabeled samples.

    The target, at the last predicted step, has the encoder's error of position once; a velocity that is wrong by that
    error in a frame is wrong by `steps` times as much there. So motion teaches velocities and properties.

    Args:
        model: Model with a `SegmentingEncoder`.
        forecast: Prediction from the encoder's own states and properties, as far as samples have no labels.
        sample: Prepared batch; its frames reach to the last predicted step.
        loss: Loss of states, and the weight of this one.
        ramp: Progress of the weak losses' ramp, 0 to 1.
    """
    if not loss.later_weight or bool(sample.labeled.all()):
        return {}
    predicted, encoder = forecast.trajectory, model.encoder
    steps = len(predicted) - 1
    assert isinstance(encoder, SegmentingEncoder)
    rows = torch.nonzero(~sample.labeled)[:, 0]
    known, own = context_of(sample), State(predicted.q[rows, -1], predicted.v[rows, -1])
    later = None
    if known is not None:
        poses = None if known.extrinsics is None else known.extrinsics[rows, steps:]
        later = ClipContext(poses, {name: value[rows] for name, value in (known.properties or {}).items()} or None)
    with torch.no_grad(), evaluated(encoder):
        observed = encoder.encode(sample.frames[rows, steps : steps + sample.given], later, looks=False)[0]
    observed = observed.to(own.q.dtype)
    everywhere = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
    near = torch.ones_like(own.q, dtype=torch.bool)
    if isinstance(encoder, TableEncoder):
        assert forecast.observation is not None
        assert forecast.observation.properties is not None
        present = forecast.observation.properties["present"][rows] > 0.5
        observed = aligned(observed, own, present, everywhere, _MAX_LATER)
        assert observed.properties is not None
        places = (observed.positions[:, -1] - own.q.detach()).unflatten(1, (-1, 3))[..., :2]
        near = present & (observed.properties["present"] > 0.5) & (places.norm(dim=-1) < _MAX_LATER)
        near = near.repeat_interleave(3, 1)
    target = Trajectory(torch.where(near, observed.positions[:, -1], own.q.detach())[:, None], own.v.detach()[:, None])
    distance = loss.state_loss(Trajectory(own.q[:, None], own.v.detach()[:, None]), target)
    return {"later": ramp * loss.later_weight * len(rows) / sample.batch * distance}


def estimate_terms(encoder: Encoder, observation: Observation, sample: Sample, weight: float) -> dict[str, Tensor]:
    """Compute the losses of an encoder's properties, its tracks and its standard deviations on a prepared batch.

    Args:
        encoder: Encoder of the observation.
        observation: Its estimates, in the order of the labels.
        sample: Prepared batch.
        weight: Weight of properties and tracks.
    """
    return property_terms(encoder, observation, sample, weight) | state_std_terms(encoder, observation, sample)


def property_terms(encoder: Encoder, observation: Observation, sample: Sample, weight: float) -> dict[str, Tensor]:
    """Compute the loss of an encoder's properties on a prepared batch, if it estimates any, and of its tracks."""
    if not observation.property_std or not sample.properties:
        return {}
    assert observation.properties is not None
    values, stds = observation.properties, observation.property_std
    present = torch.ones(sample.batch, observation.confidence.shape[-1], dtype=torch.bool)  # pyright: ignore
    if "present" in values:
        present = sample.properties.get("present", values["present"]) > 0.5
    loss = property_loss(values, stds, sample.properties, sample.labeled, present.to(sample.labeled.device))
    terms = {"properties": weight * loss}
    if isinstance(encoder, LinkEncoder) and sample.trajectory is not None:
        terms["tracks"] = weight * track_loss(encoder, observation, sample)
    return terms


def state_std_terms(encoder: Encoder, observation: Observation, sample: Sample) -> dict[str, Tensor]:
    """Compute the negative log-likelihood of a table encoder's errors, constants here, given their deviations."""
    if not isinstance(encoder, TableEncoder) or sample.ahead is None or not bool(sample.labeled.any()):
        return {}
    assert observation.position_std is not None
    assert observation.velocity_std is not None
    true = sample.ahead.state(0)
    present = torch.ones_like(true.q[:, ::3], dtype=torch.bool)
    if sample.properties and "present" in sample.properties:
        present = sample.properties["present"] > 0.5
    weight = (sample.labeled[:, None] & present)[..., None].expand(-1, -1, 2)
    terms = []
    for known, value, std in (
        (true.q, observation.positions[:, -1], observation.position_std[:, -1]),
        (true.v, observation.velocities[:, -1], observation.velocity_std[:, -1]),
    ):
        error, std = ((part.unflatten(1, (-1, 3))[..., :2]) for part in ((value - known).detach(), std))
        likelihood = robust_likelihood(torch.where(weight, error, 0.0), torch.where(weight, std, 1.0), _OUTLIER)
        terms.append(torch.where(weight, likelihood, 0.0).sum() / weight.numel())
    return {"state_std": _STATE_STD_WEIGHT * torch.stack(terms).sum()}


def track_loss(encoder: LinkEncoder, observation: Observation, sample: Sample) -> Float[Tensor, ""]:
    """Negative log-likelihood of the true directions of links in all frames that the encoder reads, and of their rates.

    Args:
        encoder: Encoder of the observation.
        observation: Its estimates.
        sample: Prepared batch.
    """
    assert sample.trajectory is not None
    assert observation.position_std is not None
    assert observation.velocity_std is not None
    times, labeled = encoder.read_times(sample.given), sample.labeled[:, None, None]
    true = sample.trajectory.q[:, times], sample.trajectory.v[:, times[-1:]]
    read = observation.positions, observation.velocities
    terms = []
    for known, value, std, wrap in (
        (true[0], read[0], observation.position_std, True),
        (true[1], read[1], observation.velocity_std, False),
    ):
        error = (torch.where(labeled, known, value.detach()) - value).cumsum(-1)
        likelihood = robust_likelihood(2.0 * torch.sin(0.5 * error) if wrap else error, std, _OUTLIER)
        terms.append(torch.where(labeled, likelihood, 0.0).mean())
    return terms[0] + terms[1]
