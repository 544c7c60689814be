"""A rollout and its adjoint as an operation on batches: two kernels, one thread a world."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import (
    LEAST_MICROSECONDS_TO_STOP,
    Repeated,
    Shelf,
    argument,
    is_short,
    launch,
)

# A guess at the microseconds that a body's step takes, forward; backward takes twice that.
BODY_STEP = 2.0


class Kernels:
    """A world on one device, with what a launch needs to know of it."""

    def __init__(self, parts: Any, kept: list[Any], device: torch.device) -> None:
        # Read here, since it takes half a second: commands that move nothing in the plane need not wait for it.
        from physvision.physics.rigid2d.kernels import data, rollout

        self.parts, self.kept, self.device = parts, kept, device
        self.forward, self.backward = rollout.forward, rollout.backward
        self.sizes = data.layout.lengths(parts)
        self._shelf = Shelf()
        self._unchanged: tuple[list[Tensor], list[Tensor]] | None = None

    def unchanged(self, given: Tensors) -> list[Tensor] | None:
        """The outputs of the last step that changed nothing, if these are its inputs: a world at rest, step by step."""
        known = self._unchanged
        if known is None or not all(map(torch.equal, known[0], given)):
            return None
        return [output.clone() for output in known[1]]

    def keep_if_unchanged(self, given: Tensors, outputs: Tensors) -> None:
        """Keep a step's inputs and outputs if the states before and after it are the same."""
        if all(torch.equal(states[:, 0], states[:, 1]) for states in outputs[:2]):
            self._unchanged = [value.clone() for value in given], [value.clone() for value in outputs]

    def run(self, kernel: Any, batch: int, inputs: list[Any], microseconds: float) -> None:
        """Launch a kernel, with working memory; a short launch is packed once for all that have the same strides."""
        if not is_short(batch, microseconds, self.device) or microseconds >= LEAST_MICROSECONDS_TO_STOP:
            stop = self.kept[-1].numpy() if self.device.type == "cpu" else None
            launch(kernel, batch, self._packed(batch, inputs)[0], self.device, microseconds, stop=stop)
            return
        key = (kernel, batch, *(value.stride() if isinstance(value, Tensor) else value for value in inputs))

        def make() -> Repeated:
            packed, scratch = self._packed(batch, inputs)
            return Repeated(kernel, batch, packed, self.device, held=scratch)

        repeated = self._shelf.take(key, self.device, make)
        for at, value in enumerate(inputs):
            if isinstance(value, Tensor):
                # Behind the parts; the working memory stands between the second and the third.
                repeated.move(at + 1 if at < 2 else at + 3, value)
        repeated.run()
        self._shelf.give(key, self.device, repeated)

    def _packed(self, batch: int, inputs: list[Any]) -> tuple[list[Any], list[Tensor]]:
        """A kernel's arguments, and its working memory; on a GPU the worlds' lie next to each other."""
        scratch = []
        for size, dtype in zip(self.sizes, (torch.float64, torch.int32), strict=True):
            if self.device.type == "cuda":
                scratch.append(torch.empty(size, batch, dtype=dtype, device=self.device).t())
            else:
                scratch.append(torch.empty(batch, size, dtype=dtype, device=self.device))
        values = [*inputs[:2], *scratch, *inputs[2:]]
        arrays = [argument(value) if isinstance(value, Tensor) else value for value in values]
        return [self.parts, *arrays], scratch


class Rollout(Operation):
    """States, (batch, steps + 1, …), from the first, the controls and the packed properties; all in float64.

    The backward pass keeps the states and does each step again; the derivation of a step's adjoint stands in
    `kernels.adjoint`.
    """

    differentiable = 2

    def __init__(self, kernels: Kernels, steps: int, followed: bool = True) -> None:
        """Prepare a rollout; where it is not `followed` by a backward pass, no more is kept than the states."""
        self.kernels, self.steps, self.followed = kernels, steps, followed

    def _work(self, batch: int) -> float:
        return BODY_STEP * batch * self.steps * self.kernels.parts.moving

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Positions, velocities, operations of each step, residual, iterations, first bad and first coarse step; notes.

        Given are the first q and v, the controls and the packed properties.
        """
        q, v, controls, theta = inputs
        alone = self.steps == 1 and not self.followed and not q.is_cuda
        known = self.kernels.unchanged(inputs) if alone else None
        if known is not None:
            return tuple(known)
        batch, n = q.shape
        all_q, all_v = q.new_empty(batch, self.steps + 1, n), q.new_empty(batch, self.steps + 1, n)
        all_q[:, 0], all_v[:, 0] = q.detach(), v.detach()
        operations = torch.zeros(batch, self.steps, dtype=torch.int32, device=q.device)
        residual = q.new_zeros(batch)
        counts = [operations.new_zeros(batch) for _ in range(3)]
        parts = self.kernels.parts
        # Before each step, who is awake and what contacts did in the step before; see `kernels.remembered`.
        notes = operations.new_zeros(batch, self.steps + 1 if self.followed else 2, 1 + parts.remembered + parts.bodies)
        arrays = [theta, controls, self.steps, all_q, all_v, operations, notes, residual, *counts]
        self.kernels.run(self.kernels.forward, batch, arrays, self._work(batch))
        outputs = (all_q, all_v, operations, residual, *counts, notes)
        if alone:
            self.kernels.keep_if_unchanged(inputs, outputs)
        return outputs

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Cotangents of the inputs from those of the outputs."""
        _, _, controls, theta = inputs
        q, v, operations, notes = *outputs[:3], outputs[-1]
        batch, n = q.shape[0], q.shape[2]
        seeds = [torch.zeros_like(q) if gradient is None else gradient.contiguous() for gradient in gradients]
        q_bar, v_bar = q.new_zeros(batch, n), q.new_zeros(batch, n)
        # Where nobody asks for the controls' gradient, every step writes to the same place.
        written = controls.new_zeros(batch, self.steps if needed[2] else 1, controls.shape[2])
        controls_bar = written.expand(batch, self.steps, -1)
        theta_bar = theta.new_zeros(theta.shape)
        found = [q_bar, v_bar, controls_bar, theta_bar]
        arrays = [theta, controls, self.steps, q, v, operations, notes, *seeds, *found]
        self.kernels.run(self.kernels.backward, batch, arrays, 2 * self._work(batch))
        return q_bar, v_bar, written if needed[2] else None, theta_bar
