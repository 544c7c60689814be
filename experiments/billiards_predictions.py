"""Discs on a clean table ten frames ahead: the model beside the five lines of code that a sceptic writes.

The discs are red, green and blue on black, so that the centroid of a color channel is a disc's exact position, and the
difference of the last two its velocity. The model is told neither colors nor radius, and learned from labels on 10 % of
trials. Both predict by the same engine. In its place, a network of 2 × 100 predicts, too, which learned from the true
states of all training trials.

    physvision generate billiards --trials 600 --out data/billiards
    python experiments/billiards_predictions.py [--model billiards-3] [--data data/billiards]
"""

# pyright: reportCallIssue=false

from __future__ import annotations

from pathlib import Path

import torch
from claims import Claim, write_claims
from held_out import held_out
from jsonargparse import auto_cli
from mlp_motion import learn_motion
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import Coordinates, State, Trajectory, brightness
from physvision.datasets import WindowShape
from physvision.models import TableEncoder, load
from physvision.models.object_order import aligned
from physvision.trainers import PredictionTraining, Supervision

AHEAD = 10
QUANTITIES = "median error", "95th percentile of the error", "median error of balls that strike something"


def five_lines(frames: Tensor, balls: int, dt: float) -> State:
    """State in the last frame by centroids of color channels."""
    images, at = brightness(frames[:, -2:, :balls]).double(), torch.arange(64.0, dtype=torch.float64) + 0.5
    total = images.sum((-1, -2))
    centers = torch.stack([(images.sum(-2) * at).sum(-1) / total, (images.sum(-1) * at).sum(-1) / total], -1)
    q, v = centers[:, 1], (centers[:, 1] - centers[:, 0]) / dt
    return State(*(functional.pad(part, (0, 1)).flatten(1).float() for part in (q, v)))


def apart(path: Trajectory, true: Trajectory) -> tuple[Tensor, Tensor, Tensor]:
    """Distances of balls from their true places, px, now and ahead, and ahead of those that strike something."""
    off = (path.q - true.q)[:, [0, AHEAD]].unflatten(2, (-1, 3))[..., :2].norm(dim=-1)
    turned = (true.v[:, AHEAD] - true.v[:, 0]).unflatten(1, (-1, 3))[..., :2].norm(dim=-1) > 1e-3
    return off[:, 0].flatten(), off[:, 1].flatten(), off[:, 1][turned]


@torch.no_grad()
def main(
    model: Path = Path("billiards-3"),
    data: Path = Path("data/billiards"),
    split: str = "valid",
    batches: int = 24,
    updates: int = 10000,
):
    """Print errors of balls at the last given frame and ten frames later, and of those that struck something.

    Args:
        model: Checkpoint of `trainers/billiards-3.yaml` or `billiards-1.yaml`.
        data: Data set of as many balls.
        split: Split of the trials.
        batches: Number of batches of 16 windows.
        updates: Number of updates of the network that takes the engine's place.
    """
    trained = load(model)
    assert isinstance(trained.encoder, TableEncoder)
    assert trained.scene is not None
    module = PredictionTraining(trained, Supervision(Coordinates(trained.engine.nq))).eval()
    with torch.enable_grad():
        network = learn_motion(data, AHEAD, updates)
    output_layer: nn.Linear = trained.encoder.network.output_layer  # pyright: ignore
    errors: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {}
    for raw in held_out(data, WindowShape(trained.scene.frames_in, AHEAD, 20), batches, split):
        sample = module.prepare(raw)
        assert sample.ahead is not None
        true, present = sample.ahead.state(0), torch.ones_like(sample.ahead.q[:, 0, ::3], dtype=torch.bool)

        def observed(fitted: bool, sample=sample, true=true, present=present) -> State:
            observation = trained.observe(sample.observed, fitted=fitted)
            return aligned(observation, true, present, torch.ones_like(sample.labeled)).state

        ways = {"model": observed(True), "model, last window alone": observed(False)}
        weights = output_layer.weight.clone(), output_layer.bias.clone()
        nn.init.zeros_(output_layer.weight)
        nn.init.zeros_(output_layer.bias)
        ways["model, VGG output zeroed"] = observed(True)
        output_layer.weight.copy_(weights[0])
        output_layer.bias.copy_(weights[1])
        ways["five lines"] = five_lines(sample.observed, present.shape[1], trained.engine.dt)
        ways["true state"] = true
        for name, state in ways.items():
            paths = {name: trained.simulate(state, AHEAD)}
            if name in ("model", "model, last window alone", "true state"):
                paths[f"{name}, network"] = network.rollout(state, AHEAD, None)
            for way, path in paths.items():
                errors.setdefault(way, []).append(apart(path, sample.ahead))
    rows: dict[str, tuple[float, float, float, float]] = {}
    print(f"{'error of balls, px':<34}{'now':>8}{'median':>10}{'95 %':>8}{'colliding':>10}   ({AHEAD} frames ahead)")
    for name, parts in errors.items():
        now, later, colliding = (torch.cat(part) for part in zip(*parts, strict=True))
        medians = [float(part.median()) for part in (now, later, colliding)]
        row = rows[name] = medians[0], medians[1], float(later.quantile(0.95)), medians[2]
        print(f"{name:<34}{row[0]:>8.4f}{row[1]:>10.4f}{row[2]:>8.3f}{row[3]:>10.4f}")
    source = "color centroids of two frames, exact engine"
    claims = [
        Claim(f"balls without known colors ten frames ahead: {name}", own, "px", reference=rival, source=source)
        for name, own, rival in zip(QUANTITIES, rows["model"][1:], rows["five lines"][1:], strict=True)
    ]
    print(write_claims(__file__, claims))


if __name__ == "__main__":
    auto_cli(main)
