"""Textured pendulums before a cluttered wall, ten frames and a second ahead, on held-out trials, beside hand-made ways.

Hand-made ways know what the model does not: the true lengths, half width, masses and damping of each trial. One
subtracts the median of the given frames, registered by the true poses of the camera, and takes in each frame the pair
of angles at which the silhouettes of the links hold most of the difference and their flanks least. One takes the
directions of the centroids in the model's own segmentation. Both either read a slope from the last three frames, or
fit the engine with the true properties to all given frames, by the same method as the model. The oracles start from
the true state.

    physvision generate swing --trials 1250 --out data/swing
    python experiments/swing_predictions.py [--model swing] [--data data/swing]
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false, reportIndexIssue=false

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

from physvision.core import State, Trajectory, brightness
from physvision.datasets import Sample, WindowShape
from physvision.losses import ssim_map
from physvision.models import LinkEncoder, PredictiveAutoencoder, load
from physvision.models.interfaces import ClipContext
from physvision.models.tabletop import project
from physvision.models.track_fit import MotionTracks

AHEAD = (0, 10, 30)
GIVEN = 30
# Frames that hand-made ways read.
READ = (*range(0, GIVEN - 3, 3), *range(GIVEN - 3, GIVEN))
PROPERTIES = ("length", "half_width", "mass ratio", "damping per mass")
# Number of candidate directions, and of samples along and across a link.
_DIRECTIONS, _ALONG, _ACROSS = 96, 8, 3
_DILATION = 3


def unit(angle: Tensor) -> Tensor:
    """Vectors at angles against down, y pointing down."""
    return torch.stack([-angle.sin(), angle.cos()], -1)


def ends_of(q: Tensor, length: Tensor) -> Tensor:
    """Ends of all links, m, (…, links, 2)."""
    return (length[..., None] * unit(q.cumsum(-1))).cumsum(-2)


def fitted_silhouettes(
    difference: Tensor, pose: Tensor, intrinsics: Tensor, length: Tensor, half_width: Tensor
) -> Tensor:
    """Directions of two links whose silhouettes hold most of a difference image, their flanks least; (links,)."""
    angles = torch.linspace(-math.pi, math.pi, _DIRECTIONS + 1)[:-1]

    def score(starts: Tensor, directions: Tensor, link: int) -> Tensor:
        """Mean within the link less that on its flanks, one for each start and direction."""
        along = length[link] * (torch.arange(_ALONG) + 0.5) / _ALONG
        offsets = half_width * torch.cat([torch.linspace(-0.8, 0.8, _ACROSS), torch.tensor([-1.9, 1.9])])
        ahead, sideways = unit(directions), unit(directions + 0.5 * math.pi)
        points = starts[..., None, None, :] + along[:, None, None] * ahead[..., None, None, :]
        points = points + offsets[:, None] * sideways[..., None, None, :]
        flat = functional.pad(points.reshape(1, -1, 2), (0, 1))
        pixels = project(flat, intrinsics, pose[None])[0]
        grid = ((2.0 * pixels + 1.0) / difference.shape[-1] - 1.0)[None, None]
        values = functional.grid_sample(difference[None, None], grid, align_corners=False)[0, 0, 0]
        values = values.reshape(points.shape[:-1])
        return (values[..., :_ACROSS].mean(-1) - 0.5 * values[..., _ACROSS:].amax(-1)).sum(-1) * length[link]

    first, second = angles, angles
    for spread in (None, 0.05, 0.01):
        if spread is not None:
            grid = spread * torch.linspace(-1.5, 1.5, 11)
            first, second = best[0] + grid, best[1] + grid
        joint = length[0] * unit(first)
        scores = score(torch.zeros_like(joint), first, 0)[:, None] + score(
            joint[:, None].expand(-1, len(second), -1), second.expand(len(first), -1), 1
        )
        row, column = divmod(int(scores.argmax()), len(second))
        best = first[row], second[column]
    return torch.stack(best)


def centroid_directions(encoder: LinkEncoder, sample: Sample, context: ClipContext, length: Tensor) -> Tensor:
    """Directions of the centroids of the model's own masks, (batch, frames, links)."""
    background = encoder.registered_background(sample.observed, list(range(0, GIVEN, 4)), context)
    frames = brightness(sample.observed[:, list(READ)])
    logits = encoder.segmentation(frames.flatten(0, 1), background.repeat_interleave(len(READ), 0))
    masks = torch.sigmoid(logits).unflatten(0, (-1, len(READ)))
    centroids = encoder.on_plane(masks, context.extrinsics[:, list(READ)])
    first = torch.atan2(-centroids[:, :, 0, 0], centroids[:, :, 0, 1])
    arm = centroids[:, :, 1] - length[:, None, :1] * unit(first)
    return torch.stack([first, torch.atan2(-arm[..., 0], arm[..., 1])], -1)


