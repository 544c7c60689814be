"""Balls on a table from few labels (figure 4): 100, 25, 10 and 2 % of trials, and what the physics adds.

For each fraction of labeled trials an encoder is trained on labels alone (`tabletop-encoder.yaml` or
`billiards-encoder.yaml`; its row comes first, with a decoder that is not trained). From its weights the whole model is
trained on (`tabletop.yaml` or `billiards-3.yaml`) in several ways, with equally many updates each:

- `rest`: labeled trials and all others, whose frames teach the encoder through the engine;
- `alone`: labeled trials alone;
- `no engine gradient`: as `rest`, but no gradient passes from the engine to the encoder's state and properties;
- `given frame`: as `rest`, but the frame that is compared is the last given one, so that the engine has no part in it;
- `MLP`: as `rest`, with a network of 2 × 100 in place of the engine, which is given the properties as well;
- `MLP alone`: as `alone`, with that network;
- `from random weights`: as `rest`, but not from the weights of the encoder's training; runs if it is named.

Without any labels (`--fractions "[0.0]"`) the encoder learns from synthetic samples (`stages.synthetic`): random
motions that the model's own engine and camera draw on the backgrounds of the trials.

Runs that were interrupted go on, and those that are complete are not repeated. Errors are those of balls in windows of
held-out trials, ten frames ahead, from the state that the encoder reads in the last three frames, and from the motion
of the engine that is closest to what it reads in all given frames.

    physvision generate tabletop --trials 1250 --out data/tabletop
    python experiments/few_labels.py [--task billiards] [--fractions "[0.1, 0.02]"] [--ways "[rest, alone]"] [--data …]
    python experiments/few_labels.py --fractions "[0.0]" --ways "[rest, no engine gradient, from random weights]"
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false

from __future__ import annotations

import gc
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import torch
import yaml
from claims import Claim, write_claims
from held_out import held_out
from jsonargparse import auto_cli
from mlp_motion import MlpMotion
from torch import Tensor

from physvision.core import State, Trajectory, brightness
from physvision.datasets import Sample, WindowShape
from physvision.models.object_order import aligned
from physvision.trainers import PredictionTraining
from physvision.trainers.batches import context_of
from physvision.trainers.checkpoints import load_weights
from physvision.trainers.commands import build_training, read_checkpoint

mpl.use("Agg")
from matplotlib import pyplot as plt

AHEAD = 10
FRACTIONS = (1.0, 0.25, 0.1, 0.02)
FROM_LABELS = ("rest", "alone", "no engine gradient", "given frame", "MLP", "MLP alone")
WAYS = (*FROM_LABELS, "from random weights")


@dataclass(frozen=True)
class Task:
    """Data set and the configurations that learn it.

    Attributes:
        whole: Configuration of the whole model.
        encoder: Configuration of its first part, the encoder alone.
        data: Folder of the data set.
        given: Names of the properties that are known in every sample.
    """

    whole: str
    encoder: str
    data: Path
    given: tuple[str, ...] = ()


TASKS = {
    "tabletop": Task("tabletop", "tabletop-encoder", Path("data/tabletop"), ("walls",)),
    "billiards": Task("billiards-3", "billiards-encoder", Path("data/billiards")),
}


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
    elif way in ("MLP", "MLP alone"):
        encoder = model.encoder
        has_properties = encoder.properties is not None
        model.motion = MlpMotion(encoder.slots, float(encoder.size[0]), model.engine.dt, has_properties)
        model.simulate = by_network


def _configuration(name: str) -> dict:
    return yaml.safe_load((Path("trainers") / f"{name}.yaml").read_text())


def _scaled(values: Mapping, scale: float) -> dict:
    """Numbers of updates among the values of a configuration, times the scale."""
    return {name: round(value * scale) for name, value in values.items() if name.endswith("_updates")}


def train(
    task: Task,
    way: str,
    weights: Path | None,
    fraction: float,
    folder: Path,
    updates: int,
    supervision: Mapping[str, object] | None = None,
) -> PredictionTraining:
    """Train with so many updates an epoch, go on, or only load what is complete. Stages and ramp scale with them.

    Args:
        task: Data set and configurations.
        way: Way of training, of those above.
        weights: Weights to start from; random ones if None.
        fraction: Fraction of labeled trials.
        folder: Folder of the checkpoint.
        updates: Number of updates of an epoch.
        supervision: Options of the supervision that differ from the configuration's.
    """
    gc.collect()  # trainings of before hold their data in cycles of references
    whole, encoder = _configuration(task.whole), _configuration(task.encoder)
    scale = updates / whole["trainer"]["limit_train_batches"]
    folder.mkdir(parents=True, exist_ok=True)
    last, spent = folder / "last.ckpt", folder / "seconds.json"
    batch_fraction = 1.0 if way in ("alone", "MLP alone", "encoder") else whole["data"]["labels"]["batch_fraction"]
    synthetic = way == "encoder" and not fraction
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
            "stages": {
                "weights": None,
                "synthetic": synthetic,
                **(_scaled(encoder["model"]["stages"], scale) if way == "encoder" else {}),
            },
            "supervision": {**_scaled(whole["model"]["supervision"], scale), **(supervision or {})},
        },
        "data": {
            "path": str(task.data),
            "memory": True,
            "labels": {"fraction": fraction, "batch_fraction": batch_fraction if fraction else 0.0},
        },
    }
    overlay = folder / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(values))
    names = [task.whole, *([task.encoder] if way == "encoder" else [])]
    layers = [*(str(Path("trainers") / f"{name}.yaml") for name in names), str(overlay)]
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
    model = module.model
    errors: dict[str, list[Tensor]] = {}
    for raw in samples:
        sample = module.prepare(raw)
        context, true = context_of(sample), sample.ahead
        assert true is not None
        places = [true.q[:, step].unflatten(1, (-1, 3))[..., :2] for step in (0, AHEAD)]
        present = (sample.properties or {}).get("present", torch.ones_like(places[0][..., 0])) > 0.5
        pose = context.extrinsics_at(sample.given - 1, (AHEAD,)) if context is not None else None
        for fitted in (False, True):
            if fitted and hasattr(model, "motion"):
                continue  # the motion that would be fitted is the engine's
            read = model.observe(sample.observed, context, fitted=fitted)
            # Labels number the balls; which slots hold one is for the model to find.
            observation = aligned(read, true.state(0), present, torch.ones_like(sample.labeled))
            path = model.simulate(model.initial_state(observation), AHEAD, None, observation.properties)
            image = model.decode(path, (AHEAD,), observation.properties, observation.appearance, pose)[:, 0]
            prefix = "fitted, " if fitted else ""
            for name, place, step in zip(("now", "ahead"), places, (0, AHEAD), strict=True):
                apart = (path.q[:, step].unflatten(1, (-1, 3))[..., :2] - place).norm(dim=-1)[present]
                errors.setdefault(prefix + name, []).append(apart)
            error = (image.clamp(0, 1) - brightness(sample.frames_at((AHEAD,)))[:, 0]).square()
            errors.setdefault(prefix + "frame MSE", []).append(error.flatten())
    merged = {name: torch.cat(parts) for name, parts in errors.items()}
    return {name: float(values.mean() if "MSE" in name else values.median()) for name, values in merged.items()} | {
        f"{name}, 95 %": float(values.quantile(0.95)) for name, values in merged.items() if "MSE" not in name
    }


def draw(rows: dict[tuple[float, str], dict[str, float]], path: Path) -> None:
    """Errors against the fraction of labeled trials, a line for each way."""
    figure, grid = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for axes, field, label in zip(grid, ("ahead", "frame MSE"), ("ball position, px", "frame MSE"), strict=True):
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
    task: str = "tabletop",
    fractions: tuple[float, ...] = FRACTIONS,
    ways: tuple[str, ...] = FROM_LABELS,
    batches: int = 16,
    updates: int = 500,
    data: Path | None = None,
    runs: Path = Path("out/few_labels"),
    out: Path = Path("out"),
) -> None:
    """Train with fewer and fewer labels, in all ways, and compare.

    Args:
        task: Name of the task, "tabletop" or "billiards".
        fractions: Fractions of labeled trials.
        ways: Ways of training the whole model, of those above.
        batches: Number of held-out batches of 16 windows.
        updates: Number of updates of an epoch; the configurations say how many epochs each part has.
        data: Folder of the data set; that of the task if not given.
        runs: Folder of the trainings.
        out: Folder of figure and numbers.
    """
    torch.set_num_threads(1)
    selection = TASKS[task] if data is None else replace(TASKS[task], data=data)
    frames = _configuration(selection.whole)["data"]["shape"]["frames_in"]
    samples = list(
        held_out(selection.data, WindowShape(frames, AHEAD, 20), batches, given_properties=list(selection.given))
    )
    rows: dict[tuple[float, str], dict[str, float]] = {}
    columns = ("now", "ahead", "ahead, 95 %", "fitted, ahead", "fitted, ahead, 95 %", "frame MSE")
    print(f"{'labeled trials':<16}{'way':<22}" + "".join(f"{name:>20}" for name in columns))
    for fraction in fractions:
        folder = runs / task / f"{fraction:g}"
        encoder = folder / "encoder" / "last.ckpt"
        trained = train(selection, "encoder", None, fraction, encoder.parent, updates)
        for way in ("encoder", *ways):
            if "alone" in way and fraction in (0.0, 1.0):
                continue  # there is no rest, or nothing else
            if way != "encoder":
                weights = None if way == "from random weights" else encoder
                trained = train(selection, way, weights, fraction, folder / way.replace(" ", "-"), updates)
            row = rows[fraction, way] = measured(trained, samples)
            values = "".join(f"{row[name]:>20.4g}" if name in row else f"{'':>20}" for name in columns)
            print(f"{100 * fraction:>12g} %  {way:<22}{values}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    draw(rows, out / f"few_labels_{task}.png")
    claims = [
        Claim(f"{task}, {100 * fraction:g} %, {way}: {name}", value, "" if "MSE" in name else "px", seeds=(0,))
        for (fraction, way), row in rows.items()
        for name, value in row.items()
    ]
    write_claims(__file__, claims)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
