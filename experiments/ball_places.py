"""Train the network that reads places and speeds of balls on a table, on patches around labeled balls.

Segmentation, flow and all else of a trained model stay as they are, so that each labeled window passes through them
only once; then an update takes the networks on crops alone. Patches are mirrored, recolored and displaced at random,
and turned and scaled where the camera is not known to look straight down. The model's own network on crops, which has
no colors and half as many samples, is replaced. On a clean table a network comes first whose coverage has the ball's
centroid; then the VGG corrects the speeds that follow from these centroids, and no places.

    physvision generate tabletop --trials 1250 --out data/tabletop
    python experiments/ball_places.py
    physvision generate billiards --trials 600 --out data/billiards
    python experiments/ball_places.py --task billiards
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from jsonargparse import auto_cli
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Subset

from physvision.core import brightness
from physvision.core.files import atomic_path
from physvision.core.weights import read_saved
from physvision.datasets import DataModule, LabelSettings, Sample, WindowShape
from physvision.models import ClipContext, PredictiveAutoencoder, TableEncoder, load, save
from physvision.models.checkpoints import build, stored_configuration
from physvision.models.coverage import CoverageNetwork
from physvision.models.roi import boxes_around, crop, samples_inside
from physvision.models.segmentation import match_order
from physvision.models.segmenting_encoder import recolored
from physvision.models.table_crops import (
    COLOR_CROP_CHANNELS,
    COVERAGE_CONTRAST,
    CROP_EXTENT,
    CROP_OUTPUTS,
    MOTION_CHANNELS,
    crop_channels,
    decode,
)
from physvision.models.tabletop import project
from physvision.models.trial_properties import robust_likelihood
from physvision.trainers.batches import context_of

# Weights that are trained anew.
NEW_WEIGHTS = ("encoder.network.", "encoder.coverage.")
# Half the side of a patch, px of the frame, and samples along the side of the crop that the network reads.
REACH, SIDE = 20, 64
# A ball that segmentation shows farther from its true place is another, px.
MAX_DISTANCE = 4.0
# Weight of the likelihood of the standard deviations, and where it turns from normal to exponential.
STD_WEIGHT, OUTLIER = 0.1, 3.0
# Updates of the network whose coverage has the centroid.
COVERAGE_UPDATES = 4000
# Displacement of crops from the centroids of masks, px, where the VGG or the coverage network reads places.
VGG_DISPLACEMENT, COVERAGE_DISPLACEMENT = 1.0, 0.5
# Errors of place (px) and rate (px a frame) beyond which they count linearly.
HUBER_SCALES = (0.25, 0.1)


@dataclass(frozen=True)
class Task:
    """Data set whose balls are read, and how its clips differ from each other.

    Attributes:
        model: Model whose network is replaced.
        data: Folder of the data set.
        shape: Windows that patches are taken from.
        given: Names of the properties that are known in every sample.
        turned: If true, patches are turned and scaled, since the camera is tilted and sizes differ.
        refine: If true, places are the centroids of a coverage network; otherwise the VGG reads them.
    """

    model: Path
    data: Path
    shape: WindowShape
    given: tuple[str, ...] = ()
    turned: bool = False
    refine: bool = False


TASKS = {
    "tabletop": Task(
        Path("out/tabletop/checkpoints/last.ckpt"),
        Path("data/tabletop"),
        WindowShape(30, 1, 2),
        ("walls",),
        turned=True,
    ),
    "billiards": Task(
        Path("out/billiards-3/checkpoints/last.ckpt"), Path("data/billiards"), WindowShape(8, 1, 6), refine=True
    ),
}


@dataclass(frozen=True)
class Patches:
    """Layers of each ball at the pixels around it, and the numbers that the network is to tell.

    Attributes:
        frames: Colors of the last frames.
        background: Colors of the image without balls.
        masks: Mask of the ball in the last frames.
        motion: Motion of each pixel less the ball's own slope, from each earlier frame, px a frame; without optical
            flow no channels.
        inside: 1 where `crop` shows the picture, whose border it extends by a pixel, 0 elsewhere.
        covered: 1 at the pixels of the picture, 0 elsewhere.
        centroid: Centroid of the ball's mask, from the patch's middle, px.
        place: True place, likewise.
        rate: True velocity less the slope of the centroids, px a frame.
    """

    frames: Tensor
    background: Tensor
    masks: Tensor
    motion: Tensor
    inside: Tensor
    covered: Tensor
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
    context, frames, true = context_of(sample) or ClipContext(), sample.observed, sample.ahead
    assert true is not None
    properties = sample.properties or {}
    reading = encoder.read(frames, context)
    centroids = reading.linked[-1].centroids
    now, speed = (part[:, 0].unflatten(1, (-1, 3))[..., :2] for part in (true.q, true.v))
    present = properties.get("present", torch.ones_like(now[..., 0])) > 0.5
    if encoder.camera is None:
        places = now - 0.5
    else:
        assert context.extrinsics is not None
        intrinsics = encoder.camera.caster.camera.intrinsics.float()  # pyright: ignore
        height = -properties["radius"][..., None]
        places = project(torch.cat([now, height], -1), intrinsics, context.extrinsics[:, -1])
    order = match_order(places, present.float(), centroids, reading.linked[-1].confidence + 0.05, 64.0)
    rows = torch.arange(len(frames))[:, None]
    near = present & ((centroids[rows, order] - places).norm(dim=-1) < MAX_DISTANCE)
    middles = centroids.round()
    boxes, side = boxes_around(middles, 2.0 * REACH + 1.0), 2 * REACH + 1
    images = torch.cat([brightness(frames[:, -3:]).flatten(1, 2), reading.clean], 1)
    images = torch.cat([images, torch.ones_like(images[:, :1])], 1)
    colors, masks = crop(images, boxes, side), reading.mask_crops(boxes, side)
    covered = samples_inside(boxes, side, encoder.size)[:, None]
    motion = colors[:, :0]
    if encoder.flow is not None:
        motion = encoder.motion_crops(frames, boxes, side, reading.tracks, context)
    slots = len(present[0])
    colors, masks, motion, covered = (
        layer.unflatten(0, (-1, slots))[rows, order][near].half() for layer in (colors, masks, motion, covered)
    )
    middle = middles[rows, order]
    return Patches(
        *(colors[:, :9], colors[:, 9:12], masks, motion, colors[:, 12:], covered),
        centroid=(centroids[rows, order] - middle)[near],
        place=(places - middle)[near],
        rate=(speed * encoder.dt - reading.tracks.slope[rows, order])[near],
    )


def labeled_windows(task: Task, fraction: float) -> Iterator[Sample]:
    """Batches of all labeled windows of the training trials."""
    source = DataModule(str(task.data), 16, task.shape, LabelSettings(fraction), given_properties=list(task.given))
    source.setup("fit")
    loader = source.train_dataloader()
    windows = loader.dataset
    rows = windows.labeled.nonzero()[0].tolist()  # pyright: ignore[reportAttributeAccessIssue]
    return iter(DataLoader(Subset(windows, rows), 16, collate_fn=loader.collate_fn))


class Crops(NamedTuple):
    """Crops around balls, where they show the picture, and place and rate from the crop's middle."""

    images: Tensor
    inside: Tensor
    place: Tensor
    rate: Tensor


