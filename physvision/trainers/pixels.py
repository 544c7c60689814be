"""Training of the pendulum that swings up by what a camera sees, through camera, network and physics."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from physvision.control.pixels import FramePolicy, FromFrames, FromState, Starts, Upright, leaning, save_policy
from physvision.control.policies import Dense
from physvision.core import InputError
from physvision.trainers.checkpoints import keep_checkpoints_whole
from physvision.trainers.policies import PolicyTraining

_SHORT, _LONG, _EPISODE = 50, 100, 150  # decisions: at first, while starts widen, and then
_NEAR, _SLOW = 0.3, 1.0  # rad and rad/s of the first starts
_FAR, _FAST = math.pi, 6.0
_LEAST = 0.02  # of the learning rate, at the end
_STANDS, _NEEDED, _MEMORY = 0.3, 0.5, 0.9  # rad, share, and what is left of the mean share after an update


def course_at(task: Upright, done: float) -> None:
    """Choose where a task's episodes start and how long they are.

    Args:
        task: what is learned.
        done: how far starts have widened, from 0 to 1.
    """
    task.periods = _EPISODE if done >= 1 else round(_SHORT + done * (_LONG - _SHORT))
    hanging = 0.5 * done if done > 0.3 else 0.0
    task.starts = Starts(hanging, _NEAR + done * (_FAR - _NEAR), _SLOW + done * (_FAST - _SLOW))


class PendulumTraining(PolicyTraining):
    """Trains a policy to swing a pendulum up, first from near upright for a second, at last hanging for three.

    Once half of the poles stand at the end of their episodes, starts widen by a step after each update. When they are
    anywhere, half of them hang. Each world's backward signal is limited. Then frames have noise and the learning rate
    falls: at a constant one the poles that stand go on swaying, now more and now less.
    """

    progress: Tensor
    settled: Tensor
    standing: Tensor
    spent: Tensor

    def __init__(
        self,
        sees: str = "frames",
        height: int = 32,
        width: int = 96,
        through_camera: bool = True,
        recompute: bool = False,
        updates: int = 20,
        batch: int = 8,
        seed: int = 0,
        learning_rate: float = 1e-3,
        decay: float = 0.95,
        limit: float | None = 10.0,
        clip: float | None = 1.0,
        widening: int = 200,
        varied: float = 0.5,
        progress: float = 0.0,
        settling: int = 300,
        noise: float = 0.0,
    ) -> None:
        """Set up training.

        Args:
            sees: "frames", or "state" to compare with.
            height: of a frame, pixels.
            width: of a frame, pixels.
            through_camera: whether gradients go through the camera.
            recompute: whether the network's layers are computed again on the way back, to save memory.
            updates: in an epoch; a checkpoint is written after each.
            batch: worlds in an episode.
            seed: of the network, of starts and of looks.
            learning_rate: of Adam.
            decay: as in `PolicyTraining`.
            limit: as in `PolicyTraining`.
            clip: as in `PolicyTraining`.
            widening: updates in which starts widen.
            varied: share of worlds whose light and textures vary.
            progress: how far starts have widened at first, 1 for as far as they will.
            settling: updates in which the learning rate falls to a fiftieth, once starts have widened.
            noise: deviation of the noise of pixels from then on; frames are from 0 to 1.
        """
        torch.manual_seed(seed)
        if sees == "frames":
            task = FromFrames(height, width, _SHORT, varied, through_camera)
            policy = FramePolicy(height, width, recompute=recompute)
        elif sees == "state":
            task, policy = FromState(_SHORT), Dense(FromState.sensors, (64, 64), 1)
        else:
            raise InputError(f'sees: expected "frames" or "state", got {sees!r}')
        super().__init__(policy, task, updates, batch, seed, learning_rate, decay=decay, clip=clip, limit=limit)
        self.course, self.widening, self.settling, self.noise = task, widening, settling, noise
        for name in ("progress", "settled", "standing", "spent"):
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))
        self.progress.fill_(progress)

    def setup(self, stage: str) -> None:
        """Write checkpoints that are whole or not there."""
        keep_checkpoints_whole(self.trainer)

    def choose_episode(self) -> None:
        """Choose where the next episode starts, how long it is, and whether its frames have noise."""
        course_at(self.course, float(self.progress))
        if isinstance(self.course, FromFrames):
            self.course.noise = self.noise if float(self.progress) >= 1 else 0.0

    def on_train_batch_start(self, batch: int, batch_idx: int) -> None:
        """Choose the episode, and how fast is learned from it."""
        self.choose_episode()
        fallen = 0.5 - 0.5 * math.cos(math.pi * min(1.0, float(self.settled)))
        for group in self.optimizers(use_pl_optimizer=False).param_groups:  # pyright: ignore[reportAttributeAccessIssue]
            group["lr"] = self.learning_rate * (1 + (_LEAST - 1) * fallen)
        self._begun = time.process_time()

    def on_train_batch_end(self, outputs: Any, batch: int, batch_idx: int) -> None:
        """See how many stand, and widen the starts if enough do."""
        assert self.last is not None
        final = self.last.trajectory.final
        stands = (leaning(final.detach()).abs() < _STANDS).double().mean()
        self.standing += (1 - _MEMORY) * (stands - self.standing)
        if float(self.progress) >= 1:
            self.settled += 1 / self.settling
        if float(self.standing) >= _NEEDED or float(self.progress) > 0:
            self.progress += 1 / self.widening
            self.progress.clamp_(max=1.0)
        self.spent += time.process_time() - self._begun
        self.last = None
        for name in ("progress", "standing", "spent"):
            self.log(f"train/{name}", getattr(self, name), prog_bar=name != "spent")

    def on_train_epoch_end(self) -> None:
        """Write a policy that sees to a file, as `physvision.control.pixels.load_policy` reads it."""
        if isinstance(self.policy, FramePolicy) and self.trainer.is_global_zero:
            save_policy(Path(self.trainer.default_root_dir) / "policy.safetensors", self.policy)
