"""Train the network that reads places and speeds of balls on a table, on patches around labeled balls.

Segmentation, flow and all else of a trained model stay as they are, so that each labeled window passes through them
only once; then an update takes the network on crops alone. Its patches are turned, mirrored, scaled, recolored and
displaced at random. The model's own network,
which has no colors and half as many samples, is replaced.

    physvision generate tabletop --trials 1250 --out data/tabletop
    python experiments/tabletop_places.py [--model out/tabletop/checkpoints/last.ckpt] [--out out/tabletop.safetensors]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from jsonargparse import auto_cli
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Subset

from physvision.core import brightness
from physvision.datasets import DataModule, LabelSettings, Sample, WindowShape
from physvision.models import PredictiveAutoencoder, TableEncoder, load, save
from physvision.models.checkpoints import build, stored_configuration
from physvision.models.roi import boxes_around, crop
from physvision.models.segmentation import match_order
from physvision.models.segmenting_encoder import recolored
from physvision.models.table_crops import (
    COLOR_CROP_CHANNELS,
    CROP_EXTENT,
    CROP_OUTPUTS,
    MOTION_CHANNELS,
    crop_channels,
    decode,
)
from physvision.models.tabletop import project
from physvision.models.trial_properties import robust_likelihood
from physvision.trainers.batches import context_of

# Half the side of a patch, px of the frame, and samples along the side of the crop that the network reads.
REACH, SIDE = 20, 64
# A ball that segmentation shows farther from its true place is another, px.
MAX_DISTANCE = 4.0
# Weight of the likelihood of the standard deviations, and where it turns from normal to exponential.
STD_WEIGHT, OUTLIER = 0.1, 3.0
# Errors of place (px) and rate (px a frame) beyond which they count linearly.
HUBER_SCALES = (0.25, 0.1)


@dataclass(frozen=True)
class Patches:
    """Layers of each ball at the pixels around it, and the numbers that the network is to tell.

    Attributes:
        frames: Colors of the last frames.
        background: Colors of the image without balls.
        masks: Mask of the ball in the last frames.
        motion: Motion of each pixel less the ball's own slope, from each earlier frame, px a frame.
        inside: 1 inside the picture, 0 elsewhere.
        centroid: Centroid of the ball's mask, from the patch's middle, px.
        place: True place, likewise.
        rate: True velocity less the slope of the centroids, px a frame.
    """

    frames: Tensor
    background: Tensor
    masks: Tensor
    motion: Tensor
    inside: Tensor
    centroid: Tensor
    place: Tensor
    rate: Tensor

    def __len__(self) -> int:
        return len(self.place)

    def of(self, rows: Tensor) -> Patches:
        """Some of the balls, in float32."""
        return Patches(*(value[rows].float() for value in vars(self).values()))


@torch.no_grad()
def patches_of(encoder: TableEncoder, sample: Sample) -> Patches:
    """Patches around the balls of labeled windows that segmentation finds."""
    context, frames, true = context_of(sample), sample.observed, sample.ahead
    assert context is not None
    assert context.extrinsics is not None
    assert true is not None
    assert sample.properties is not None
    assert encoder.camera is not None
    reading = encoder.read(frames, context)
    centroids = reading.linked[-1].centroids
    present = sample.properties["present"] > 0.5
    pose, intrinsics = context.extrinsics[:, -1], encoder.camera.caster.camera.intrinsics.float()  # pyright: ignore
    now, speed = (part[:, 0].unflatten(1, (-1, 3))[..., :2] for part in (true.q, true.v))
    height = -sample.properties["radius"]
    places = project(torch.cat([now, height[..., None]], -1), intrinsics, pose)
    order = match_order(places, present.float(), centroids, reading.linked[-1].confidence + 0.05, 64.0)
    rows = torch.arange(len(frames))[:, None]
    near = present & ((centroids[rows, order] - places).norm(dim=-1) < MAX_DISTANCE)
    middles = centroids.round()
    boxes, side = boxes_around(middles, 2.0 * REACH + 1.0), 2 * REACH + 1
    images = torch.cat([brightness(frames[:, -3:]).flatten(1, 2), reading.clean], 1)
    images = torch.cat([images, torch.ones_like(images[:, :1])], 1)
    motion = encoder.motion_crops(frames, boxes, side, reading.tracks, context)
    layers = (crop(images, boxes, side), reading.mask_crops(boxes, side), motion)
    slots = len(present[0])
    colors, masks, motion = (layer.unflatten(0, (-1, slots))[rows, order][near].half() for layer in layers)
    middle = middles[rows, order]
    return Patches(
        *(colors[:, :9], colors[:, 9:12], masks, motion, colors[:, 12:]),
        centroid=(centroids[rows, order] - middle)[near],
        place=(places - middle)[near],
        rate=(speed * encoder.dt - reading.tracks.slope[rows, order])[near],
    )


def labeled_windows(data: Path, fraction: float) -> Iterator[Sample]:
    """Batches of all labeled windows of the training trials."""
    source = DataModule(str(data), 16, WindowShape(30, 1, 2), LabelSettings(fraction), given_properties=["walls"])
    source.setup("fit")
    loader = source.train_dataloader()
    windows = loader.dataset
    rows = windows.labeled.nonzero()[0].tolist()  # pyright: ignore[reportAttributeAccessIssue]
    return iter(DataLoader(Subset(windows, rows), 16, collate_fn=loader.collate_fn))


def augmented(patches: Patches) -> tuple[Tensor, Tensor, Tensor]:
    """Crops of patches as if clip, camera and ball were others, with place and rate from the crop's middle."""
    count = len(patches)
    frames, background = recolored(patches.frames.unflatten(1, (3, 3)), patches.background)
    frames = frames + 0.015 * torch.rand(count, 1, 1, 1, 1) * torch.randn_like(frames)
    angle, scale = 2 * math.pi * torch.rand(count), (0.2 * torch.randn(count)).exp().clamp(0.75, 1.33)
    mirror = 1.0 - 2.0 * (torch.rand(count) < 0.5).float()
    axes = torch.stack([mirror * angle.cos(), -angle.sin(), mirror * angle.sin(), angle.cos()], 1).unflatten(1, (2, 2))
    middle = patches.centroid + torch.randn(count, 2)
    changed = Patches(frames.flatten(1, 2), background, *list(vars(patches).values())[2:])
    return crops_of(changed, middle, axes, scale)