def silhouette_directions(encoder: LinkEncoder, sample: Sample, context: ClipContext, true: dict) -> Tensor:
    """Directions of links that explain the difference from the median best, (batch, frames, links)."""
    background = encoder.registered_background(sample.observed, list(range(0, GIVEN, 2)), context)
    camera = encoder.camera.caster.camera
    difference = (brightness(sample.observed) - background[:, None]).abs().amax(2)
    rows = []
    for clip in range(sample.batch):
        values = true["length"][clip], true["half_width"][clip]
        rows.append(
            torch.stack(
                [
                    fitted_silhouettes(
                        difference[clip, frame], context.extrinsics[clip, frame], camera.intrinsics.float(), *values
                    )
                    for frame in READ
                ]
            )
        )
    return torch.stack(rows)


def states_of(encoder: LinkEncoder, directions: Tensor, true: dict, std: float) -> dict[str, State]:
    """States from directions in all given frames: slope of the last three, and the fit of the engine to all."""
    wrap = encoder.angles.unwind
    rate = wrap(directions[:, -1] - directions[:, -3]) / (2.0 * encoder.dt)
    zero = torch.zeros_like(rate[..., :1])
    slope = State(wrap(directions[:, -1].diff(dim=-1, prepend=zero)), rate.diff(dim=-1, prepend=zero))
    names = ("length", "mass", "joint_damping")
    tracks = MotionTracks(directions, torch.full_like(directions, std), READ, GIVEN, absolute=True)
    known = {name: true[name] for name in names}, {name: 1e-3 * true[name] + 1e-6 for name in names}
    fitted = encoder.fit(tracks, known).state
    return {"three frames": slope, "30 frames": State(fitted.q.float(), fitted.v.float())}


@torch.no_grad()
def measure(model: PredictiveAutoencoder, samples: list[Sample]) -> tuple[dict, dict, dict]:
    """Errors of every way at the steps `AHEAD`, likeness of links, and properties with their truth."""
    encoder = model.encoder
    assert isinstance(encoder, LinkEncoder)
    errors: dict[str, list[list[Tensor]]] = {}
    likeness: dict[str, list[Tensor]] = {}
    values: dict[str, list[Tensor]] = {}
    camera = encoder.camera.caster.camera
    scale = float(camera.intrinsics[0, 0] / camera.extrinsics[..., 2, 3])
    for sample in samples:
        context = ClipContext(sample.extrinsics)
        true = dict(sample.properties)
        encoded, segmented = encoder.encode(sample.observed, context)
        encoded = encoded.to(torch.float32)
        refined = encoder.refined(encoded, GIVEN, segmented.motion)
        without = _without_vgg(encoder, sample, context)
        now, mine = sample.ahead.state(0), dict(refined.properties)
        ways = {
            "model": (refined.state, mine),
            "model, VGG output zeroed": (without.state, dict(without.properties)),
            "model, state of three frames": (encoded.state, mine),
            "model, three frames, properties unknown": (encoded.state, dict(encoded.properties)),
            "model's state, true properties": (refined.state, true),
            "true state, model's properties": (now, mine),
            "true state, true properties": (now, true),
        }
        directions = {
            "silhouettes by hand": (silhouette_directions(encoder, sample, context, true), 0.05),
            "centroids of segmentation": (centroid_directions(encoder, sample, context, true["length"]), 0.1),
        }
        for name, (read, std) in directions.items():
            for frames, state in states_of(encoder, read, true, std).items():
                ways[f"{name}, {frames}, true properties"] = (state, true)
        for name, (state, properties) in ways.items():
            path = model.simulate(state, AHEAD[-1], None, properties)
            columns = errors.setdefault(name, [[] for _ in range(2 * len(AHEAD))])
            for place, step in enumerate(AHEAD):
                target = sample.ahead.q[:, step]
                angle = encoder.angles.unwind(path.q[:, step].cumsum(-1) - target.cumsum(-1)).abs()
                apart = ends_of(path.q[:, step], properties["length"]) - ends_of(target, true["length"])
                columns[2 * place].append(angle.flatten())
                columns[2 * place + 1].append((scale * apart.norm(dim=-1)).flatten())
        _compare_frames(model, sample, (refined, mine, true), likeness)
        _compare_properties(refined, true, values)
    return (
        {name: [torch.cat(part) for part in columns] for name, columns in errors.items()},
        {name: torch.cat(parts) for name, parts in likeness.items()},
        {name: torch.cat(parts) for name, parts in values.items()},
    )


