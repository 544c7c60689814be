"""Balls on a cluttered table from few labels (figure 4): 100, 25, 10 and 2 % of trials, and what the physics adds.

For each fraction of labeled trials an encoder is trained on labels alone (`tabletop-encoder.yaml`; its row comes first,
with a decoder that is not trained). From its weights the whole model is trained on (`tabletop.yaml`) in several ways,
with equally many updates each:

- `rest`: labeled trials and all others, whose frames teach the encoder through the engine;
- `alone`: labeled trials alone;
- `no engine gradient`: as `rest`, but no gradient passes from the engine to the encoder's state and properties;
- `given frame`: as `rest`, but the frame that is compared is the last given one, so that the engine has no part in it;
- `MLP`: as `rest`, with a network of 2 × 100 in place of the engine, which is given the properties as well.

Runs that were interrupted go on, and those that are complete are not repeated. Errors are those of balls in windows of
held-out trials, ten frames ahead.

    physvision generate tabletop --trials 1250 --out data/tabletop
    python experiments/tabletop_labels.py [--fractions "[0.1, 0.02]"] [--ways "[rest, alone]"] [--data data/tabletop]
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import torch
import yaml
from held_out import held_out
from jsonargparse import auto_cli
from tabletop_predictions import AHEAD, errors
from torch import Tensor, nn

from physvision.core import State, Trajectory, brightness
from physvision.datasets import Sample, WindowShape
from physvision.models.object_order import aligned
from physvision.trainers import PredictionTraining
from physvision.trainers.batches import context_of
from physvision.trainers.checkpoints import load_weights
from physvision.trainers.commands import build_training, read_checkpoint

mpl.use("Agg")
from matplotlib import pyplot as plt

FRACTIONS = (1.0, 0.25, 0.1, 0.02)
WAYS = ("rest", "alone", "no engine gradient", "given frame", "MLP")
_HIDDEN = 100
# Updates of an epoch, of the stages of an encoder and of the weak losses' ramp, as the configurations have them.
_UPDATES = 500
_STAGES, _RAMP = {"segmentation_updates": 1500, "encoder_updates": 4000}, {"ramp_updates": 1000}


class MlpMotion(nn.Module):
    """Motion of all balls by one network of two hidden layers, in place of the engine."""

    def __init__(self, slots: int, size: float, dt: float) -> None:
        super().__init__()
        self.slots, self.size, self.dt = slots, size, dt
        inputs, outputs = 7 * slots + 7, 4 * slots
        self.layers = nn.Sequential(
            *(nn.Linear(inputs, _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.SiLU()),
            nn.Linear(_HIDDEN, outputs),
        )
        nn.init.zeros_(self.layers[-1].weight)
        nn.init.zeros_(self.layers[-1].bias)

    def rollout(self, state: State, steps: int, properties: Mapping[str, Tensor]) -> Trajectory:
        """States after each of `steps` steps of dt."""
        present = properties["present"]
        balls = [properties["mass"] - 1.0, 0.25 * properties["radius"], present]
        trial = [properties[name][:, None] for name in ("restitution", "wall_restitution")]
        known = torch.cat(
            [*balls, *trial, 0.1 * properties["sliding_deceleration"][:, None], properties["walls"] / self.size], 1
        )
        states = [state]
        for _ in range(steps):
            q, v = (part.unflatten(1, (self.slots, 3)) for part in (states[-1].q, states[-1].v))
            places = torch.where(present[..., None] > 0.5, q[..., :2] / self.size, 0.0)
            inputs = torch.cat([places.flatten(1), (self.dt * v[..., :2]).flatten(1), known], 1)
            shift, change = self.layers(inputs).unflatten(1, (2, self.slots, 2)).unbind(1)
            still = torch.zeros_like(q[..., :1])
            q = q + torch.cat([self.dt * v[..., :2] + shift, still], -1)
            v = v + torch.cat([change / self.dt, still], -1)
            states.append(State(q.flatten(1), v.flatten(1)))
        return Trajectory(torch.stack([s.q for s in states], 1), torch.stack([s.v for s in states], 1), dt=self.dt)


def change(module: PredictionTraining, way: str) -> None:
    """Make a training one of the ways."""
    model = module.model
    simulate = model.simulate

    def without_gradient(state: State, steps: int, truncate=None, properties=None) -> Trajectory:
        values = {name: value.detach() for name, value in (properties or {}).items()}
        return simulate(State(state.q.detach(), state.v.detach()), steps, truncate, values)

    def by_network(state: State, steps: int, truncate=None, properties=None) -> Trajectory:
        return model.motion.rollout(state, steps, properties)

    if way == "no engine gradient":
        model.simulate = without_gradient
    elif way == "given frame":
        module._sampled_steps = lambda steps: [0]
        module.supervision.later_weight = 0.0
    elif way == "MLP":
        encoder = model.encoder
        model.motion = MlpMotion(encoder.slots, float(encoder.size[0]), model.engine.dt)
        model.simulate = by_network


def _scaled(values: dict[str, int], updates: int) -> dict[str, int]:
    return {name: value * updates // _UPDATES for name, value in values.items()}


def train(
    name: str, way: str, weights: Path | None, fraction: float, data: Path, folder: Path, updates: int = _UPDATES
) -> PredictionTraining:
    """Train with so many updates an epoch, go on, or only load what is complete. Stages and ramp scale with them."""
    folder.mkdir(parents=True, exist_ok=True)
    last, spent = folder / "last.ckpt", folder / "seconds.json"
    batch_fraction = 0.5 if way not in ("alone", "encoder") else 1.0
    checkpoint = {"dirpath": str(folder), "save_last": True, "every_n_train_steps": 100}
    values = {
        "trainer": {
            "logger": False,
            "callbacks": [{"class_path": "lightning.pytorch.callbacks.ModelCheckpoint", "init_args": checkpoint}],
            "limit_train_batches": updates,
            "limit_val_batches": 0,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "accelerator": "cpu",
        },
        "model": {
            "stages": {"weights": None, **(_scaled(_STAGES, updates) if name == "encoder" else {})},
            "supervision": _scaled(_RAMP, updates),
        },
        "data": {"path": str(data), "memory": True, "labels": {"fraction": fraction, "batch_fraction": batch_fraction}},
    }
    overlay = folder / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(values))
    layers = ["tabletop.yaml", *(["tabletop-encoder.yaml"] if name == "encoder" else []), str(overlay)]
    built = build_training([argument for layer in layers for argument in ("--config", layer)])
    module = built.model
    assert isinstance(module, PredictionTraining)
    if weights is not None:
        load_weights(module.model, str(weights))
        module.segmentation.start(module.model.encoder.segmentation)
    change(module, way)
    total = (built.trainer.max_epochs or 0) * int(built.trainer.limit_train_batches)
    seconds = json.loads(spent.read_text()) if spent.exists() else 0.0
    if not last.exists() or read_checkpoint(last)["global_step"] < total:
        began = time.process_time()
        built.trainer.fit(module, built.datamodule, ckpt_path=str(last) if last.exists() else None)
        seconds += time.process_time() - began
        spent.write_text(json.dumps(seconds))
    module.load_state_dict(read_checkpoint(last)["state_dict"])
    return module.eval()


@torch.no_grad()
def measured(module: PredictionTraining, samples: Sequence[Sample]) -> dict[str, float]:
    """Errors of balls now and `AHEAD` frames later, px, and mean square error of that frame."""
    now, later, frames = [], [], []
    for raw in samples:
        sample, model = module.prepare(raw), module.model
        context, true, present = context_of(sample), sample.ahead.state(0), sample.properties["present"] > 0.5
        # Labels number the balls; which slots hold one is for the model to find.
        observation = aligned(model.observe(sample.observed, context), true, present, sample.labeled)
        path = model.simulate(model.initial_state(observation), AHEAD, None, observation.properties)
        pose = context.extrinsics_at(sample.given - 1, (AHEAD,))
        image = model.decode(path, (AHEAD,), observation.properties, observation.appearance, pose)[:, 0]
        now.append(errors(path, sample, 0))
        later.append(errors(path, sample, AHEAD))
        frames.append((image.clamp(0, 1) - brightness(sample.frames_at((AHEAD,)))[:, 0]).square().mean())
    after = torch.cat(later)
    return {
        "now": float(torch.cat(now).median()),
        "median": float(after.median()),
        "p95": float(after.quantile(0.95)),
        "frame MSE": float(torch.stack(frames).mean()),
    }


def draw(rows: dict[tuple[float, str], dict[str, float]], path: Path) -> None:
    """Errors against the fraction of labeled trials, a line for each way."""
    figure, grid = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for axes, field, label in zip(grid, ("median", "frame MSE"), ("ball position, px", "frame MSE"), strict=True):
        for way in WAYS:
            points = [(100.0 * fraction, row[field]) for (fraction, name), row in rows.items() if name == way]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", label=way)
        axes.set(xscale="log", yscale="log", xlabel="labeled trials, %", ylabel=f"{label}, {AHEAD} frames ahead")
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(
    data: Path = Path("data/tabletop"),
    fractions: tuple[float, ...] = FRACTIONS,
    ways: tuple[str, ...] = WAYS,
    batches: int = 16,
    updates: int = _UPDATES,
    runs: Path = Path("out/tabletop_labels"),
    out: Path = Path("out"),
) -> None:
    """Train with fewer and fewer labels, in all ways, and compare.

    Args:
        data: Data set `tabletop`.
        fractions: Fractions of labeled trials.
        ways: Ways of training the whole model, of those above.
        batches: Number of held-out batches of 16 windows.
        updates: Number of updates of an epoch: encoders have eight, whole models five.
        runs: Folder of the trainings.
        out: Folder of figure and numbers.
    """
    torch.set_num_threads(1)
    samples = list(held_out(data, WindowShape(30, AHEAD, 20), batches, given_properties=["walls"]))
    rows: dict[tuple[float, str], dict[str, float]] = {}
    print(f"{'labeled trials':<16}{'way':<22}{'now':>8}{'median':>9}{'95 %':>8}{'frame MSE':>12}")
    for fraction in fractions:
        folder = runs / f"{fraction:g}"
        encoder = folder / "encoder" / "last.ckpt"
        trained = train("encoder", "encoder", None, fraction, data, encoder.parent, updates)
        for way in ("encoder", *ways):
            if way == "alone" and fraction == 1.0:
                continue  # there is no rest
            if way != "encoder":
                trained = train("whole", way, encoder, fraction, data, folder / way.replace(" ", "-"), updates)
            row = rows[fraction, way] = measured(trained, samples)
            print(
                f"{100 * fraction:>12g} %  {way:<22}{row['now']:>8.3f}{row['median']:>9.3f}{row['p95']:>8.2f}"
                f"{row['frame MSE']:>12.2e}",
                flush=True,
            )
    out.mkdir(parents=True, exist_ok=True)
    table = {f"{100 * fraction:g} %, {way}": row for (fraction, way), row in rows.items()}
    (out / "tabletop_labels.json").write_text(json.dumps(table, indent=1))
    draw(rows, out / "tabletop_labels.png")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
