"""Policies that are trained side by side, each on worlds of its own as if alone."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from physvision.control.policies import ControlTask, MlpPolicy, Policy, PolicyRollout
from physvision.trainers import PolicyTraining, StabilizerSettings


class Many(Policy):
    """Networks of one shape that differ from world to world: batches of matrices."""

    def __init__(self, networks: Sequence[MlpPolicy]) -> None:
        super().__init__()
        layers = [[*network.hidden, network.output] for network in networks]
        rows = list(zip(*layers, strict=True))
        self.weights = nn.ParameterList(torch.stack([entry.weight.detach().mT for entry in row]) for row in rows)
        self.biases = nn.ParameterList(torch.stack([entry.bias.detach()[None] for entry in row]) for row in rows)

    def zero_output(self) -> None:
        """Make all outputs zero."""
        self.still_in(torch.ones(len(self.weights[0]), dtype=torch.bool))

    def still_in(self, worlds: Tensor) -> None:
        """Make all outputs of these worlds' networks zero."""
        with torch.no_grad():
            for entry in (self.weights[-1], self.biases[-1]):
                entry[worlds] = 0.0

    def vectors(self) -> Tensor:
        """Each world's parameters in a row, the layers one after another."""
        return torch.cat([part.detach().flatten(1) for part in self._parts()], 1)

    def set(self, vectors: Tensor) -> None:
        """Take each world's parameters from a row."""
        parts = self._parts()
        for part, given in zip(parts, vectors.split([entry[0].numel() for entry in parts], 1), strict=True):
            part.data = given.reshape(-1, *part.shape[1:])

    def _parts(self) -> list[Tensor]:
        return [entry for pair in zip(self.weights, self.biases, strict=True) for entry in pair]

    def forward(self, sensed: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Each world's outputs by its own network, of (worlds, sensors) or (worlds, times, sensors)."""
        layer = sensed if sensed.dim() == 3 else sensed.unsqueeze(1)
        for weight, bias in list(zip(self.weights, self.biases, strict=True))[:-1]:
            layer = torch.baddbmm(bias, layer, weight).relu()
        output = torch.baddbmm(self.biases[-1], layer, self.weights[-1])
        return (output if sensed.dim() == 3 else output.squeeze(1)), memory


class Teaching(PolicyTraining):
    """Trains several policies side by side, each on a world of its own as if alone.

    Attributes:
        courses: Values of `measure` for each policy, episode by episode.
        best: parameters of each policy in the episode in which the first number that `measure` gives was least.
    """

    def __init__(
        self,
        policy: Many,
        task: ControlTask,
        updates: int,
        measure: Callable[[PolicyRollout], Tensor],
        habits: Sequence[StabilizerSettings],
        label: str = "",
        enough: float = -math.inf,
        losses: Callable[[PolicyRollout], Tensor] = lambda entry: entry.losses,
        **options,
    ) -> None:
        decay = torch.tensor([[habit.gradient_decay] for habit in habits], dtype=torch.float64)
        plain = bool((decay == 1.0).all())
        stabilizers = StabilizerSettings(
            gradient_decay=1.0 if plain else decay, max_grad_norm=None, zero_init_output=False
        )
        super().__init__(policy, task, updates, batch=len(habits), stabilizers=stabilizers, **options)
        self.many = policy
        policy.still_in(torch.tensor([habit.zero_init_output for habit in habits]))
        self.mean = torch.tensor([habit.mean_loss for habit in habits])
        self.max_grad_norms = torch.tensor([habit.max_grad_norm or math.inf for habit in habits], dtype=torch.float64)
        self.measure, self.label, self.enough, self.blamed = measure, label, enough, losses
        self.courses: list[list[list[float]]] = [[] for _ in habits]
        self.best_losses = torch.full((len(habits),), math.inf, dtype=torch.float64)
        self.best = policy.vectors()
        self.seconds, self.began = 0.0, time.perf_counter()

    def training_step(self, batch: int, batch_idx: int) -> Tensor:
        """The sum of the policies' losses, so that each has the gradient that it would have alone."""
        super().training_step(batch, batch_idx)
        assert self.last is not None
        losses = self.blamed(self.last)
        self._take_down(self.last)
        entry = torch.where(self.mean, losses.mean(1), losses[:, -1])
        # A motion that failed teaches nothing, and leaves the others alone.
        return entry.where(losses.detach().isfinite().all(1), 0.0).sum()

    @torch.no_grad()
    def _take_down(self, rollout: PolicyRollout) -> None:
        result = self.measure(rollout)
        better = result[:, 0] < self.best_losses
        self.best_losses = torch.where(better, result[:, 0], self.best_losses)
        self.best = torch.where(better[:, None], self.many.vectors(), self.best)
        for course, row in zip(self.courses, result.tolist(), strict=True):
            course.append(row)
        count = len(self.courses[0])
        if self.label and count % 10 == 0:
            self.seconds = time.perf_counter() - self.began
            numbers = " ".join(f"{row:.3g}" for row in self.best_losses.tolist())
            print(f"  {self.label}, {count} episodes, {self.seconds:.0f} s; least so far {numbers}", flush=True)

    def configure_gradient_clipping(
        self, optimizer: Optimizer, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip each policy's gradient, and leave out one that is not finite."""
        gradients = [parameter.grad for parameter in self.policy.parameters() if parameter.grad is not None]
        norms = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0).sqrt()
        factor = (self.max_grad_norms / norms).clamp(max=1.0)[:, None, None]
        for gradient in gradients:
            gradient *= factor
            gradient.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

    def on_train_batch_end(self, outputs: object, batch: int, batch_idx: int) -> None:
        """Stop where all are good enough."""
        self.trainer.should_stop = bool((self.best_losses < self.enough).all())


def taught(
    networks: Sequence[MlpPolicy],
    task: ControlTask,
    updates: int,
    measure: Callable[[PolicyRollout], Tensor],
    habits: Sequence[StabilizerSettings],
    **options,
) -> Teaching:
    """Train networks side by side."""
    from lightning import Trainer

    module = Teaching(Many(networks), task, updates, measure, habits, **options)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data loaders without workers
        Trainer(max_epochs=1, accelerator="cpu", **quiet).fit(module)
    module.seconds = time.perf_counter() - module.began
    return module
