"""The base of trainings that end with the same weights whether or not they were interrupted."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from lightning import LightningModule

from physvision.models.checkpoints import check_weights_match
from physvision.trainers.checkpoints import keep_checkpoints_whole


class ResumableTraining(LightningModule):
    """Training that goes on from a checkpoint of any update as if it had not been interrupted.

    Random numbers of an update, such as dropout and noise, follow from the seed, which a checkpoint keeps, and from the
    update's place. State beside the weights changes in `after_update`, before a checkpoint of the update is written.
    """

    def __init__(self, seed: int | None = None) -> None:
        """Choose the seed of updates.

        Args:
            seed: Seed of the random numbers of all updates; that of torch if not given.
        """
        super().__init__()
        self.seed = torch.initial_seed() % 2**63 if seed is None else seed

    def setup(self, stage: str) -> None:
        """Make the trainer write checkpoints that are whole or not there."""
        keep_checkpoints_whole(self.trainer)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Seed torch for the update."""
        place = (self.seed, self.current_epoch, batch_idx, self.global_rank)
        torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1)[0]))

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Update the weights, and what follows them."""
        super().optimizer_step(*args, **kwargs)
        self.after_update()

    def after_update(self) -> None:
        """Bring state beside the weights up to date; callbacks write checkpoints before `on_train_batch_end`."""

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the seed of updates."""
        checkpoint["seed"] = self.seed

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse weights of another architecture, saying where they differ, and take the seed."""
        check_weights_match("checkpoint", self.state_dict(), checkpoint["state_dict"])
        self.seed = int(checkpoint.get("seed", self.seed))
