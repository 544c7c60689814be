"""Billiards from few labels: 100, 25, 10 and 2 % of the samples, physics and an MLP (figure 4).

At reduced size: some hundred windows, the frames as they are (no disturbance), and what perception finds in a window is
kept, since it is the same in every epoch and every run. Physics learns from all samples, those without labels by their
frames alone; the MLP, which without true states has nothing to learn motion from, from labeled ones only, each so
much more often that all runs have equally many updates. One more run gives physics nothing but the 2 %.
Runs that were interrupted go on, those that are complete are not repeated.

    physvision generate billiards --trials 100 --out data/billiards-100
    python experiments/billiards_supervision.py [--data data/billiards-100] [--updates 1200] [--out out]
"""

# pyright: reportReturnType=false

from __future__ import annotations

import copy
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import torch
import yaml
from jsonargparse import auto_cli

from physvision.core import Coordinates, brightness
from physvision.core.resources import find
from physvision.datasets import DataModule, LabelSettings, WindowShape
from physvision.models import ObjectEncoder, build
from physvision.models.objects import ObjectViews
from physvision.trainers import PredictionTraining, Supervision
from physvision.trainers.commands import read_checkpoint

mpl.use("Agg")
from matplotlib import pyplot as plt

FRACTIONS = (1.0, 0.25, 0.1, 0.02)
BAR = 1.5
AHEAD, BATCH = 10, 8
LABELED_SHARE = 0.25  # of each epoch's samples at least, where labels are rare


@dataclass(frozen=True)
class Run:
    """One training, and its measures on held-out windows."""

    name: str
    labels: int
    updates: int
    seconds: float
    loss: float
    position: float
    frame: float


