"""The pendulum seen ahead: physics against learned baselines, all trained on the same data for about the same time.

Trains the configurations of trainers/ (a run that was interrupted goes on, one that is complete is not repeated), then
predicts held-out trials up to 3 s ahead. Beside them: the last frame given, held; and the decoder fed with the true
state, the best that this decoder can do. Errors are means over all starts, of angles the shorter way, in rad, and
medians, for a few starts rule the means.

    physvision generate pendulum --trials 2400 --out data/pendulum
    python experiments/pendulum_autoencoder.py [--epochs 3] [--seeds 5] [--runs out/pendulum_runs]

With `--seeds` the physics layer learns that many times and the lengths of each are printed. `--epochs 1 --updates 2000
--runs out/pendulum_short` compares after a fifth of the time, when the baselines know less of the motion.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import Coordinates, Trajectory, brightness
from physvision.datasets import DataModule, Sample, WindowShape
from physvision.models import Forecast, PredictiveAutoencoder, load
from physvision.models.checkpoints import read_checkpoint
from physvision.trainers import PredictionMetrics

SECOND, DT = 20, 0.05
STEPS = (0, SECOND, 3 * SECOND)
# Columns of a table: measures, and how they are called there.
STATES = {"state_error": "rad", "state_error_median": "median", "velocity_error": "rad/s"}
MODELS = {"physics layer": "pendulum", "MLP": "pendulum_mlp", "graph network": "pendulum_graph"}
# An update of a graph network costs more, so it gets fewer, if not as few as the same time allows.
COSTS = {"pendulum_graph": 4 / 3}

Predict = Callable[[Sample], Forecast]


@dataclass(frozen=True)
class Run:
    """A trained model, and what it cost: updates, and processor seconds."""

    model: PredictiveAutoencoder
    updates: int
    seconds: float


def train(name: str, folder: Path, data: str, epochs: int, seed: int = 0, options: tuple[str, ...] = ()) -> Run:
    """Train trainers/NAME.yaml in `folder`, or go on, or only load what is complete."""
    arguments = ["fit", "--config", f"{name}.yaml", "--data.path", str(Path(data).resolve())]
    arguments += ["--trainer.max_epochs", str(epochs), "--seed_everything", str(seed), "--data.seed", str(seed)]
    arguments += options
    folder.mkdir(parents=True, exist_ok=True)
    last, record = folder / "out" / name / "checkpoints" / "last.ckpt", folder / "run.json"
    retained = json.loads(record.read_text()) if record.exists() else {"arguments": arguments, "seconds": 0.0}
    if retained["arguments"] != arguments:
        raise SystemExit(
            f"{folder} holds another run, physvision {' '.join(retained['arguments'])}; choose other --runs"
        )
    record.write_text(json.dumps(retained))
    if not last.exists() or read_checkpoint(last)["epoch"] + 1 < epochs:
        resume = ["--ckpt_path", str(last.resolve())] if last.exists() else []
        code = "import sys; from physvision.cli import main; sys.exit(main(sys.argv[1:]))"
        began = children_seconds()
        subprocess.run([sys.executable, "-c", code, *arguments, *resume], cwd=folder, check=True)
        retained["seconds"] += children_seconds() - began
        record.write_text(json.dumps(retained))
    return Run(load(last), read_checkpoint(last)["global_step"], retained["seconds"])


def children_seconds() -> float:
    """Processor seconds of child processes so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def held_out(data: str, stride: int = 10) -> list[Sample]:
    """Batches of the test split that reach 3 s ahead."""
    source = DataModule(data, 64, WindowShape(horizon=STEPS[-1], stride=stride))
    source.setup("test")
    return list(source.test_dataloader())


def measured(predict: Predict, batches: list[Sample]) -> dict[str, float]:
    """The measures of what `predict` makes of each batch."""
    metrics = PredictionMetrics(Coordinates(3, (0, 1, 2)), STEPS, DT)
    with torch.no_grad():
        for batch in batches:
            metrics.update(predict(batch), batch)
    return {name: float(value) for name, value in metrics.compute().items()}


def by_model(model: PredictiveAutoencoder) -> Predict:
    return lambda batch: model(batch.observed, STEPS[-1], STEPS)


