"""Training of policies by gradients through policy and engine, with stabilizers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer
from torch.utils.data import Dataset

from physvision.control.policies import ControlTask, Policy, PolicyRollout, rollout_policy
from physvision.datasets.loading import ResumableLoader
from physvision.datasets.sampling import EndlessSampler
from physvision.trainers.resuming import ResumableTraining


@dataclass(frozen=True)
class StabilizerSettings:
    """Habits that keep gradients through long episodes useful; each can be left out.

    Attributes:
        mean_loss: If true, the loss is the mean over all periods, otherwise that of the last.
        gradient_decay: Factor of the backward signal a period; 1 for the exact gradient. One for all worlds, or
            (batch, 1).
        max_state_grad_norm: Largest norm of a world's backward signal between periods, beside the weight that its loss
            in one of them has in the mean; only of `rollout_policy`. None for no limit.
        max_grad_norm: Largest norm of the gradient; None for no limit.
        zero_init_output: If true, zero the outputs at the start.
    """

    mean_loss: bool = True
    gradient_decay: float | Tensor = 0.99
    max_state_grad_norm: float | None = None
    max_grad_norm: float | None = 1.0
    zero_init_output: bool = True


_STABILIZERS = StabilizerSettings()


class Updates(Dataset[int]):
    """Endless data set of the numbers of updates."""

    def __init__(self, updates: int) -> None:
        """Set the number of updates an epoch."""
        self.updates = updates

    def __len__(self) -> int:
        return self.updates

    def __getitem__(self, index: int) -> int:
        return index


class PolicyTraining(ResumableTraining):
    """Trains a policy on a task, an episode of all worlds an update."""

    def __init__(
        self,
        policy: Policy,
        task: ControlTask,
        updates: int,
        batch: int = 1,
        seed: int = 0,
        learning_rate: float = 1e-3,
        stabilizers: StabilizerSettings = _STABILIZERS,
        player: Callable[..., PolicyRollout] = rollout_policy,
    ) -> None:
        """Choose policy, task and stabilizers.

        Args:
            policy: Policy to train.
            task: Task with initial states and losses.
            updates: Number of updates an epoch.
            batch: Number of parallel episodes.
            seed: Seed of initial states and goals; those of an update do not depend on earlier ones.
            learning_rate: Learning rate of Adam.
            stabilizers: Habits that keep gradients through long episodes useful.
            player: `rollout_policy` for a `FeedbackTask`, `rollout_open_loop` for an `OpenLoopTask`.
        """
        super().__init__(seed)
        self.policy, self.task = policy, task
        self.updates, self.batch = updates, batch
        self.learning_rate, self.stabilizers, self.player = learning_rate, stabilizers, player
        self.last: PolicyRollout | None = None
        if stabilizers.zero_init_output:
            policy.zero_output()

    def train_dataloader(self) -> ResumableLoader[int]:
        """Load the numbers of the updates."""
        return ResumableLoader(EndlessSampler(Updates(self.updates)), None)

    def training_step(self, batch: int, batch_idx: int) -> Tensor:
        """Compute the loss of an episode, and keep its rollout as `last`."""
        generator = torch.Generator().manual_seed(self.seed + 1_000_003 * self.global_step)
        start, goal = self.task.reset(self.batch, generator)
        habits = self.stabilizers
        counted, limit = self.batch * (self.task.episode_steps if habits.mean_loss else 1), habits.max_state_grad_norm
        limits = {} if limit is None else {"max_state_grad_norm": limit / counted}
        rollout = self.player(self.task, self.policy, start, goal, gradient_decay=habits.gradient_decay, **limits)
        self.last = rollout
        loss = (rollout.losses if habits.mean_loss else rollout.losses[:, -1]).mean()
        self.log("train/loss", loss.detach(), prog_bar=True, batch_size=self.batch)
        return loss

    def configure_optimizers(self) -> Optimizer:
        """Use Adam with one learning rate."""
        return Adam(self.policy.parameters(), self.learning_rate)

    def configure_gradient_clipping(
        self, optimizer: Optimizer, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip the gradient norm; skip gradients that are not finite."""
        parameters = [parameter for parameter in self.policy.parameters() if parameter.grad is not None]
        if not parameters:
            return
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
        self.log("train/gradient", norm)
        if not bool(torch.isfinite(norm)):
            for parameter in parameters:
                parameter.grad = None
        elif (limit := self.stabilizers.max_grad_norm) is not None:
            torch.nn.utils.clip_grads_with_norm_(parameters, limit, norm)