def augmented(patches: Patches, turned: bool, displacement: float) -> Crops:
    """Crops of patches as if clip, camera and ball were others, with place and rate from the crop's middle."""
    count = len(patches)
    frames, background = recolored(patches.frames.unflatten(1, (3, 3)), patches.background)
    frames = frames + 0.015 * torch.rand(count, 1, 1, 1, 1) * torch.randn_like(frames)
    if turned:
        angle, scale = 2 * math.pi * torch.rand(count), (0.2 * torch.randn(count)).exp().clamp(0.75, 1.33)
    else:
        angle, scale = 0.5 * math.pi * torch.randint(4, (count,)), torch.ones(count)
    mirror = 1.0 - 2.0 * (torch.rand(count) < 0.5).float()
    axes = torch.stack([mirror * angle.cos(), -angle.sin(), mirror * angle.sin(), angle.cos()], 1).unflatten(1, (2, 2))
    middle = patches.centroid + displacement * torch.randn(count, 2)
    changed = Patches(frames.flatten(1, 2), background, *list(vars(patches).values())[2:])
    return crops_of(changed, middle, axes, scale)


def crops_of(patches: Patches, middle: Tensor, axes: Tensor, scale: Tensor) -> Crops:
    """Crops around `middle` along turned and scaled axes, and place and rate in these."""
    images = crop_channels(patches.frames.unflatten(1, (3, 3)), patches.background, True)
    images = patches.inside * torch.cat([images, patches.masks, patches.motion], 1)
    cells = (torch.arange(SIDE) + 0.5) / SIDE - 0.5
    grid = CROP_EXTENT * torch.stack(torch.meshgrid(cells, cells, indexing="xy"), -1)
    at = middle[:, None, None] + scale[:, None, None, None] * torch.einsum("nij,hwj->nhwi", axes, grid)
    images = functional.grid_sample(images, at / REACH, padding_mode="border", align_corners=True)
    inverse = axes.mT / scale[:, None, None]
    images, motion = images.split([images.shape[1] - patches.motion.shape[1], patches.motion.shape[1]], 1)
    motion = torch.einsum("nij,ngjhw->ngihw", inverse, motion.unflatten(1, (-1, 2))).flatten(1, 2)
    place, rate = (torch.einsum("nij,nj->ni", inverse, part) for part in (patches.place - middle, patches.rate))
    inside = functional.grid_sample(patches.covered, at / REACH, mode="nearest", align_corners=True)[:, 0]
    return Crops(torch.cat([images, motion], 1), inside, place, rate)


