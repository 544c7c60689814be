"""A rollout and its adjoint as an operation on batches: two kernels, one thread a world."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels import precision
from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import argument, array, launch
from physvision.physics.soft.properties import Packed

_KERNELS = "physvision.physics.soft.kernels"
# A guess at the microseconds that an element's step takes, forward; backward takes as long.
ELEMENT_STEP = 3.0


class Launches:
    """A body on one device: its kernels, its struct, and memory for launches.

    Args:
        parts: of the kernels that it needs.
        numbers: single fields of `BodyStruct`.
        whole: its arrays of whole numbers, and others.
        real: its arrays of real numbers, a vector being a row.
        device: where to.
    """

    def __init__(
        self,
        parts: tuple[str, ...],
        numbers: dict[str, float],
        whole: dict[str, np.ndarray],
        real: dict[str, np.ndarray],
        device: torch.device,
    ) -> None:
        self.kernels: Any = precision.load(_KERNELS, torch.float64, *parts)
        self.device, self.elements = device, len(whole["corners"])
        self.body = self.kernels.BodyStruct()
        self._held = []  # memory that the struct points to
        for name, number in numbers.items():
            setattr(self.body, name, number)
        for name in whole.keys() & self.kernels.BodyStruct.vars.keys():
            self._point(name, torch.as_tensor(whole[name].astype(np.int32), device=device), None)
        for name, each in real.items():
            kind = self.kernels.Vec if each.ndim == 2 else None
            self._point(name, torch.as_tensor(each.astype(np.float64), device=device), kind)
        self.columns, self.blocks, self.nodes = len(whole["node"]), len(whole["row"]), len(whole["held"])

    def _point(self, name: str, tensor: Tensor, kind: Any) -> None:
        self._held.append(tensor)
        setattr(self.body, name, array(tensor, kind))

    def numbers(self, packed: Tensors) -> Any:
        """A struct of these tensors, which must outlive it."""
        found, kinds = self.kernels.NumbersStruct(), {"inverse": self.kernels.Mat, "load": self.kernels.Vec}
        for name, tensor in zip(Packed.__annotations__, packed, strict=True):
            setattr(found, name, array(tensor, kinds.get(name)))
        return found

    def run(self, kernel: Any, batch: int, inputs: list[Any], packed: Tensors, steps: int) -> None:
        """Launch a kernel, with working memory, after the packed numbers."""
        vec, mat, memory, held = self.kernels.Vec, self.kernels.Mat, self.kernels.MemoryStruct(), []
        axes = vec._length_
        sizes = dict.fromkeys(("before", "force", "move", "old"), (self.nodes, axes))
        sizes |= {"diagonal": (self.columns, axes, axes), "below": (self.blocks, axes, axes)}
        for name, size in sizes.items():
            held.append(torch.empty(batch, *size, dtype=torch.float64, device=self.device))
            setattr(memory, name, array(held[-1], vec if len(size) == 2 else mat))
        held.append(torch.empty(batch, self.columns, dtype=torch.int32, device=self.device))
        memory.at = array(held[-1])
        given = [self.body, self.numbers(packed), memory, *inputs]
        launch(kernel, batch, given, self.device, ELEMENT_STEP * self.elements * steps * batch)


class Rollout(Operation):
    """States, (batch, steps + 1, …), from the first, the controls and the packed numbers; all in float64.

    The backward pass keeps the states, and solves once a step; the derivation stands in `kernels.rollout`.
    """

    differentiable = 2

    def __init__(self, launches: Launches, nodes: int, axes: int) -> None:
        self.launches, self.shape = launches, (nodes, axes)

    def _nodes(self, tensor: Tensor) -> Any:
        """The memory of states as vectors of nodes."""
        return argument(tensor.unflatten(-1, self.shape), self.launches.kernels.Vec)

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """All q and v, worst residual, most iterations and first bad step."""
        q, v, controls, *packed = inputs
        batch, steps = controls.shape[:2]
        all_q, all_v = (first.new_empty(batch, steps + 1, first.shape[1]) for first in (q, v))
        all_q[:, 0], all_v[:, 0] = q.detach(), v.detach()
        iterations, bad = (torch.zeros(batch, dtype=torch.int32, device=q.device) for _ in range(2))
        outputs = [all_q, all_v, q.new_zeros(batch), iterations, bad]
        states, others = [self._nodes(each) for each in outputs[:2]], [argument(each) for each in outputs[2:]]
        kernel = self.launches.kernels.forward
        self.launches.run(kernel, batch, [argument(controls.contiguous()), *states, *others], tuple(packed), steps)
        return tuple(outputs)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Cotangents of the first state, of controls and of the packed numbers."""
        controls, packed = inputs[2], inputs[3:]
        q, v = outputs[:2]
        batch, steps = controls.shape[:2]
        seeds = [torch.zeros_like(q) if gradient is None else gradient.contiguous() for gradient in gradients]
        found = [q.new_empty(batch, q.shape[2]) for _ in range(2)]
        controls_bar = torch.zeros_like(controls, memory_format=torch.contiguous_format)
        bars = tuple(torch.zeros(each.shape, dtype=each.dtype, device=each.device) for each in packed)
        summed = self.launches.numbers(bars)
        summed.wanted = int(any(needed[3:]))
        arrays = [argument(controls.contiguous()), *map(self._nodes, (q, v, *seeds, *found)), summed]
        kernel = self.launches.kernels.backward
        self.launches.run(kernel, batch, [*arrays, argument(controls_bar)], tuple(packed), steps)
        return *found, controls_bar, *bars
