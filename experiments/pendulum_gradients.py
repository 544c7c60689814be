"""Remedies for gradients of chaotic motion: clipping, truncation, a growing horizon, a true start.

Trains trainers/pendulum.yaml for a short while with one choice changed at a time, and prints what came of it: the
lengths' error, and those of angles in held-out trials. The configuration's own choice is the first row.

    physvision generate pendulum --trials 2400 --out data/pendulum
    python experiments/pendulum_gradients.py [--updates 400] [--runs out/pendulum_gradients]
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from pathlib import Path

import torch
from jsonargparse import auto_cli
from pendulum_autoencoder import by_model, held_out, measured, train

CHOICES = {
    "as configured": (),
    "no clipping": ("--model.optimization.max_grad_norm", "null", "--model.optimization.max_physics_grad_norm", "null"),
    "truncated at 5 steps": ("--model.forecast.truncate", "5"),
    "horizon grows: 2, then 10": ("--model.forecast.horizon_schedule", "{0: 2, 1: 10}"),
    "from the encoder's state": ("--model.supervision.onward", "encoder"),
    "from it, truncated at 5": ("--model.supervision.onward", "encoder", "--model.forecast.truncate", "5"),
    "from it, horizon grows": (
        *("--model.supervision.onward", "encoder"),
        *("--model.forecast.horizon_schedule", "{0: 2, 1: 10}"),
    ),
    "from it, no clipping": (
        *("--model.supervision.onward", "encoder"),
        *("--model.optimization.max_grad_norm", "null", "--model.optimization.max_physics_grad_norm", "null"),
    ),
}
EPOCHS = 2


def main(data: str = "data/pendulum", updates: int = 400, runs: Path = Path("out/pendulum_gradients")) -> None:
    """Train a little with each choice.

    Args:
        data: the data set.
        updates: Updates of each of two epochs.
        runs: where trainings are kept.
    """
    torch.set_num_threads(1)
    batches = held_out(data, stride=20)
    print(f"{'':<28} {'lengths off, %':>14} {'rad 0s':>9} {'rad/s 0s':>9} {'rad 1s':>9} {'cpu s':>6}")
    for name, choice in CHOICES.items():
        options = ("--trainer.limit_train_batches", str(updates), "--trainer.limit_val_batches", "0", *choice)
        run = train("pendulum", runs / name.replace(" ", "_"), data, EPOCHS, options=options)
        result = measured(by_model(run.model), batches)
        lengths = run.model.engine.learned.lengths.detach()
        off = 100 * float((lengths / 3.0 - 1.0).abs().max())
        errors = [result[key] for key in ("state_error/0s", "velocity_error/0s", "state_error/1s")]
        print(f"{name:<28} {off:>14.2f} {' '.join(f'{x:>9.4f}' for x in errors)} {run.seconds:>6.0f}", flush=True)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