class Memory:
    """Cache of the outputs of an encoder's perception, for every window."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[torch.Tensor, ...]] = {}

    def attach(self, encoder: ObjectEncoder) -> None:
        """Let `encoder` look things up."""
        look = encoder.extract_views

        def remembered(frames: torch.Tensor) -> ObjectViews:
            keys = [hash(frame.numpy().tobytes()) for frame in frames]
            new = [index for index, key in enumerate(keys) if key not in self.known]
            if new:
                result = look(frames[new])
                parts = (result.images.bfloat16(), result.position, result.step, result.confidence)
                for row, index in enumerate(new):
                    self.known[keys[index]] = tuple(part[row].clone() for part in parts)
            rows = zip(*(self.known[key] for key in keys), strict=True)
            pictures, *rest = (torch.stack(row) for row in rows)
            return ObjectViews(pictures.float(), *rest)

        encoder.extract_views = remembered  # pyright: ignore[reportAttributeAccessIssue]


def configurations() -> dict[str, dict[str, Any]]:
    """Configurations of the two models, without disturbance."""
    small, mlp = (
        yaml.safe_load(find(f"{name}.yaml", "trainers").read_text())
        for name in ("billiards-small", "billiards-mlp-small")
    )
    physics = small["model"]["model"]
    physics["init_args"]["encoder"]["init_args"]["disturbance"] = None
    reference = copy.deepcopy(physics)
    reference["init_args"]["engine"] = mlp["model"]["model"]["init_args"]["engine"]
    return {"physics": physics, "MLP": reference}


def supervision_of(scale: float = 1.0, weight: float = 1.0, states: bool = True) -> Supervision:
    """The loss; squares end at an error of `scale` px, and `states` says whether predicted states count."""
    return Supervision(
        Coordinates(9, (2, 5, 8)),
        encoder_weight=10.0 * weight,
        physics_weight=0.1 * weight if states else 0.0,
        frame_weight=500.0,
        position_scale=scale,
        velocity_scale=3.0 * scale,
    )


def module_of(
    configuration: dict[str, Any], memory: Memory, supervision: Supervision, seed: int = 0
) -> PredictionTraining:
    torch.manual_seed(seed)
    model = build(configuration)
    assert isinstance(model.encoder, ObjectEncoder)
    memory.attach(model.encoder)
    return PredictionTraining(
        model,
        supervision,
        rendered_frames="last",
        learning_rate=1e-3,
        encoder_learning_rate=3e-4,
        max_grad_norm=5.0,
        warmup_updates=50,
        eval_steps=(0, AHEAD),
    )


def source(data: str, stride: int, fraction: float, labeled_only: bool) -> DataModule:
    return DataModule(
        data,
        BATCH,
        WindowShape(horizon=AHEAD, stride=stride),
        LabelSettings(fraction, batch_fraction=1.0 if labeled_only else LABELED_SHARE),
        memory=True,
    )


def train(
    name: str,
    configuration: dict[str, Any],
    data: DataModule,
    updates: int,
    folder: Path,
    memory: Memory,
    supervision: Supervision | None = None,
    seed: int = 0,
) -> Run:
    """Train, go on, or only load what is complete; then measure."""
    # Lightning after physvision: kornia, which both bring in, wants to come first.
    from lightning import Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    last, spent = folder / "last.ckpt", folder / "seconds.json"
    seconds = json.loads(spent.read_text()) if spent.exists() else 0.0
    module = module_of(configuration, memory, supervision or supervision_of(), seed)
    if not last.exists() or read_checkpoint(last)["global_step"] < updates:
        keep = ModelCheckpoint(folder, save_last=True, every_n_train_steps=100)
        data.setup("fit")
        trainer = Trainer(
            accelerator="cpu",
            max_steps=updates,
            max_epochs=-1,
            callbacks=[keep],
            logger=False,
            limit_val_batches=0,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        began = time.process_time()
        trainer.fit(module, data, ckpt_path=str(last) if last.exists() else None)
        seconds += time.process_time() - began
        spent.write_text(json.dumps(seconds))
    module.load_state_dict(read_checkpoint(last)["state_dict"])
    labels = int(data.windows("train").labeled.sum())
    return Run(name, labels, updates, seconds, *measured(module, data))


@torch.no_grad()
def measured(module: PredictionTraining, data: DataModule) -> tuple[float, float, float]:
    """Validation loss, mean error of positions after ten frames (px), and mean square error of that frame."""
    module.eval()
    data.setup("test")
    losses, positions, frames = [], [], []
    for batch in data.test_dataloader():
        forecast = module.model(batch.observed, AHEAD, (AHEAD,))
        losses.append(module.supervision(forecast, batch)["loss"])
        away = (forecast.trajectory.final.q - batch.trajectory.final.q).unflatten(1, (-1, 3))[..., :2]
        positions.append(away.norm(dim=-1).mean())
        truth = brightness(batch.frames[:, -1])
        frames.append((forecast.frames[:, 0].clamp(0, 1) - truth).square().mean())
    return tuple(float(torch.stack(values).mean()) for values in (losses, positions, frames))


def draw(runs: list[Run], path: Path) -> None:
    figure, grid = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for axes, field, label in zip(grid, ("loss", "frame"), ("held-out loss", "held-out frame error"), strict=True):
        for name in ("physics", "MLP"):
            own = [run for run in runs if run.name == name]
            axes.plot([run.labels for run in own], [getattr(run, field) for run in own], marker="o", label=name)
        (alone,) = (run for run in runs if run.name == "physics, labeled only")
        axes.plot([alone.labels], [getattr(alone, field)], "x", color="C3", label=alone.name)
        axes.set(xscale="log", yscale="log", xlabel="labeled samples", ylabel=label)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(
    data: str = "data/billiards-100",
    updates: int = 1200,
    stride: int = 20,
    runs: Path = Path("out/billiards_supervision"),
    out: Path = Path("out"),
) -> None:
    """Train with fewer and fewer labels.

    Args:
        data: the data set.
        updates: Updates of each training.
        stride: frames between the starts of windows.
        runs: where trainings are kept.
        out: folder of the figure.
    """
    torch.set_num_threads(1)
    memory, result = Memory(), configurations()
    minimum = FRACTIONS[-1]
    plan = [(name, fraction, name == "MLP") for fraction in FRACTIONS for name in result]
    plan.append(("physics, labeled only", minimum, True))
    done = []
    print(f"{'':<24} {'labels':>7} {'updates':>8} {'cpu s':>7} {'loss':>9} {'px':>8} {'frame MSE':>10}")
    for name, fraction, labeled_only in plan:
        folder = runs / f"{name}-{fraction}".replace(", ", "-").replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        kind = "MLP" if name == "MLP" else "physics"
        run = train(name, result[kind], source(data, stride, fraction, labeled_only), updates, folder, memory)
        done.append(run)
        print(
            f"{name:<24} {run.labels:>7} {run.updates:>8} {run.seconds:>7.0f} {run.loss:>9.3f} {run.position:>8.3f} "
            f"{run.frame:>10.2e}",
            flush=True,
        )
    draw(done, out / "billiards_supervision.png")
    by = {(run.name, run.labels): run for run in done}
    for (name, labels), run in by.items():
        if name == "physics":
            reference = by["MLP", labels]
            verdict = "met" if run.loss < reference.loss else "MISSED"
            print(f"{labels} labels: MLP's loss over physics': {reference.loss / run.loss:.2f}; bar 1: {verdict}")
    alone = done[-1]
    ratio = alone.frame / by["physics", alone.labels].frame
    verdict = "met" if ratio >= BAR else "MISSED"
    print(f"{alone.labels} labels, frame error without over with the unlabeled: {ratio:.2f}; bar {BAR}: {verdict}")
    print(f"figure: {out / 'billiards_supervision.png'}")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
