"""Balls on a cluttered table ten frames ahead, on held-out trials: the autoencoder beside a hand-made tracker.

Trackers are the strongest that a skeptic writes in an hour: they subtract the model's own background, registered by
the true poses of the camera, convolve the difference with a disc of the ball's true radius and take as many peaks as
there are balls. One refines the peaks by centroids of the difference, one by the circle of the true radius across which
colors change most, one takes the centroids of the model's own segmentation, a network trained on the same labels, one
the places that the model's VGG reads in two windows, and one the segmentation with the mean optical flow of each mask,
by the model's own flow network. All put them onto the table through the true camera, take the velocity from two frames,
and predict by the same engine with the *true* properties of the trial. The model is given the camera and the walls, as
they are, but neither the number of balls nor any of their properties.

    physvision generate tabletop --trials 1250 --out data/tabletop
    python experiments/tabletop_predictions.py [--model out/tabletop/checkpoints/last.ckpt] [--data data/tabletop]
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from held_out import held_out
from jsonargparse import auto_cli
from panel import save_pictures
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import Coordinates, State, Trajectory, brightness
from physvision.datasets import Sample, WindowShape
from physvision.models import ClipContext, PredictiveAutoencoder, TableEncoder, load
from physvision.models.object_order import aligned
from physvision.models.segmentation import find_instances, match_order
from physvision.models.tabletop import back_project
from physvision.trainers import PredictionTraining, Supervision
from physvision.trainers.batches import context_of

AHEAD = 10
TRACKERS = ("centroid", "circle", "network", "VGG", "network and flow")
# An impact is a change of velocity by this many times that of friction.
_IMPACT = 3.0
PROPERTIES = ("radius", "mass", "restitution", "wall_restitution", "sliding_deceleration")


def tracked(sample: Sample, model: PredictiveAutoencoder) -> dict[str, State]:
    """State of all balls from the last two frames, by each tracker."""
    assert sample.properties is not None
    assert sample.extrinsics is not None
    given, dt = sample.given, model.engine.dt
    radius, present = sample.properties["radius"], sample.properties["present"] > 0.5
    encoder, camera = model.encoder, model.decoder.camera.caster.camera  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(encoder, TableEncoder)
    context = context_of(sample)
    assert context is not None
    background = encoder.segment(sample.observed, context).background
    equal = torch.ones_like(radius)
    frames = []
    for frame in (given - 2, given - 1):
        images = brightness(sample.frames[:, frame])
        difference = (images - background).abs().amax(1)
        peaks = torch.stack([_discs(image, float(r[0])) for image, r in zip(difference, radius, strict=True)])
        circles = torch.stack([_circles(*inputs) for inputs in zip(images, peaks, radius[:, 0], strict=True)])
        instances = find_instances(encoder.segmentation(images, background), radius.shape[1], encoder.settings)
        pixels = {
            "centroid": (peaks, equal),
            "circle": (circles, equal),
            "network": (instances.centroids, instances.confidence + 0.05),
        }
        pose = sample.extrinsics[:, frame]
        places = {
            way: (back_project(at, camera.intrinsics.float(), pose, -radius), w) for way, (at, w) in pixels.items()
        }
        known = ClipContext(sample.extrinsics[:, : frame + 1], context.properties)
        window = encoder.observe_window(sample.frames[:, : frame + 1], known)
        assert window.confidence is not None
        places["VGG"] = window.positions[:, -1].unflatten(1, (-1, 3))[..., :2], window.confidence[:, -1] + 0.05
        frames.append(places)
    true = sample.ahead.state(0).q.unflatten(1, (-1, 3))[..., :2]  # pyright: ignore
    rows = torch.arange(len(true))[:, None]
    states = {}
    for way in frames[-1]:
        (before, weight_before), (now, weight_now) = (frame[way] for frame in frames)
        now = now[rows, match_order(true, present.float(), now, weight_now, 64.0)]
        before = before[rows, match_order(now, present.float(), before, weight_before, 64.0)]
        q, v = (functional.pad(part, (0, 1)).flatten(1) for part in (now, (now - before) / dt))
        states[way] = State(q, v)
    if encoder.flow is not None:
        # The network's centroids in the last frame, and the mean flow of their masks over two frames.
        images, earlier = (brightness(sample.frames[:, index]) for index in (given - 1, given - 3))
        masks = functional.interpolate(instances.masks, images.shape[-2:], mode="bilinear")
        flow = torch.einsum("bkhw,bchw->bkc", masks, encoder.flow(images, earlier))
        moved = instances.centroids + flow / masks.sum((2, 3)).clamp_min(1e-3)[..., None]
        before = back_project(moved, camera.intrinsics.float(), sample.extrinsics[:, given - 3], -radius)
        now, weight = frames[-1]["network"]
        order = match_order(true, present.float(), now, weight, 64.0)
        q, v = (part[rows, order] for part in (now, (now - before) / (2.0 * dt)))
        states["network and flow"] = State(*(functional.pad(part, (0, 1)).flatten(1) for part in (q, v)))
    return states


def _circles(image: Tensor, starts: Tensor, radius: Tensor) -> Tensor:
    """Centers within 1.5 px of `starts` of the circles across which colors change most, (slots, 2)."""
    offsets = torch.arange(-1.5, 1.51, 0.1)
    shifts = torch.cartesian_prod(offsets, offsets)
    angles = torch.arange(0, 2 * math.pi, 0.1)
    unit = torch.stack([angles.cos(), angles.sin()], -1)
    scale = 0.5 * image.shape[-1]
    centers = []
    for start in starts:
        inside, outside = (
            functional.grid_sample(
                image[None],
                ((start + shifts[:, None] + (radius + gap) * unit + 0.5) / scale - 1.0)[None],
                align_corners=False,
                padding_mode="border",
            )[0]
            for gap in (-0.7, 0.7)
        )
        change = ((inside - outside).square().sum(0) + 1e-4).sqrt().sum(-1)
        centers.append(start + shifts[change.argmax()])
    return torch.stack(centers)


def _discs(image: Tensor, radius: float, slots: int = 5) -> Tensor:
    """Column and row of the discs of a radius that fit an image of differences best, (slots, 2)."""
    reach = math.ceil(radius) + 1
    at = torch.arange(-reach, reach + 1.0)
    distance = (at.square() + at[:, None].square()).sqrt()
    kernel = (radius + 0.5 - distance).clamp(0, 1) - 0.5 * ((distance - radius).abs() < 1.5) * (distance > radius)
    response = functional.conv2d(image[None, None], kernel[None, None], padding=reach)[0, 0]
    places, left = [], response.clone()
    rows, columns = torch.arange(len(image))[:, None], torch.arange(image.shape[1])
    for _ in range(slots):
        row, column = divmod(int(left.argmax()), image.shape[1])
        window = (rows - row).square() + (columns - column).square()
        weight = image * (window <= (radius + 1) ** 2)
        total = weight.sum().clamp_min(1e-6)
        places.append(torch.stack([(weight * columns).sum() / total, (weight * rows).sum() / total]))
        left[window <= (1.6 * radius) ** 2] = -torch.inf
    return torch.stack(places)


def determined(sample: Sample) -> Tensor:
    """If true, the window's context holds impacts, or none happen later: what matters of the properties is seen.

    An impact changes a velocity between two frames by more than the table's friction does; one entry for every ball
    that is present.
    """
    assert sample.trajectory is not None
    assert sample.properties is not None
    present = sample.properties["present"] > 0.5
    change = sample.trajectory.v.unflatten(2, (-1, 3))[..., :2].diff(dim=1).norm(dim=-1)
    hit = (change > _IMPACT * sample.properties["sliding_deceleration"][:, None, None] / 30.0) & present[:, None]
    before, later = (
        hit[:, : sample.given - 1].any((1, 2)),
        hit[:, sample.given - 1 : sample.given - 1 + AHEAD].any((1, 2)),
    )
    return (before | ~later)[:, None].expand_as(present)[present]


def errors(trajectory: Trajectory, sample: Sample, step: int) -> Tensor:
    """Distance of each ball that is present from its true position, px."""
    true = sample.ahead
    assert true is not None
    present = sample.properties["present"] > 0.5  # pyright: ignore[reportOptionalSubscript]
    apart = (trajectory.q[:, step] - true.q[:, step]).unflatten(1, (-1, 3))[..., :2].norm(dim=-1)
    return apart[present]


@torch.no_grad()
def measure(module: PredictionTraining, batches: list[Sample]) -> tuple[dict, dict]:
    """Errors of every way at the last given frame and `AHEAD` frames later, and those of the properties."""
    model = module.model
    by_way: dict[str, list[list[Tensor]]] = {}
    values: dict[str, list[Tensor]] = {f"{name} {what}": [] for name in PROPERTIES for what in ("est", "std", "true")}
    output_layer = model.encoder.network.output_layer  # pyright: ignore[reportAttributeAccessIssue]
    for raw in batches:
        sample = module.prepare(raw)
        context, true = context_of(sample), dict(sample.properties or {})
        now, present = sample.ahead.state(0), true["present"] > 0.5  # pyright: ignore
        # Labels number the balls; which slots hold one is for the model to find.
        observation = aligned(model.observe(sample.observed, context), now, present, sample.labeled)
        own = model.initial_state(observation)
        window = aligned(model.observe(sample.observed, context, fitted=False), now, present, sample.labeled)
        weights = output_layer.weight.clone(), output_layer.bias.clone()
        for weight in (output_layer.weight, output_layer.bias):
            nn.init.zeros_(weight)
        unrefined = model.initial_state(aligned(model.observe(sample.observed, context), now, present, sample.labeled))
        output_layer.weight.copy_(weights[0])
        output_layer.bias.copy_(weights[1])
        mine = {**dict(observation.properties or {}), "walls": true["walls"]}
        ways = {
            "model": (own, mine),
            "model, last window alone": (
                model.initial_state(window),
                {**dict(window.properties or {}), "walls": true["walls"]},
            ),
            "model, VGG output zeroed": (unrefined, mine),
            "model's state, true properties": (own, true),
            "true state, model's properties": (now, mine),
            "true state, true properties": (now, true),
            **{f"tracker by {way}, true properties": (state, true) for way, state in tracked(sample, model).items()},
        }
        is_determined = determined(sample)
        for name, (state, properties) in ways.items():
            path = model.simulate(state, AHEAD, None, properties)
            later = errors(path, sample, AHEAD)
            parts = (errors(path, sample, 0), later, later[is_determined])
            for column, part in zip(by_way.setdefault(name, [[], [], []]), parts, strict=True):
                column.append(part)
        for name in PROPERTIES:
            rows = present if true[name].dim() == 2 else torch.ones(sample.batch, dtype=torch.bool)
            estimate, truth, std = mine[name], true[name], observation.property_std[name]  # pyright: ignore
            if name == "mass":
                scale = (truth * present).sum(1, True) / (estimate * present).sum(1, True)
                estimate, std = estimate * scale, std * scale
            for what, value in (("est", estimate), ("std", std), ("true", truth)):
                values[f"{name} {what}"].append(value[rows])
    table = {name: [torch.cat(part) for part in parts] for name, parts in by_way.items()}
    return table, {name: torch.cat(parts) for name, parts in values.items()}


def main(
    model: Path = Path("out/tabletop/checkpoints/last.ckpt"),
    data: Path = Path("data/tabletop"),
    split: str = "valid",
    batches: int = 12,
    out: Path = Path("out"),
):
    """Print and draw errors of all ways on held-out trials.

    Args:
        model: Checkpoint of `trainers/tabletop.yaml`.
        data: Data set `tabletop`.
        split: Split of the trials.
        batches: Number of batches of 16 windows.
        out: Folder of the figure and of the JSON with all numbers.
    """
    trained = load(model)
    module = PredictionTraining(trained, Supervision(Coordinates(trained.engine.nq))).eval()
    samples = list(held_out(data, WindowShape(30, AHEAD, 20), batches, split, given_properties=["walls"]))
    table, values = measure(module, samples)
    claims: dict[str, float] = {}
    keys = ("now", "p5", "p25", "median", "p75", "p95", "p95 determined")
    title = f"error of balls {AHEAD} frames ahead, px"
    print(f"{title:<38}" + "".join(f"{key:>9}" for key in keys[:-1]) + " determined")
    for name, (now, later, known) in table.items():
        quantiles = later.quantile(torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95]).to(later)).tolist()
        row = [float(now.median()), *quantiles, float(known.quantile(0.95))]
        claims |= {f"{name}: {key}": value for key, value in zip(keys, row, strict=True)}
        print(f"{name:<38}" + "".join(f"{value:>9.3f}" for value in row[:-1]) + f"{row[-1]:>11.2f}")
    for key in keys[1:]:
        ways = (f"tracker by {way}, true properties: {key}" for way in TRACKERS)
        best = min(claims[way] for way in ways if way in claims)
        ratio, zeroed = (
            value / claims[f"model: {key}"] for value in (best, claims[f"model, VGG output zeroed: {key}"])
        )
        claims[f"best tracker over model: {key}"] = ratio
        print(f"{key}: best tracker over model {ratio:.2f}, VGG zeroed {zeroed:.2f}")
    print(f"\n{'property':<24}{'median error':>14}{'best constant':>15}{'in 95 % interval':>18}")
    for name in PROPERTIES:
        estimate, std, true = (values[f"{name} {what}"] for what in ("est", "std", "true"))
        error, constant = (estimate - true).abs(), (true - true.median()).abs().median()
        inside = float((error < 1.96 * std).float().mean())
        claims |= {f"{name}: error": float(error.median()), f"{name}: constant": float(constant), f"{name}: in": inside}
        print(f"{name:<24}{float(error.median()):>14.3f}{float(constant):>15.3f}{100 * inside:>16.0f} %")
    out.mkdir(parents=True, exist_ok=True)
    (out / "tabletop_predictions.json").write_text(json.dumps(claims, indent=1))
    _draw(module, module.prepare(samples[0]), out / "tabletop_predictions.png")


@torch.no_grad()
def _draw(module: PredictionTraining, sample: Sample, path: Path) -> None:
    """Stages of the model on four windows: frame, foreground, coverage, prediction, truth."""
    model = module.model
    _, segmented = model.encoder.encode(sample.observed, context_of(sample))  # pyright: ignore
    forecast = module.forecast(sample, (AHEAD,))
    rows = [
        {
            "last given frame": brightness(sample.observed[row, -1]),
            "foreground": torch.sigmoid(segmented.logits[row, -1, :1]).expand(3, -1, -1),
            "centers": torch.sigmoid(segmented.logits[row, -1, 1:]).expand(3, -1, -1),
            f"predicted, +{AHEAD}": forecast.frames[row, 0].clamp(0, 1),
            f"true, +{AHEAD}": brightness(sample.frames_at((AHEAD,)))[row, 0],
        }
        for row in range(4)
    ]
    save_pictures(rows, path)


if __name__ == "__main__":
    auto_cli(main)
