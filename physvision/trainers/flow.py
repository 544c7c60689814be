"""Training of the optical-flow network on synthetic pairs, rendered on the fly."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.nn import functional
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader

from physvision.core.checks import check_count, check_positive
from physvision.datasets.loading import ResumableDataModule, ResumableLoader
from physvision.datasets.sampling import EndlessSampler
from physvision.perception.flow import PyramidFlow, endpoint_error
from physvision.perception.synthetic_flow import FlowPairs, FlowSample
from physvision.trainers.resuming import ResumableTraining

_SOFT = 1e-2  # px: smaller errors count by their square
# Error of an object's mean flow that counts as one, and below which errors count by their square, px.
_OBJECT_SCALE = 0.1
# Smallest area of an object that counts, px².
_MIN_AREA = 5.0
_WARMUP_FRACTION = 0.1  # of the updates, in which the learning rate rises


class FlowTraining(ResumableTraining):
    """Trains a `PyramidFlow` by the end-point error at all its levels, in pixels of the finest."""

    def __init__(
        self,
        network: PyramidFlow,
        learning_rate: float = 2e-3,
        shapes: float = 5.0,
        object_weight: float = 0.0,
    ) -> None:
        """Choose network and learning rate.

        Args:
            network: Network to train.
            learning_rate: Peak learning rate.
            shapes: Weight of pixels of shapes; the background has weight 1.
            object_weight: Weight of the error of each shape's mean flow. What uses flow as the motion of objects needs
                that mean: the distance of single pixels rewards the flow of most of them.
        """
        super().__init__()
        self.network = network
        self.learning_rate, self.shapes = check_positive("learning_rate", learning_rate), shapes
        self.object_weight = object_weight

    def training_step(self, batch: FlowSample, batch_idx: int) -> Tensor:
        """The loss of a batch."""
        flows = self.network.pyramid(batch.first, batch.second)
        weight = 1 + (self.shapes - 1) * batch.shapes.sum(1, True).clamp_max(1.0)
        # The finest level is what is used, and the only one with all of the truth.
        terms = [2 * _robust(flows[-1], batch.flow, weight)]
        for above, flow in enumerate(reversed(flows[:-1]), 1):
            scale = 2**above
            truth = functional.avg_pool2d(batch.flow, scale) / scale
            terms.append(scale * _robust(flow, truth, functional.avg_pool2d(weight, scale)))
        if self.object_weight:
            errors = object_errors(flows[-1], batch) / _OBJECT_SCALE
            terms.append(self.object_weight * functional.smooth_l1_loss(errors, torch.zeros_like(errors)))
        loss = torch.stack(terms).sum()
        self.log("train/loss", loss.detach(), prog_bar=True)
        return loss

    def validation_step(self, batch: FlowSample, batch_idx: int) -> None:
        """Log the end-point error of all pixels and of those that show a shape, and that of shapes' mean flow, px."""
        flow = self.network(batch.first, batch.second)
        error = endpoint_error(flow, batch.flow)
        shown = batch.shapes.sum(1).clamp_max(1.0)
        size = len(batch.first)
        self.log("validation/error", error.mean(), prog_bar=True, batch_size=size, sync_dist=True)
        on_shapes = (error * shown).sum() / shown.sum().clamp_min(1)
        of_objects = object_errors(flow, batch).norm(dim=-1).mean()
        self.log("validation/error_objects", of_objects, prog_bar=True, batch_size=size, sync_dist=True)
        self.log("validation/error_shapes", on_shapes, prog_bar=True, batch_size=size, sync_dist=True)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Use AdamW with a one-cycle schedule."""
        optimizer = AdamW(self.network.parameters(), self.learning_rate, weight_decay=1e-4)
        total = int(self.trainer.estimated_stepping_batches)
        schedule = OneCycleLR(optimizer, self.learning_rate, total_steps=total, pct_start=_WARMUP_FRACTION)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Save the network's configuration beside its weights."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["flow"] = {"levels": self.network.levels, "width": self.network.width}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Resume with the schedule of this run, which may have more epochs than the one that was saved."""
        super().on_load_checkpoint(checkpoint)
        for schedule in checkpoint.get("lr_schedulers", []):
            for name in ("total_steps", "_schedule_phases"):
                schedule.pop(name, None)


def object_errors(flow: Tensor, sample: FlowSample) -> Tensor:
    """Error of the mean flow of each visible shape, (shapes, 2), px."""
    area = sample.shapes.sum((2, 3))
    errors = torch.einsum("bkhw,bchw->bkc", sample.shapes, flow - sample.flow) / area.clamp_min(1.0)[..., None]
    return errors[area > _MIN_AREA]


def _robust(flow: Tensor, truth: Tensor, weight: Tensor) -> Tensor:
    """Mean weighted distance, smooth at zero."""
    distance = ((flow - truth).square().sum(1) + _SOFT**2).sqrt()
    return (distance * weight[:, 0]).mean()


class FlowData(ResumableDataModule[FlowSample]):
    """Synthetic pairs: the same for the same seed, others in each epoch and for validation."""

    def __init__(
        self,
        batches: int = 1000,
        batch_size: int = 8,
        validation_batches: int = 16,
        seed: int = 0,
        workers: int = 0,
    ) -> None:
        """Choose recipe, sizes and seed.

        Args:
            batches: Number of batches an epoch; each epoch renders new ones.
            batch_size: Number of pairs a batch.
            validation_batches: Number of validation batches.
            seed: Seed of all pairs.
            workers: Number of loader processes; 0 renders in the training process.
        """
        super().__init__()
        self.batches, self.batch_size = check_count("batches", batches), check_count("batch_size", batch_size)
        self.validation_batches = check_count("validation_batches", validation_batches, 0)
        self.seed, self.workers = check_count("seed", seed, 0), check_count("workers", workers, 0)

    def training_loader(self) -> ResumableLoader[FlowSample]:
        """Loader of pairs that are rendered as they are needed; each process renders its own."""
        ranks = (0, 1) if self.trainer is None else (self.trainer.global_rank, self.trainer.world_size)
        pairs = FlowPairs(self.batches, self.batch_size, 2_000 * self.seed)
        return ResumableLoader(EndlessSampler(pairs, *ranks), None, num_workers=self.workers)

    def val_dataloader(self) -> DataLoader:
        """Load pairs that training never uses."""
        pairs = FlowPairs(self.validation_batches, self.batch_size, 2 * self.seed + 1)
        return DataLoader(pairs, batch_size=None, num_workers=self.workers)
