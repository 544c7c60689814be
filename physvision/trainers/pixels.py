"""Training of the pendulum swing-up from camera frames, through camera, network and physics."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from physvision.control.pixels import (
    CartPoleTask,
    FramePolicy,
    PixelCartPoleTask,
    StartDistribution,
    StateCartPoleTask,
    save_policy,
    upright_angle,
)
from physvision.control.policies import MlpPolicy, Policy
from physvision.core import InputError
from physvision.trainers.policies import PolicyTraining, StabilizerSettings

_SHORT, _LONG, _EPISODE = 50, 100, 150  # decisions: at first, while starts widen, and then
_NEAR, _SLOW = 0.3, 1.0  # rad and rad/s of the first starts
_FAR, _FAST = math.pi, 6.0
_FINAL_LR_FACTOR = 0.02
_RANDOM_LOOKS = 0.5  # fraction of worlds with random light and textures
_STANDS, _NEEDED, _MEMORY = 0.3, 0.5, 0.9  # rad, share, and what is left of the mean share after an update


@dataclass(frozen=True)
class ObservationSettings:
    """Observation of a policy that swings a pendulum up, and the path of its gradient.

    Attributes:
        kind: Observation, "frames" or "state"; the other fields are those of frames.
        height: Height of a frame, pixels.
        width: Width of a frame, pixels.
        through_camera: If true, gradients go through the camera.
        recompute: If true, recompute the network's layers in the backward pass, to save memory.
    """

    kind: Literal["frames", "state"] = "frames"
    height: int = 32
    width: int = 96
    through_camera: bool = True
    recompute: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("frames", "state"):
            raise InputError(f'kind: expected "frames" or "state", got {self.kind!r}')

    def build(self) -> tuple[CartPoleTask, Policy]:
        """Build the task, with short episodes, and a policy of random weights for it."""
        if self.kind == "state":
            return StateCartPoleTask(_SHORT), MlpPolicy(StateCartPoleTask.obs_size, (64, 64), 1)
        task = PixelCartPoleTask(self.height, self.width, _SHORT, _RANDOM_LOOKS, self.through_camera)
        return task, FramePolicy(self.height, self.width, recompute=self.recompute)


@dataclass(frozen=True)
class CurriculumSettings:
    """Curriculum from starts near upright to hanging ones, and what follows it.

    Attributes:
        updates: Number of updates of the curriculum; more of them widen the starts more slowly.
        initial_progress: Initial progress of the curriculum, 0 to 1.
        settling_updates: Number of updates after the curriculum, in which the learning rate falls to a fiftieth.
        pixel_noise: Standard deviation of pixel noise after the curriculum; frames are 0 to 1.
    """

    updates: int = 200
    initial_progress: float = 0.0
    settling_updates: int = 300
    pixel_noise: float = 0.0


@dataclass(frozen=True)
class PendulumStabilizerSettings(StabilizerSettings):
    """Habits that keep gradients through a swing-up useful, see `StabilizerSettings`.

    Attributes:
        gradient_decay: Factor of the backward signal a period, smaller than that of other tasks.
        max_state_grad_norm: Largest norm of a world's backward signal between periods; None for no limit.
    """

    gradient_decay: float = 0.95
    max_state_grad_norm: float | None = 10.0


_OBSERVATION, _CURRICULUM, _STABILIZERS = ObservationSettings(), CurriculumSettings(), PendulumStabilizerSettings()


def course_at(task: CartPoleTask, done: float) -> None:
    """Set initial states and episode length for a stage of the curriculum.

    Args:
        task: Task to modify.
        done: Progress of the curriculum, 0 to 1.
    """
    task.episode_steps = _EPISODE if done >= 1 else round(_SHORT + done * (_LONG - _SHORT))
    hanging = 0.5 * done if done > 0.3 else 0.0
    task.starts = StartDistribution(hanging, _NEAR + done * (_FAR - _NEAR), _SLOW + done * (_FAST - _SLOW))


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
        observation: ObservationSettings = _OBSERVATION,
        updates: int = 20,
        batch: int = 8,
        seed: int = 0,
        learning_rate: float = 1e-3,
        stabilizers: PendulumStabilizerSettings = _STABILIZERS,
        curriculum: CurriculumSettings = _CURRICULUM,
    ) -> None:
        """Choose task, policy and curriculum.

        Args:
            observation: Observation of the policy.
            updates: Number of updates an epoch; each ends with a checkpoint.
            batch: Number of parallel episodes.
            seed: Seed of the network, of initial states and of appearances.
            learning_rate: Peak learning rate of Adam.
            stabilizers: Habits that keep gradients through long episodes useful.
            curriculum: Curriculum, and what follows it.
        """
        torch.manual_seed(seed)
        task, policy = observation.build()
        super().__init__(policy, task, updates, batch, seed, learning_rate, stabilizers)
        self.course, self.curriculum = task, curriculum
        for name in ("progress", "settled", "standing", "spent"):
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))
        self.progress.fill_(curriculum.initial_progress)

    def choose_episode(self) -> None:
        """Set initial states, length and noise of the next episode."""
        course_at(self.course, float(self.progress))
        if isinstance(self.course, PixelCartPoleTask):
            self.course.pixel_noise = self.curriculum.pixel_noise if float(self.progress) >= 1 else 0.0

    def on_train_batch_start(self, batch: int, batch_idx: int) -> None:
        """Set up the episode and the learning rate."""
        super().on_train_batch_start(batch, batch_idx)
        self.choose_episode()
        fallen = 0.5 - 0.5 * math.cos(math.pi * min(1.0, float(self.settled)))
        for group in self.optimizers(use_pl_optimizer=False).param_groups:  # pyright: ignore[reportAttributeAccessIssue]
            group["lr"] = self.learning_rate * (1 + (_FINAL_LR_FACTOR - 1) * fallen)
        self._start_s = time.process_time()

    def after_update(self) -> None:
        """Measure the success rate, and advance the curriculum if it is high enough."""
        assert self.last is not None
        final = self.last.trajectory.final
        stands = (upright_angle(final.detach()).abs() < _STANDS).double().mean()
        self.standing += (1 - _MEMORY) * (stands - self.standing)
        if float(self.progress) >= 1:
            self.settled += 1 / self.curriculum.settling_updates
        if float(self.standing) >= _NEEDED or float(self.progress) > 0:
            self.progress += 1 / self.curriculum.updates
            self.progress.clamp_(max=1.0)
        self.spent += time.process_time() - self._start_s
        self.last = None
        for name in ("progress", "standing", "spent"):
            self.log(f"train/{name}", getattr(self, name), prog_bar=name != "spent")

    def on_train_epoch_end(self) -> None:
        """Save the policy after every epoch."""
        self._save_policy()

    def on_fit_end(self) -> None:
        """Save the policy, also where a run that is resumed has no update left."""
        self._save_policy()

    def _save_policy(self) -> None:
        """Save a policy on frames, as `physvision.control.pixels.load_policy` reads it."""
        if isinstance(self.policy, FramePolicy) and self.trainer.is_global_zero:
            save_policy(Path(self.trainer.default_root_dir) / "policy.safetensors", self.policy)
