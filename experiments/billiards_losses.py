"""Balls on a clean table: which frame loss, and what the losses of states are for.

Tests what *End-to-End Differentiable Physics* says of its loss: an L1 or an L2 loss of the frames, training without
the losses of states (L_enc and L_phys), and a network of two layers in place of the engine. All start from one encoder
that learned from labels on 10 % of the trials, and are trained equally long.

    physvision generate billiards --trials 600 --out data/billiards
    python experiments/billiards_losses.py [--updates 100] [--data data/billiards]
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from claims import Claim, write_claims
from few_labels import AHEAD, TASKS, measured, train
from held_out import held_out
from jsonargparse import auto_cli

from physvision.datasets import WindowShape

FRACTION = 0.1
NO_STATES = {"encoder_weight": 0.0, "physics_weight": 0.0}
# Way of training, as in few_labels.py, and options of the supervision.
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "squares of pixels": ("rest", {"frame_loss": {"kind": "l2"}}),
    "absolute errors of pixels": ("rest", {"frame_loss": {"kind": "l1"}}),
    "squares, from coarse to fine": ("rest", {"frame_loss": {"kind": "multi_scale"}}),
    "squares, no losses of states": ("rest", {"frame_loss": {"kind": "l2"}, **NO_STATES}),
    "absolute errors, no losses of states": ("rest", {"frame_loss": {"kind": "l1"}, **NO_STATES}),
    "network, squares": ("MLP", {"frame_loss": {"kind": "l2"}}),
    "network, squares, no losses of states": ("MLP", {"frame_loss": {"kind": "l2"}, **NO_STATES}),
    "network, absolute errors, no losses of states": ("MLP", {"frame_loss": {"kind": "l1"}, **NO_STATES}),
}


def main(
    updates: int = 100,
    batches: int = 16,
    data: Path | None = None,
    runs: Path = Path("out/billiards_losses"),
) -> dict[str, dict[str, float]]:
    """Train, measure and print.

    Args:
        updates: Number of updates of an epoch; the configurations say how many epochs each part has.
        batches: Number of held-out batches of 16 windows.
        data: Folder of the data set; that of the task if not given.
        runs: Folder of the trainings.
    """
    torch.set_num_threads(1)
    task = TASKS["billiards"] if data is None else replace(TASKS["billiards"], data=data)
    samples = list(held_out(task.data, WindowShape(8, AHEAD, 20), batches))
    encoder = runs / "encoder"
    start = train(task, "encoder", None, FRACTION, encoder, updates)
    rows = {"encoder alone": measured(start, samples)}
    columns = ("now", "ahead", "ahead, 95 %", "frame MSE")
    print(f"{'':<48}" + "".join(f"{name:>14}" for name in columns))
    for name, (way, options) in VARIANTS.items():
        folder = runs / name.replace(", ", "-").replace(" ", "-")
        trained = train(task, way, encoder / "last.ckpt", FRACTION, folder, updates, options)
        rows[name] = measured(trained, samples)
        print(f"{name:<48}" + "".join(f"{rows[name][column]:>14.4g}" for column in columns), flush=True)
    claims = [
        Claim(f"balls on a clean table, {name}: {column}", row[column], "" if "MSE" in column else "px", seeds=(0,))
        for name, row in rows.items()
        for column in columns
    ]
    write_claims(__file__, claims)
    return rows


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
