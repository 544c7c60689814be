"""Learning from pixels, from pixels with the camera's gradient cut, and from the state, tuned alike.

All three are trained as trainers/pendulum-pixels-small.yaml has it. Once its starts are as wide as they will be, and at
the end, each is tried after so many updates from twenty starts that training does not draw: 75 s, of which the pole has
to be upright for the last 60. A training that was interrupted goes on from its last checkpoint.

    python experiments/pixels_compare.py [--kind frames|cut|state] [--updates 400] [--every 40] [--out out]
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from jsonargparse import auto_cli

import physvision  # noqa: F401  makes lightning importable beside a torch without CUDA

from lightning import Callback, LightningModule, Trainer  # isort: skip
from lightning.pytorch.callbacks import ModelCheckpoint

from physvision.control.pixels import FramePolicy, StateCartPoleTask, run_trials, task_for_policy
from physvision.core import resources
from physvision.core.serialization import build_arguments, overlay
from physvision.trainers import PendulumTraining

KINDS: dict[str, dict[str, Any]] = {
    "frames": {},
    "cut": {"observation": {"through_camera": False}},
    "state": {"observation": {"kind": "state"}},
}
LAST = 0.8  # share of a trial in which the pole has to be upright


class Tried(Callback):
    """Tries the policy after each so many epochs, once its starts hang, and at the end."""

    def __init__(self, kind: str, epochs: int, seconds: float) -> None:
        self.kind, self.epochs, self.seconds = kind, epochs, seconds

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Print how many poles stay upright."""
        assert isinstance(pl_module, PendulumTraining)
        done, ends = trainer.current_epoch + 1, trainer.current_epoch + 1 == trainer.max_epochs
        if not ends and (done % self.epochs or float(pl_module.progress) < 1):
            return
        start = time.process_time()
        policy = pl_module.policy
        task = task_for_policy(policy) if isinstance(policy, FramePolicy) else StateCartPoleTask()
        result = run_trials(task, policy, 20, self.seconds, LAST * self.seconds)
        worst = result.angles[:, -round(LAST * result.angles.shape[1]) :].abs().amax(1)
        updates = trainer.global_step
        print(
            f"{self.kind:<8}{updates:>6} updates{updates * pl_module.batch:>7} episodes{float(pl_module.spent):>7.0f} s"
            f"{int(result.upright.sum()):>4} of 20 upright; largest angle{float(worst.median()):>7.3f} rad, from"
            f"{float(result.rise_times.median()):>7.2f} s on, medians (tried in {time.process_time() - start:.0f} s)",
            flush=True,
        )


def main(
    kind: Literal["frames", "cut", "state"] = "frames", updates: int = 400, every: int = 40, seconds: float = 75.0,
    out: Path = Path("out/pixels-compare"),
) -> None:  # fmt: skip
    """Train one kind of policy.

    Args:
        kind: Observation of the policy, and path of the gradient.
        updates: Updates of eight episodes each.
        every: updates between trials once starts are as wide as they will be.
        seconds: Duration of a trial, s.
        out: folder of checkpoints.
    """
    torch.set_num_threads(1)
    configuration = yaml.safe_load(resources.find("pendulum-pixels-small.yaml", "trainers").read_text())["model"]
    module = PendulumTraining(**build_arguments(PendulumTraining, overlay(configuration, KINDS[kind]), "model"))
    folder = out / kind
    keep = ModelCheckpoint(dirpath=folder, save_last=True, save_on_train_epoch_end=True)
    callbacks = [keep, Tried(kind, max(1, every // module.updates), seconds)]
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
    trainer = Trainer(
        default_root_dir=folder, max_epochs=updates // module.updates, accelerator="cpu", callbacks=callbacks, **quiet
    )
    last = folder / "last.ckpt"
    trainer.fit(module, ckpt_path=last if last.is_file() else None)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