def _without_vgg(encoder: LinkEncoder, sample: Sample, context: ClipContext):
    layer = encoder.network.output_layer
    weights = layer.weight.clone(), layer.bias.clone()
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    observation = encoder.observe(sample.observed, context).to(torch.float32)
    layer.weight.copy_(weights[0])
    layer.bias.copy_(weights[1])
    return observation


def link_likeness(predicted: Tensor, frames: Tensor, mask: Tensor) -> Tensor:
    """Structural similarity over the dilated mask of a link, in the clips that show it."""
    dilated = functional.max_pool2d(mask.float()[:, None], 2 * _DILATION + 1, 1, _DILATION)[:, 0]
    similar = ssim_map(predicted.clamp(0, 1), frames)
    return ((similar * dilated).sum((1, 2)) / dilated.sum((1, 2)).clamp_min(1.0))[mask.any(2).any(1)]


def _compare_frames(model: PredictiveAutoencoder, sample: Sample, estimates: tuple, likeness: dict) -> None:
    """Add the likeness of each link at the true and the predicted state of each step."""
    refined, mine, true = estimates
    states = sample.ahead
    path = model.simulate(refined.state, AHEAD[-1], None, mine)
    poses = sample.extrinsics[:, [GIVEN - 1 + step for step in AHEAD]]
    frames = brightness(sample.frames_at(AHEAD))
    for kind, trajectory, values in (("true", states, true), ("predicted", path, mine)):
        rendered = model.decode(trajectory, AHEAD, values, refined.appearance, poses)
        for place, step in enumerate(AHEAD):
            wall = refined.appearance.background
            for link in range(model.encoder.slots):
                own = sample.masks[:, GIVEN - 1 + step] == link + 1
                key = f"link {link + 1}, {kind} state, +{step}"
                likeness.setdefault(key, []).append(link_likeness(rendered[:, place], frames[:, place], own))
                if kind == "true" and step == AHEAD[-1]:
                    apart = [
                        ((part - frames[:, place]).abs().mean(1) * own).sum((1, 2))
                        for part in (rendered[:, place], wall)
                    ]
                    likeness.setdefault(f"link {link + 1}, drawn", []).append((apart[0] < apart[1]).float())


def _compare_properties(refined, true: dict, values: dict) -> None:
    """Add estimates, deviations and truth of what the motion depends on."""
    means, stds = refined.properties, refined.property_std
    rows = {
        "length": (means["length"], stds["length"], true["length"]),
        "half_width": (means["half_width"], stds["half_width"], true["half_width"]),
        "mass ratio": (
            means["mass"][:, 1] / means["mass"][:, 0],
            (means["mass"][:, 1] / means["mass"][:, 0]) * (stds["mass"] / means["mass"]).norm(dim=-1),
            true["mass"][:, 1] / true["mass"][:, 0],
        ),
        "damping per mass": (
            means["joint_damping"] / means["mass"].sum(-1, True),
            stds["joint_damping"] / means["mass"].sum(-1, True),
            true["joint_damping"] / true["mass"].sum(-1, True),
        ),
    }
    for name, parts in rows.items():
        for what, part in zip(("est", "std", "true"), parts, strict=True):
            values.setdefault(f"{name} {what}", []).append(part.flatten())


