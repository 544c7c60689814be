"""Samples with labels from clips without: random motions that a model's own engine simulates and its camera draws.

Of the clips only backgrounds, poses of the camera and given properties are used. On these lie balls of random place,
velocity, color and properties, which an untrained `CameraDecoder` draws flat, without texture, light or shadow.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.core import InputError, State
from physvision.datasets import Sample
from physvision.models import AppearanceCode, CameraDecoder, ClipContext, PredictiveAutoencoder, TableEncoder
from physvision.models.segmenting_encoder import FRAMES
from physvision.physics.rigid2d import World
from physvision.trainers.batches import context_of

# Highest speed of a ball, px a frame, and standard deviation of the noise of frames.
_MAX_SPEED, _NOISE = 3.0, 0.01
# Attempts to place a ball beside all others.
_ATTEMPTS = 50


def check_synthetic(model: PredictiveAutoencoder) -> None:
    """Raise unless synthetic samples of a model can be made."""
    if not (
        isinstance(model.encoder, TableEncoder)
        and isinstance(model.engine, World)
        and isinstance(model.decoder, CameraDecoder)
    ):
        raise InputError(
            "stages.synthetic: expected a TableEncoder, a rigid2d.World and a CameraDecoder, got "
            f"{type(model.encoder).__name__}, {type(model.engine).__name__} and {type(model.decoder).__name__}; set it "
            "to false"
        )


@torch.no_grad()
def synthetic(model: PredictiveAutoencoder, sample: Sample) -> Sample:
    """Replace the balls of clips by others, whose motion is known.

    Args:
        model: Model for which `check_synthetic` passes, with an untrained decoder.
        sample: Windows of clips, whose labels are not used.

    Returns:
        The given frames of the windows, all labeled. Those that the encoder does not read are black.
    """
    encoder, batch, given = model.encoder, sample.batch, sample.given
    assert isinstance(encoder, TableEncoder)
    context = context_of(sample) or ClipContext()
    with sample.frames.device:
        values = _random_properties(encoder, context, batch)
        start = _random_state(model, values, batch)
        code = torch.zeros(batch, encoder.slots, encoder.codes)
        code[..., :3] = torch.rand(batch, encoder.slots, 3)
    path = model.simulate(start, given - 1, None, values or None)
    shown = [*encoder.context_frames(given), *range(given - FRAMES, given)]
    poses = None if sample.extrinsics is None else sample.extrinsics[:, :given]
    looks = AppearanceCode(
        code.flatten(1),
        encoder.registered_background(sample.observed, encoder.background_frames(given), context),
        background_extrinsics=None if poses is None else poses[:, given - 2],
    )
    images = model.decode(path, shown, values or None, looks, None if poses is None else poses[:, shown])
    frames = torch.zeros_like(sample.observed, dtype=images.dtype)
    frames[:, shown] = (images + _NOISE * torch.randn_like(images)).clamp(0.0, 1.0)
    labeled = torch.ones_like(sample.labeled)
    return Sample(frames, path, given, labeled, sample.trial, sample.start, values or None, poses)


def _random_places(
    room: Float[Tensor, "batch 4"], radius: Float[Tensor, "batch balls"]
) -> Float[Tensor, "batch balls 2"]:
    """Random places of balls that do not touch, as far as they are found.

    Args:
        room: Left, top, right and bottom of where centers may be.
        radius: Radius of each ball.
    """
    batch, balls = radius.shape

    def random() -> Tensor:
        return room[:, None, :2] + torch.rand(batch, balls, 2) * (room[:, None, 2:] - room[:, None, :2])

    centers, apart = random(), radius[:, :, None] + radius[:, None]
    for _ in range(_ATTEMPTS):
        touching = (centers[:, :, None] - centers[:, None]).norm(dim=-1) < apart
        # Of two balls that overlap the later one moves.
        moved = touching.tril(-1).any(-1)
        centers = torch.where(moved[..., None], random(), centers)
    return centers


def _random_properties(encoder: TableEncoder, context: ClipContext, batch: int) -> dict[str, Tensor]:
    """Random properties of trials in the encoder's prior ranges; none where the engine's own are fixed."""
    if encoder.properties is None:
        return {}
    slots, values = encoder.slots, dict(context.properties or {})
    for shape, ranges in (((batch,), encoder.properties.trial), ((batch, slots), encoder.properties.objects)):
        for name, (low, high) in ranges.items():
            values[name] = low + (high - low) * torch.rand(shape)
    values["radius"] = values["radius"][:, :1].expand(-1, slots)
    values["present"] = (torch.arange(slots) < torch.randint(1, slots + 1, (batch, 1))).float()
    return values


def _random_state(model: PredictiveAutoencoder, properties: dict[str, Tensor], batch: int) -> State:
    """State of balls at random places within the walls, with random velocities."""
    encoder, engine = model.encoder, model.engine
    assert isinstance(encoder, TableEncoder)
    assert isinstance(engine, World)
    height, width = encoder.size
    room = properties.get("walls", torch.tensor([0.0, 0.0, width, height]).expand(batch, -1))
    radius = dict(engine.properties.items())["radius"][: encoder.slots].to(room).expand(batch, -1)
    radius = properties.get("radius", radius)
    centers = _random_places(room + radius[:, :1] * torch.tensor([1.0, 1.0, -1.0, -1.0]), radius)
    speed, angle = _MAX_SPEED / encoder.dt * torch.rand_like(radius), 2 * math.pi * torch.rand_like(radius)
    velocity = speed[..., None] * torch.stack([angle.cos(), angle.sin()], -1)
    return State(*(functional.pad(part, (0, 1)).flatten(1) for part in (centers, velocity)))