def coverage_inputs(crops: Tensor) -> Tensor:
    """Channels of the last frame of crops, and the ball's mask in it, that coverage is read from."""
    frames, masks = crops[:, : COLOR_CROP_CHANNELS - 3], crops[:, COLOR_CROP_CHANNELS - 3 : COLOR_CROP_CHANNELS]
    return torch.cat([frames.unflatten(1, (3, -1))[:, -1, list(COVERAGE_CONTRAST)], masks[:, -1:]], 1)


def loss_of(errors: Tensor, stds: Tensor) -> Tensor:
    """Loss of errors and of their standard deviations."""
    terms = [STD_WEIGHT * part.mean() for part in robust_likelihood(errors.detach(), stds, OUTLIER).split(2, 1)]
    for error, scale in zip(errors.split(2, 1), HUBER_SCALES, strict=True):
        terms.append(functional.huber_loss(error, torch.zeros_like(error), delta=scale) / scale)
    return torch.stack(terms).sum()


def coverage_errors(coverage: CoverageNetwork, crops: Crops) -> tuple[Tensor, Tensor]:
    """Loss of the coverage network, and errors of its centroids, px."""
    errors = coverage(coverage_inputs(crops.images), crops.inside, CROP_EXTENT) - crops.place
    return errors.abs().mean(), errors


def vgg_errors(network: nn.Module, crops: Crops, refine: bool) -> tuple[Tensor, Tensor]:
    """Loss of the VGG, and errors of its places, px, or with `refine` of its speeds, px a frame."""
    corrections, stds = decode(network(crops.images))
    shift, rate = corrections.split(2, 1)
    places, speeds = (0.0 if refine else shift) - crops.place, rate - crops.rate
    return loss_of(torch.cat([places, speeds], 1), stds), speeds if refine else places


def with_colors(model: PredictiveAutoencoder, refine: bool, width: float) -> PredictiveAutoencoder:
    """Copy a model with new networks on crops, which see colors and twice as many samples.

    Args:
        model: Trained model.
        refine: If true, a coverage network comes before the VGG.
        width: Width of the VGG, as a fraction of VGG-11's.
    """
    configuration = stored_configuration(model)
    encoder = configuration["init_args"]["encoder"]["init_args"]
    settings = {"side": SIDE, "colors": True, "refine": refine, "codes": model.encoder.codes}
    encoder["crops"] = {"class_path": "physvision.models.BallCropSettings", "init_args": settings}
    encoder["network"]["init_args"] |= {
        "channels": COLOR_CROP_CHANNELS + (MOTION_CHANNELS if encoder.get("flow") else 0),
        "outputs": CROP_OUTPUTS,
        "pool": SIDE // 32,
        "width": width,
    }
    changed = build(configuration)
    retained = {name: value for name, value in model.state_dict().items() if not name.startswith(NEW_WEIGHTS)}
    changed.load_state_dict(retained, strict=False)
    return changed