def crops_of(patches: Patches, middle: Tensor, axes: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Crops around `middle` along turned and scaled axes, and place and rate in these."""
    images = crop_channels(patches.frames.unflatten(1, (3, 3)), patches.background, True)
    images = patches.inside * torch.cat([images, patches.masks, patches.motion], 1)
    cells = (torch.arange(SIDE) + 0.5) / SIDE - 0.5
    grid = CROP_EXTENT * torch.stack(torch.meshgrid(cells, cells, indexing="xy"), -1)
    at = middle[:, None, None] + scale[:, None, None, None] * torch.einsum("nij,hwj->nhwi", axes, grid)
    images = functional.grid_sample(images, at / REACH, padding_mode="border", align_corners=True)
    inverse = axes.mT / scale[:, None, None]
    motion = images[:, -MOTION_CHANNELS:].unflatten(1, (-1, 2))
    motion = torch.einsum("nij,ngjhw->ngihw", inverse, motion).flatten(1, 2)
    place, rate = (torch.einsum("nij,nj->ni", inverse, part) for part in (patches.place - middle, patches.rate))
    return torch.cat([images[:, :-MOTION_CHANNELS], motion], 1), place, rate


def loss_of(errors: Tensor, stds: Tensor) -> Tensor:
    """Loss of errors and of their standard deviations."""
    terms = [STD_WEIGHT * part.mean() for part in robust_likelihood(errors.detach(), stds, OUTLIER).split(2, 1)]
    for error, scale in zip(errors.split(2, 1), HUBER_SCALES, strict=True):
        terms.append(functional.huber_loss(error, torch.zeros_like(error), delta=scale) / scale)
    return torch.stack(terms).sum()


def with_colors(model: PredictiveAutoencoder) -> PredictiveAutoencoder:
    """Copy a model with a new network, which sees colors and twice as many samples."""
    configuration = stored_configuration(model)
    encoder = configuration["init_args"]["encoder"]["init_args"]
    settings = {"side": SIDE, "colors": True}
    encoder["crops"] = {"class_path": "physvision.models.BallCropSettings", "init_args": settings}
    encoder["network"]["init_args"] |= {
        "channels": COLOR_CROP_CHANNELS + MOTION_CHANNELS,
        "outputs": CROP_OUTPUTS,
        "pool": SIDE // 32,
    }
    changed = build(configuration)
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("encoder.network.")}
    changed.load_state_dict(weights, strict=False)
    return changed


def main(
    model: Path = Path("out/tabletop/checkpoints/last.ckpt"),
    data: Path = Path("data/tabletop"),
    fraction: float = 0.1,
    updates: int = 18000,
    out: Path = Path("out/tabletop.safetensors"),
    seed: int = 0,
) -> None:
    """Train the network, and save the model.

    Args:
        model: Model whose network is replaced.
        data: Data set `tabletop`.
        fraction: Fraction of the training trials that have labels.
        updates: Number of updates.
        out: File of the model.
        seed: Seed of the network and of all augmentation.
    """
    torch.manual_seed(seed)
    trained = with_colors(load(str(model))).eval()
    encoder = trained.encoder
    assert isinstance(encoder, TableEncoder)
    parts = [vars(patches_of(encoder, sample)).values() for sample in labeled_windows(data, fraction)]
    patches = Patches(*(torch.cat(values) for values in zip(*parts, strict=True)))
    print(f"{len(patches)} balls", flush=True)
    network = encoder.network.train()
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, updates)
    distances: list[float] = []
    for update in range(updates):
        crops, place, rate = augmented(patches.of(torch.randint(len(patches), (64,))))
        corrections, stds = decode(network(crops))
        errors = corrections - torch.cat([place, rate], 1)
        optimizer.zero_grad()
        loss_of(errors, stds).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        distances.append(float(errors.detach()[:, :2].norm(dim=1).median()))
        if update % 500 == 499:
            print(f"{update + 1} updates: places off by {sum(distances[-500:]) / 500:.3f} px in the median", flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    save(out, trained.eval(), small=True)


if __name__ == "__main__":
    auto_cli(main)
