"""Gradient of the encoder that comes through the engine: proof that physics carries the signal of the weak loss."""

from __future__ import annotations

from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor

from physvision.datasets import Sample
from physvision.trainers.module import PredictionTraining

_INTERVAL = 200  # updates between two measurements


def engine_gradient(module: PredictionTraining, sample: Sample, steps: int | None = None) -> dict[str, Tensor]:
    """Measure the encoder's gradient from the weak loss of unlabeled samples, as far as it comes through the engine.

    The gradient of the frame loss is cut at the states and properties that the engine starts from, and pulled back
    from there to the encoder, so that nothing that bypasses the engine counts.

    Args:
        module: Training with the model and its loss.
        sample: Batch with unlabeled samples.
        steps: Length of the predictions; that of the current epoch if not given.

    Returns:
        `engine`, the norm of that gradient, `total`, the norm of the encoder's gradient of the whole loss, and their
        ratio, `share`.
    """
    parameters = [value for value in module.model.encoder.parameters() if value.requires_grad]
    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        terms, _ = module.losses(sample, module.steps_of(sample) if steps is None else steps)
        total = _norm(torch.autograd.grad(terms["loss"], parameters, allow_unused=True))
        unlabeled = ~sample.labeled
        engine = torch.zeros_like(total)
        if bool(unlabeled.any()):
            rows = torch.nonzero(unlabeled)[:, 0].tolist()
            weak, entries = module.weak_loss(sample[rows], module.steps_of(sample) if steps is None else steps)
            scale = len(rows) / sample.batch
            cotangents = torch.autograd.grad(weak, entries, allow_unused=True, retain_graph=True)
            pairs = [(entry, bar) for entry, bar in zip(entries, cotangents, strict=True) if bar is not None]
            outputs, bars = [entry for entry, _ in pairs], [scale * bar for _, bar in pairs]
            engine = _norm(torch.autograd.grad(outputs, parameters, bars, allow_unused=True))
    return {"engine": engine, "total": total, "share": engine / total.clamp_min(1e-30)}


def _norm(gradients: tuple[Tensor | None, ...]) -> Tensor:
    return torch.stack([torch.zeros(()), *(bar.norm().cpu() for bar in gradients if bar is not None)]).norm()


class EngineGradientShare(Callback):
    """Logs the share of the encoder's gradient that comes through the engine from unlabeled samples."""

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Measure on the batch that comes next."""
        assert isinstance(pl_module, PredictionTraining)
        # From the first update on that loggers write, which a short training has, too.
        steps: int = trainer.global_step + 1 - trainer.log_every_n_steps  # pyright: ignore[reportAttributeAccessIssue]
        if steps % _INTERVAL == 0 and bool((~batch.labeled).any()):
            measured = engine_gradient(pl_module, pl_module.prepare(batch))
            pl_module.log_dict({f"gradient/{name}": value for name, value in measured.items()})
