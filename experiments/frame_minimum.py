"""Minimum of the loss of one frame: how far from the true positions of balls it lies, and how much of that clips share.

The weak loss teaches an encoder by the frames that a decoder renders of its states. It can teach it no better than the
place at which this loss is least. In windows of held-out trials the positions of all balls start at the truth and
descend the loss of the last given frame, rendered by the model's decoder, and by its camera alone (flat colors).

    physvision generate tabletop --trials 1250 --out data/tabletop
    python experiments/frame_minimum.py [--model tabletop] [--data data/tabletop]
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from __future__ import annotations

import json
from pathlib import Path

import torch
from held_out import held_out
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import Coordinates, Trajectory, brightness
from physvision.datasets import Sample, WindowShape
from physvision.losses import foreground_weights, frame_losses
from physvision.models import PredictiveAutoencoder, load
from physvision.models.object_order import aligned
from physvision.trainers import PredictionTraining, Supervision
from physvision.trainers.batches import context_of

_STEPS, _RATE = 30, 0.1  # of descent, px
_LOST = 3.0  # px, from which a ball has left its place for another one


def offsets(model: PredictiveAutoencoder, sample: Sample) -> dict[str, Tensor]:
    """Offset of each ball from its true position, px, (balls, 2): of each decoder's minimum, and of the encoder."""
    context, true, now = context_of(sample), dict(sample.properties or {}), sample.ahead.state(0)
    present = true["present"] > 0.5
    with torch.no_grad():
        observation = aligned(model.observe(sample.observed, context), now, present, sample.labeled)
    result = {"encoder": observation.positions[:, -1] - now.q}
    target, poses = brightness(sample.observed[:, -1:]), context.extrinsics_at(sample.given - 1, (0,))
    weights = foreground_weights(target, brightness(sample.observed.median(1).values))
    network = model.decoder.network
    for name, painter in (("decoder", network), ("camera alone", None)):
        model.decoder.network = painter
        q = now.q.clone().requires_grad_()
        descent = torch.optim.Adam([q], _RATE)
        schedule = torch.optim.lr_scheduler.LinearLR(descent, 1.0, 0.0, _STEPS)
        for _ in range(_STEPS):
            descent.zero_grad()
            path = Trajectory(q[:, None], torch.zeros_like(q)[:, None])
            frames = model.decode(path, (0,), true, observation.appearance, poses)
            frame_losses("huber", frames, target, weights).sum().backward()
            descent.step()
            schedule.step()
        result[name] = q.detach() - now.q
    model.decoder.network = network
    return {name: offset.unflatten(1, (-1, 3))[..., :2] for name, offset in result.items()}


def summary(parts: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Median distance, and standard deviations of the means of clips and within clips, a coordinate, px."""
    selection, means, within, count = [], [], [], 0
    for offset, present in parts:
        for clip, mask in zip(offset, present, strict=True):
            own = clip[mask & (clip.norm(dim=-1) < _LOST)]
            selection.append(own)
            if len(own) > 1:
                means.append(own.mean(0))
                within.append((own - own.mean(0)).square().sum())
                count += 2 * (len(own) - 1)
    return {
        "median": float(torch.cat(selection).norm(dim=1).median()),
        "of clips": float(torch.stack(means).std(0).mean()),
        "within clips": float((torch.stack(within).sum() / count).sqrt()),
    }


def main(
    model: str = "tabletop", data: Path = Path("data/tabletop"), batches: int = 4, out: Path = Path("out")
) -> None:
    """Print and save the distances.

    Args:
        model: Checkpoint of `trainers/tabletop.yaml`.
        data: Data set `tabletop`.
        batches: Number of batches of 16 windows of validation trials.
        out: Folder of the JSON with all numbers.
    """
    trained = load(model).requires_grad_(False)
    module = PredictionTraining(trained, Supervision(Coordinates(trained.engine.nq))).eval()
    parts: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for raw in held_out(data, WindowShape(30, 10, 20), batches, given_properties=["walls"]):
        sample = module.prepare(raw)
        present = sample.properties["present"] > 0.5
        for name, offset in offsets(trained, sample).items():
            parts.setdefault(name, []).append((offset, present))
    rows = {name: summary(part) for name, part in parts.items()}
    print(f"{'offset from the truth, px':<28}{'median':>8}{'of clips':>10}{'within clips':>14}")
    for name, row in rows.items():
        print(f"{name:<28}{row['median']:>8.3f}{row['of clips']:>10.3f}{row['within clips']:>14.3f}")
    out.mkdir(parents=True, exist_ok=True)
    (out / "frame_minimum.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
