"""Rollout and its adjoint as an operation on batches: two kernels, one thread a world."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import (
    MIN_INTERRUPTIBLE_MICROSECONDS,
    LaunchCache,
    RecordedLaunch,
    argument,
    is_short,
    launch,
)

# Estimated time of a body's step forward, in microseconds; backward takes twice that.
BODY_STEP_US = 2.0
# Memory, bytes, of the workspaces of a launch on a CPU; a larger batch is computed in parts.
MAX_WORKSPACE = 256e6


class Kernels:
    """Kernels and model of a world on one device, and the arguments of their launches."""

    def __init__(self, model: Any, arrays: list[Any], device: torch.device) -> None:
        # Imported here, since it takes half a second, which programs without a planar world save.
        from physvision.physics.rigid2d.kernels import data, rollout

        self.model, self.arrays, self.device = model, arrays, device
        self.forward, self.backward = rollout.forward, rollout.backward
        self.sizes = data.layout.lengths(model)
        self._launch_cache = LaunchCache()
        self._step_at_rest: tuple[list[Tensor], list[Tensor]] | None = None

    def cached_step(self, inputs: Tensors) -> list[Tensor] | None:
        """Return the outputs of the last step at rest, if these are its inputs."""
        cached = self._step_at_rest
        if cached is None or not all(map(torch.equal, cached[0], inputs)):
            return None
        return [output.clone() for output in cached[1]]

    def cache_step(self, inputs: Tensors, outputs: Tensors) -> None:
        """Cache a step's inputs and outputs if the states before and after it are equal."""
        if all(torch.equal(states[:, 0], states[:, 1]) for states in outputs[:2]):
            self._step_at_rest = [value.clone() for value in inputs], [value.clone() for value in outputs]

    def run(self, kernel: Any, batch: int, inputs: list[Any], microseconds: float) -> None:
        """Launch a kernel with its workspace; the arguments of short launches are packed once for equal strides."""
        if not is_short(batch, microseconds, self.device) or microseconds >= MIN_INTERRUPTIBLE_MICROSECONDS:
            on_cpu = self.device.type == "cpu"
            stop = self.arrays[-1].numpy() if on_cpu else None
            worlds = max(1, int(MAX_WORKSPACE / (8 * self.sizes[0] + 4 * self.sizes[1]))) if on_cpu else batch
            for start in range(0, batch, worlds):
                part = [value[start : start + worlds] if isinstance(value, Tensor) else value for value in inputs]
                count = min(worlds, batch - start)
                packed, _ = self._packed(count, part)
                launch(kernel, count, packed, self.device, microseconds * count / batch, stop=stop)
            return
        key = (kernel, batch, *(value.stride() if isinstance(value, Tensor) else value for value in inputs))

        def make() -> RecordedLaunch:
            packed, scratch = self._packed(batch, inputs)
            return RecordedLaunch(kernel, batch, packed, self.device, references=scratch)

        repeated = self._launch_cache.take(key, self.device, make)
        for index, value in enumerate(inputs):
            if isinstance(value, Tensor):
                # After the model; the workspace is between the second and the third.
                repeated.set_memory(index + 1 if index < 2 else index + 3, value)
        repeated.run()
        self._launch_cache.give_back(key, self.device, repeated)

    def _packed(self, batch: int, inputs: list[Any]) -> tuple[list[Any], list[Tensor]]:
        """Return a kernel's arguments and its workspace; on a GPU the numbers of the worlds are interleaved."""
        scratch = []
        for size, dtype in zip(self.sizes, (torch.float64, torch.int32), strict=True):
            if self.device.type == "cuda":
                scratch.append(torch.empty(size, batch, dtype=dtype, device=self.device).t())
            else:
                scratch.append(torch.empty(batch, size, dtype=dtype, device=self.device))
        values = [*inputs[:2], *scratch, *inputs[2:]]
        arrays = [argument(value) if isinstance(value, Tensor) else value for value in values]
        return [self.model, *arrays], scratch


class Rollout(Operation):
    """States, (batch, steps + 1, …), from the first, the controls and the packed properties; all in float64.

    The backward pass stores the states and repeats each step; the derivation of a step's adjoint stands in
    `kernels.adjoint`.
    """

    differentiable = 2

    def __init__(self, kernels: Kernels, steps: int, differentiable: bool = True) -> None:
        """Prepare a rollout; unless a backward pass may follow, nothing but the states is stored."""
        self.kernels, self.steps, self.records = kernels, steps, differentiable

    def _work(self, batch: int) -> float:
        return BODY_STEP_US * batch * self.steps * self.kernels.model.num_moving_bodies

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Compute positions, velocities, operations of each step, residual, iterations, failed steps, warm starts.

        Inputs are the first q and v, the controls and the packed properties. After the first failed step comes the
        first underresolved one.
        """
        q, v, controls, theta = inputs
        single = self.steps == 1 and not self.records and not q.is_cuda
        cached = self.kernels.cached_step(inputs) if single else None
        if cached is not None:
            return tuple(cached)
        batch, n = q.shape
        all_q, all_v = q.new_empty(batch, self.steps + 1, n), q.new_empty(batch, self.steps + 1, n)
        all_q[:, 0], all_v[:, 0] = q.detach(), v.detach()
        operations = torch.zeros(batch, self.steps, dtype=torch.int32, device=q.device)
        residual = q.new_zeros(batch)
        counts = [operations.new_zeros(batch) for _ in range(3)]
        model = self.kernels.model
        # Contact modes of the previous step and awake bodies, before each step; see `kernels.warm_start`.
        width = 1 + model.max_stored_modes + model.bodies
        warm_starts = operations.new_zeros(batch, self.steps + 1 if self.records else 2, width)
        arrays = [theta, controls, self.steps, all_q, all_v, operations, warm_starts, residual, *counts]
        self.kernels.run(self.kernels.forward, batch, arrays, self._work(batch))
        outputs = (all_q, all_v, operations, residual, *counts, warm_starts)
        if single:
            self.kernels.cache_step(inputs, outputs)
        return outputs

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Compute cotangents of the inputs from those of the outputs."""
        _, _, controls, theta = inputs
        q, v, operations, warm_starts = *outputs[:3], outputs[-1]
        batch, n = q.shape[0], q.shape[2]
        seeds = [torch.zeros_like(q) if gradient is None else gradient.contiguous() for gradient in gradients]
        q_bar, v_bar = q.new_zeros(batch, n), q.new_zeros(batch, n)
        # Unless the controls' gradient is needed, every step writes to the same place.
        written = controls.new_zeros(batch, self.steps if needed[2] else 1, controls.shape[2])
        controls_bar = written.expand(batch, self.steps, -1)
        theta_bar = theta.new_zeros(theta.shape)
        cotangents = [q_bar, v_bar, controls_bar, theta_bar]
        arrays = [theta, controls, self.steps, q, v, operations, warm_starts, *seeds, *cotangents]
        self.kernels.run(self.kernels.backward, batch, arrays, 2 * self._work(batch))
        return q_bar, v_bar, written if needed[2] else None, theta_bar
