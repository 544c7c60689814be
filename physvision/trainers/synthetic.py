"""Samples with labels from clips without: random motions that a model's own engine simulates and its camera draws.

Of the clips only backgrounds, poses of the camera and given properties are used. On these lie balls of random place,
velocity, color and properties. An untrained `CameraDecoder` draws them flat; stripes, a dark side, a highlight and a
shadow of random strength are painted over its silhouettes, so that an encoder takes none of these for a ball.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.core import InputError, State, Trajectory
from physvision.datasets import Sample
from physvision.models import AppearanceCode, CameraDecoder, ClipContext, PredictiveAutoencoder, TableEncoder
from physvision.models.segmenting_encoder import FRAMES
from physvision.physics.rigid2d import World
from physvision.trainers.batches import context_of


@dataclass(frozen=True)
class SyntheticSettings:
    """Ranges of the random motions and looks of synthetic balls, as wide as pictures of balls may need.

    Attributes:
        max_speed: Highest speed of a ball, px a frame.
        noise: Standard deviation of the noise of frames.
        max_shade: Largest darkness of the side of a ball that is turned away from the light.
        max_shadow: Largest darkness of shadows.
        max_highlight: Largest brightness of highlights.
        highlight_width: Standard deviation of a highlight, in radii of its ball.
        highlight_distance: Distance of a highlight from the middle of its ball, in radii.
        shadow_distance: Range of the distance of shadows from their balls, in radii.
        attempts: Attempts to place a ball beside all others.
    """

    max_speed: float = 3.0
    noise: float = 0.01
    max_shade: float = 0.8
    max_shadow: float = 0.7
    max_highlight: float = 1.0
    highlight_width: float = 0.25
    highlight_distance: float = 0.4
    shadow_distance: tuple[float, float] = (0.2, 1.0)
    attempts: int = 50


_DEFAULTS = SyntheticSettings()


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
def synthetic(model: PredictiveAutoencoder, sample: Sample, settings: SyntheticSettings = _DEFAULTS) -> Sample:
    """Replace the balls of clips by others, whose motion is known.

    Args:
        model: Model for which `check_synthetic` passes, with an untrained decoder.
        sample: Windows of clips, whose labels are not used.
        settings: Ranges of motions and looks.

    Returns:
        The given frames of the windows, all labeled. Those that the encoder does not read are black.
    """
    encoder, batch, given = model.encoder, sample.batch, sample.given
    assert isinstance(encoder, TableEncoder)
    context = context_of(sample) or ClipContext()
    with sample.frames.device:
        values = _random_properties(encoder, context, batch)
        start = _random_state(model, values or {}, batch, settings)
        code = torch.zeros(batch, encoder.slots, encoder.codes)
        code[..., :3] = torch.rand(batch, encoder.slots, 3)
    path = model.simulate(start, given - 1, None, values)
    shown = [*encoder.context_frames(given), *range(given - FRAMES, given)]
    poses = None if sample.extrinsics is None else sample.extrinsics[:, :given]
    looks = AppearanceCode(
        code.flatten(1),
        encoder.registered_background(sample.observed, encoder.background_frames(given), context),
        background_extrinsics=None if poses is None else poses[:, given - 2],
    )
    shown_poses = None if poses is None else poses[:, shown]
    images = model.decode(path, shown, values, looks, shown_poses)
    coverage = model.coverage(Trajectory(path.q[:, shown], path.v[:, shown]), values, shown_poses)
    with sample.frames.device:
        images = _lit(images, coverage.unflatten(0, images.shape[:2]), code[..., :3], settings)
    frames = torch.zeros_like(sample.observed, dtype=images.dtype)
    frames[:, shown] = (images + settings.noise * torch.randn_like(images)).clamp(0.0, 1.0)
    labeled = torch.ones_like(sample.labeled)
    return Sample(frames, path, given, labeled, sample.trial, sample.start, values, poses)


def _lit(
    images: Float[Tensor, "batch frames 3 height width"],
    coverage: Float[Tensor, "batch frames balls height width"],
    colors: Float[Tensor, "batch balls 3"],
    settings: SyntheticSettings,
) -> Float[Tensor, "batch frames 3 height width"]:
    """Give flat balls stripes, light from one side and shadows, all of random strength in each clip."""
    batch, _, balls, height, width = coverage.shape
    rows, columns = torch.arange(height).to(images), torch.arange(width).to(images)
    area = coverage.sum((3, 4), keepdim=True).clamp_min(1.0)
    radius = (area / math.pi).sqrt()
    x = (columns - (coverage * columns).sum((3, 4), keepdim=True) / area) / radius
    y = (rows[:, None] - (coverage * rows[:, None]).sum((3, 4), keepdim=True) / area) / radius

    def number(*shape: int) -> Tensor:
        """Random number of each clip, or of each of its balls."""
        return torch.rand(batch, 1, *(shape or (1,)), 1, 1)

    angle = 2 * math.pi * number()
    toward = angle.cos() * x + angle.sin() * y
    aside = angle.cos() * y - angle.sin() * x
    # Stripes turn with the ball, a little in each frame.
    turned = 2 * math.pi * (number(balls) + 0.1 * number(balls) * torch.arange(coverage.shape[1])[:, None, None, None])
    waves = (1.0 + 3.0 * number(balls)) * (turned.cos() * x + turned.sin() * y) + 2 * math.pi * number(balls)
    striped = ((waves.sin() > 0) & (number(balls) > 0.5)).to(images)[:, :, :, None]
    color, stripe = colors[:, None, :, :, None, None], torch.rand(batch, 1, balls, 3, 1, 1)
    shade = 1.0 - settings.max_shade * number() * (0.5 - 0.5 * toward.clamp(-1.0, 1.0))
    apart = (toward - settings.highlight_distance).square() + aside.square()
    highlight = settings.max_highlight * number() * torch.exp(-0.5 * apart / settings.highlight_width**2)
    painted = (color + striped * (stripe - color)) * shade[:, :, :, None] + highlight[:, :, :, None]
    low, high = settings.shadow_distance
    distance = low + (high - low) * number()
    # The silhouette of a ball that is moved away from the light.
    shadows = ((toward + distance).square() + aside.square() < 1.0) & (coverage.amax((3, 4), keepdim=True) > 0.5)
    shaded = functional.avg_pool2d(shadows.any(2).to(images), 3, 1, 1, count_include_pad=False)
    shadow = settings.max_shadow * number()[:, :, 0] * shaded
    behind = images - torch.einsum("bfkhw,bkc->bfchw", coverage, colors)
    return (1.0 - shadow[:, :, None]) * behind + (coverage[:, :, :, None] * painted).sum(2)


def _random_places(
    room: Float[Tensor, "batch 4"], radius: Float[Tensor, "batch balls"], attempts: int
) -> Float[Tensor, "batch balls 2"]:
    """Random places of balls that do not touch, as far as they are found.

    Args:
        room: Left, top, right and bottom of where centers may be.
        radius: Radius of each ball.
        attempts: Attempts to move those that touch.
    """
    batch, balls = radius.shape

    def random() -> Tensor:
        return room[:, None, :2] + torch.rand(batch, balls, 2) * (room[:, None, 2:] - room[:, None, :2])

    centers, apart = random(), radius[:, :, None] + radius[:, None]
    for _ in range(attempts):
        touching = (centers[:, :, None] - centers[:, None]).norm(dim=-1) < apart
        # Of two balls that overlap the later one moves.
        moved = touching.tril(-1).any(-1)
        centers = torch.where(moved[..., None], random(), centers)
    return centers


def _random_properties(encoder: TableEncoder, context: ClipContext, batch: int) -> dict[str, Tensor] | None:
    """Random properties of trials in the encoder's prior ranges; None where the engine's own are fixed."""
    if encoder.properties is None:
        return None
    slots, values = encoder.slots, dict(context.properties or {})
    for shape, ranges in (((batch,), encoder.properties.trial), ((batch, slots), encoder.properties.objects)):
        for name, (low, high) in ranges.items():
            values[name] = low + (high - low) * torch.rand(shape)
    values["radius"] = values["radius"][:, :1].expand(-1, slots)
    values["present"] = (torch.arange(slots) < torch.randint(1, slots + 1, (batch, 1))).float()
    return values


def _random_state(
    model: PredictiveAutoencoder, properties: dict[str, Tensor], batch: int, settings: SyntheticSettings
) -> State:
    """State of balls at random places within the walls, with random velocities."""
    encoder, engine = model.encoder, model.engine
    assert isinstance(encoder, TableEncoder)
    assert isinstance(engine, World)
    height, width = encoder.size
    room = properties.get("walls", torch.tensor([0.0, 0.0, width, height]).expand(batch, -1))
    radius = dict(engine.properties.items())["radius"][: encoder.slots].to(room).expand(batch, -1)
    radius = properties.get("radius", radius)
    centers = _random_places(room + radius[:, :1] * torch.tensor([1.0, 1.0, -1.0, -1.0]), radius, settings.attempts)
    speed, angle = settings.max_speed / encoder.dt * torch.rand_like(radius), 2 * math.pi * torch.rand_like(radius)
    velocity = speed[..., None] * torch.stack([angle.cos(), angle.sin()], -1)
    return State(*(functional.pad(part, (0, 1)).flatten(1) for part in (centers, velocity)))