def read_patches(encoder: TableEncoder, task: Task, fraction: float) -> Patches:
    """Patches around the balls of all labeled windows."""
    parts = [vars(patches_of(encoder, sample)).values() for sample in labeled_windows(task, fraction)]
    return Patches(*(torch.cat(values) for values in zip(*parts, strict=True)))


def descend(
    network: nn.Module, errors_of: Callable[[], tuple[Tensor, Tensor]], updates: int, rate: float, state: Path
) -> None:
    """Descend a loss by AdamW with one cycle of the learning rate, and print how it goes.

    Args:
        network: Network to train.
        errors_of: Function that returns the loss of a batch, and its errors, px.
        updates: Number of updates.
        rate: Largest learning rate.
        state: File of the training's state, from which it goes on if there is one.
    """
    weights = list(network.parameters())
    optimizer = torch.optim.AdamW(weights, rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, updates)
    distances: list[float] = []
    begin = 0
    if state.exists():
        stored = read_saved(state)
        for part, values in zip((network, optimizer, schedule), stored["parts"], strict=True):
            part.load_state_dict(values)
        torch.set_rng_state(stored["random"])
        begin = stored["update"]
    for update in range(begin, updates):
        loss, errors = errors_of()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 5.0)
        optimizer.step()
        schedule.step()
        distances.append(float(errors.detach().norm(dim=1).median()))
        if update % 500 == 499:
            print(f"{update + 1} updates: off by {sum(distances[-500:]) / 500:.4f} px in the median", flush=True)
            parts = [part.state_dict() for part in (network, optimizer, schedule)]
            with atomic_path(state) as path:
                torch.save({"parts": parts, "random": torch.get_rng_state(), "update": update + 1}, path)


def main(
    task: str = "tabletop",
    model: Path | None = None,
    data: Path | None = None,
    fraction: float = 0.1,
    updates: int = 18000,
    width: float = 0.125,
    out: Path | None = None,
    seed: int = 0,
) -> None:
    """Train the network, and save the model.

    Args:
        task: Name of the task, "tabletop" or "billiards".
        model: Model whose network is replaced; that of the task's training if not given.
        data: Data set; that of the task if not given.
        fraction: Fraction of the training trials that have labels.
        updates: Number of updates of the VGG.
        width: Width of the VGG, as a fraction of VGG-11's.
        out: File of the model; out/TASK.safetensors if not given. Files beside it hold the state of the training, from
            which the same command goes on.
        seed: Seed of the network and of all augmentation.
    """
    selection = TASKS[task]
    selection = replace(selection, model=model or selection.model, data=data or selection.data)
    out = out or Path(f"out/{task}.safetensors")
    out.parent.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    first = load(str(selection.model)).eval()
    trained = with_colors(first, selection.refine, width).eval()
    encoder = trained.encoder
    assert isinstance(first.encoder, TableEncoder)
    assert isinstance(encoder, TableEncoder)
    patches = read_patches(first.encoder, selection, fraction)
    print(f"{len(patches)} balls", flush=True)

    def draw(displacement: float) -> Crops:
        return augmented(patches.of(torch.randint(len(patches), (64,))), selection.turned, displacement)

    coverage, displacement = encoder.coverage, VGG_DISPLACEMENT
    if coverage is not None:
        errors_of = partial(coverage_errors, coverage)
        state = out.with_suffix(".coverage.pt")
        descend(coverage, lambda: errors_of(draw(COVERAGE_DISPLACEMENT)), COVERAGE_UPDATES, 1e-2, state)
        # What is left to the VGG are speeds, where the slope of refined centroids is not that of the motion.
        patches, displacement = read_patches(encoder, selection, fraction), 0.0
    network = encoder.network.train().to(memory_format=torch.channels_last)
    state = out.with_suffix(".vgg.pt")
    descend(network, lambda: vgg_errors(network, draw(displacement), selection.refine), updates, 2e-3, state)
    network.to(memory_format=torch.contiguous_format)
    save(out, trained.eval(), small=True)


if __name__ == "__main__":
    auto_cli(main)