def main(
    model: str = "swing",
    data: Path = Path("data/swing"),
    split: str = "test",
    batches: int = 12,
    out: Path = Path("out"),
):
    """Print and draw errors of all ways on held-out trials.

    Args:
        model: Name of a shipped model, or a checkpoint of `trainers/swing.yaml`.
        data: Data set `swing`.
        split: Split of the trials, valid or test.
        batches: Number of batches of 16 windows.
        out: Folder of the figure and of the JSON with all numbers.
    """
    trained = load(model)
    samples = list(held_out(data, WindowShape(GIVEN, AHEAD[-1], 20), batches, split, masks=True))
    errors, likeness, values = measure(trained, samples)
    claims: dict[str, float] = {}
    heads = [f"{what} +{step}" for step in AHEAD for what in ("rad", "px")]
    print(
        f"{'median error of angles and link ends':<56}" + "".join(f"{head:>10}" for head in heads) + f"{'95 % +30':>10}"
    )
    for name, columns in errors.items():
        row = [float(part.median()) for part in columns] + [float(columns[-1].quantile(0.95))]
        claims |= {f"{name}: {head}": value for head, value in zip([*heads, "px 95 % +30"], row, strict=True)}
        print(f"{name:<56}" + "".join(f"{value:>10.3f}" for value in row))
    print(f"\n{'SSIM over dilated masks':<34}{'median':>10}{'5 %':>8}")
    for name, part in likeness.items():
        claims[name] = float(part.mean() if name.endswith("drawn") else part.median())
        print(f"{name:<34}{claims[name]:>10.3f}{float(part.quantile(0.05)):>8.3f}")
    print(f"\n{'property':<24}{'median error':>14}{'best constant':>15}{'in 95 % interval':>18}")
    for name in PROPERTIES:
        estimate, std, true = (values[f"{name} {what}"] for what in ("est", "std", "true"))
        error, constant = (estimate - true).abs(), (true - true.median()).abs().median()
        inside = float((error < 1.96 * std).float().mean())
        claims |= {f"{name}: error": float(error.median()), f"{name}: constant": float(constant), f"{name}: in": inside}
        print(f"{name:<24}{float(error.median()):>14.4f}{float(constant):>15.4f}{100 * inside:>16.0f} %")
    out.mkdir(parents=True, exist_ok=True)
    (out / "swing_predictions.json").write_text(json.dumps(claims, indent=1))
    _draw(trained, samples[0], out / "swing_predictions.png")


@torch.no_grad()
def _draw(model: PredictiveAutoencoder, sample: Sample, path: Path) -> None:
    """Stages of the model on six windows: frame, masks, frames drawn at the true and the predicted state, truth."""
    encoder, context, step = model.encoder, ClipContext(sample.extrinsics), AHEAD[-1]
    encoded, segmented = encoder.encode(sample.observed, context)
    refined = encoder.refined(encoded.to(torch.float32), GIVEN, segmented.motion)
    trajectory = model.simulate(refined.state, step, None, refined.properties)
    poses = sample.extrinsics[:, [GIVEN - 1 + step]]
    truth = Trajectory(sample.ahead.q, sample.ahead.v)
    rendered = [
        model.decode(states, (step,), values, refined.appearance, poses)[:, 0].clamp(0, 1)
        for states, values in ((truth, dict(sample.properties)), (trajectory, dict(refined.properties)))
    ]
    masks = torch.sigmoid(segmented.logits[:, -1])
    rows = [
        {
            "last given frame": brightness(sample.observed[clip, -1]),
            "masks": torch.cat([masks[clip], torch.zeros_like(masks[clip, :1])]),
            f"drawn at true state, +{step}": rendered[0][clip],
            f"predicted, +{step}": rendered[1][clip],
            f"true, +{step}": brightness(sample.frames_at((step,)))[clip, 0],
        }
        for clip in range(0, 16, 3)
    ]
    save_pictures(rows, path)


if __name__ == "__main__":
    auto_cli(main)
