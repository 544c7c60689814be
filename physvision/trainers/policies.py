"""Training of policies by gradients through policy and engine, with the habits that make it stable."""

from __future__ import annotations

from collections.abc import Callable

import torch
from lightning import LightningModule
from torch import Tensor
from torch.optim import Adam, Optimizer
from torch.utils.data import DataLoader

from physvision.control.policies import Episode, Played, Policy, play


class PolicyTraining(LightningModule):
    """Trains a policy on a task, an episode of all worlds an update.

    Four habits keep gradients through long episodes useful, and each can be left out: the loss is averaged over time,
    the backward signal decays from period to period, outputs are zero at the start, and the gradient is clipped.
    """

    def __init__(
        self,
        policy: Policy,
        task: Episode,
        updates: int,
        batch: int = 1,
        seed: int = 0,
        learning_rate: float = 1e-3,
        averaged: bool = True,
        decay: float | Tensor = 0.99,
        still: bool = True,
        clip: float | None = 1.0,
        player: Callable[..., Played] = play,
        limit: float | None = None,
    ) -> None:
        """Set up training.

        Args:
            policy: what is trained.
            task: what it is to do.
            updates: how many in an epoch.
            batch: worlds in an episode.
            seed: of starts and aims; those of an update are the same whatever came before.
            learning_rate: of Adam.
            averaged: whether the loss is the mean over all periods, not that of the last alone.
            decay: what is left of the backward signal after each period; 1 for the gradient itself. One for all worlds,
                or for each, (batch, 1).
            still: whether outputs are zero at the start.
            clip: largest norm of the gradient; None for no limit.
            player: `play` for a `Task`, `play_open_loop` for an `OpenLoop`.
            limit: largest norm of a world's backward signal between periods, beside the weight that its loss in one of
                them has in the mean; only of `play`. None for no limit.
        """
        super().__init__()
        self.policy, self.task = policy, task
        self.updates, self.batch, self.seed = updates, batch, seed
        self.learning_rate, self.averaged, self.decay, self.clip = learning_rate, averaged, decay, clip
        self.player, self.limit = player, limit
        self.last: Played | None = None
        if still:
            policy.still()

    def train_dataloader(self) -> DataLoader:
        """The numbers of the updates."""
        return DataLoader(range(self.updates), batch_size=None)  # pyright: ignore[reportArgumentType]

    def training_step(self, batch: int, batch_idx: int) -> Tensor:
        """The loss of an episode, which is kept as `last`."""
        generator = torch.Generator().manual_seed(self.seed + 1_000_003 * self.global_step)
        start, aim = self.task.begin(self.batch, generator)
        counted = self.batch * (self.task.periods if self.averaged else 1)
        limits = {} if self.limit is None else {"limit": self.limit / counted}
        played = self.player(self.task, self.policy, start, aim, decay=self.decay, **limits)
        self.last = played
        loss = (played.losses if self.averaged else played.losses[:, -1]).mean()
        self.log("train/loss", loss.detach(), prog_bar=True, batch_size=self.batch)
        return loss

    def configure_optimizers(self) -> Optimizer:
        """Adam."""
        return Adam(self.policy.parameters(), self.learning_rate)

    def configure_gradient_clipping(
        self, optimizer: Optimizer, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip; a gradient that is not finite is left out, for not one direction of it is worth following."""
        parameters = [each for each in self.policy.parameters() if each.grad is not None]
        if not parameters:
            return
        norm = torch.nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
        self.log("train/gradient", norm)
        if not bool(torch.isfinite(norm)):
            for each in parameters:
                each.grad = None
        elif self.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(parameters, self.clip, norm)