def by_holding(batch: Sample) -> Forecast:
    """The last frame and position, held; at rest."""
    q = batch.ahead.q[:, :1].expand(-1, STEPS[-1] + 1, -1)
    frames = brightness(batch.frames_at([0])).expand(-1, len(STEPS), -1, -1, -1)
    return Forecast(Trajectory(q, torch.zeros_like(q)), STEPS, frames)


def by_truth(model: PredictiveAutoencoder) -> Predict:
    """The true states, decoded."""
    return lambda batch: Forecast(batch.ahead, STEPS, model.decode(batch.ahead, STEPS))


def by_engine(model: PredictiveAutoencoder) -> Predict:
    """The engine alone: started from the true state."""

    def predict(batch: Sample) -> Forecast:
        trajectory = model.simulate(batch.ahead.state(0), STEPS[-1])
        return Forecast(trajectory, STEPS, model.decode(trajectory, STEPS))

    return predict


def row(name: str, errors_found: dict[str, float], run: Run | None = None) -> str:
    cost = f"{run.updates:>8} {run.seconds:>8.0f}" if run else f"{'':>8} {'':>8}"
    states = [errors_found[f"{kind}/{at}"] for at in ("0s", "1s", "3s") for kind in STATES]
    frames = [errors_found[f"{kind}/1s"] for kind in ("psnr", "ssim", "frame_error_mean")]
    return " ".join([f"{name:<34}", cost, *(f"{x:>9.4f}" for x in [*states, *frames])])


def heading() -> str:
    names = [f"{kind} {at}" for at in ("0s", "1s", "3s") for kind in STATES.values()]
    columns = " ".join(f"{name:>9}" for name in [*names, "PSNR 1s", "SSIM 1s", "MSE 1s"])
    return f"{'':<34} {'updates':>8} {'cpu s':>8} {columns}"


def main(
    data: str = "data/pendulum",
    epochs: int = 3,
    updates: int | None = None,
    seeds: int = 1,
    runs: Path = Path("out/pendulum_runs"),
) -> None:
    """Train the models and compare their predictions.

    Args:
        data: the data set.
        epochs: Epochs of each training.
        updates: Updates of each epoch; those of the configurations by default.
        seeds: Seeds of the physics layer.
        runs: where trainings are kept.
    """
    torch.set_num_threads(1)

    def trained_as(file: str, folder: Path, seed: int = 0) -> Run:
        count = None if updates is None else str(round(updates / COSTS.get(file, 1)))
        options = () if count is None else ("--trainer.limit_train_batches", count)
        return train(file, folder, data, epochs, seed, options)

    trained = {name: trained_as(file, runs / file) for name, file in MODELS.items()}
    batches = held_out(data)
    print(f"{sum(batch.batch for batch in batches)} starts in held-out trials")
    print(heading())
    errors = {name: measured(by_model(run.model), batches) for name, run in trained.items()}
    for name, run in trained.items():
        print(row(name, errors[name], run))
    print(row("last frame, held", measured(by_holding, batches)))
    print(row("decoder, true states", measured(by_truth(trained["physics layer"].model), batches)))
    for name, run in trained.items():
        print(row(f"{name}, from true states", measured(by_engine(run.model), batches)))
    for at, bar in (("1s", 2.0), ("3s", 1.5)):
        minimum = min(errors[name][f"state_error/{at}"] for name in errors if name != "physics layer")
        ratio = minimum / errors["physics layer"][f"state_error/{at}"]
        print(f"best baseline over physics at {at}: {ratio:.2f}; bar {bar}: {'met' if ratio >= bar else 'MISSED'}")
    for seed in range(seeds):
        run = trained["physics layer"] if seed == 0 else trained_as("pendulum", runs / f"seed{seed}", seed)
        lengths: Tensor = run.model.engine.learned.lengths.detach()
        error = 100 * float((lengths / 3.0 - 1.0).abs().max())
        results = [round(length, 4) for length in lengths.tolist()]
        print(f"seed {seed}: lengths {results} m, off by {error:.2f} %, {run.seconds:.0f} s")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
