"""Rollout of a soft body and its adjoint as an operation on batches: two kernels, one thread per world."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels import precision
from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import argument, array, launch
from physvision.physics.soft.compiler import CompiledBody, Parameters

_KERNELS = "physvision.physics.soft.kernels"
ELEMENT_STEP_COST = 3.0  # estimated time per element and step on one core, µs; the adjoint takes as long


class BodyLauncher:
    """Kernels of a body on one device, with the struct of its arrays, and memory for launches.

    Args:
        options: Options of the kernel module.
        scalars: Scalar fields of `BodyStruct`.
        compiled: Arrays of the body.
        device: Device of the arrays.
    """

    def __init__(
        self, options: tuple[str, ...], scalars: dict[str, float], compiled: CompiledBody, device: torch.device
    ) -> None:
        self.kernels: Any = precision.load(_KERNELS, torch.float64, *options)
        self.device, self.elements = device, len(compiled.mesh.elements)
        self.body = self.kernels.BodyStruct()
        self._references = []  # memory that the struct points to
        integers = compiled.integers
        for name, value in scalars.items():
            setattr(self.body, name, value)
        for name in integers.keys() & self.kernels.BodyStruct.vars.keys():
            self._set_array(name, torch.as_tensor(integers[name].astype("int32"), device=device), None)
        for name, values in compiled.reals.items():
            kind = self.kernels.Vec if values.ndim == 2 else None
            self._set_array(name, torch.as_tensor(values.astype("float64"), device=device), kind)
        self.columns, self.blocks, self.nodes = len(integers["node"]), len(integers["row"]), len(integers["kinematic"])

    def _set_array(self, name: str, tensor: Tensor, kind: Any) -> None:
        self._references.append(tensor)
        setattr(self.body, name, array(tensor, kind))

    def parameters(self, tensors: Tensors) -> Any:
        """Struct of parameters over tensors, which must outlive it."""
        struct, kinds = self.kernels.NumbersStruct(), {"inverse": self.kernels.Mat, "load": self.kernels.Vec}
        for name, tensor in zip(Parameters.__annotations__, tensors, strict=True):
            setattr(struct, name, array(tensor, kinds.get(name)))
        return struct

    def run(self, kernel: Any, batch: int, inputs: list[Any], parameters: Tensors, steps: int) -> None:
        """Launch a kernel with the parameters and a workspace before the other inputs."""
        vec, mat, workspace, tensors = self.kernels.Vec, self.kernels.Mat, self.kernels.MemoryStruct(), []
        axes = vec._length_
        sizes = dict.fromkeys(("before", "force", "move", "old"), (self.nodes, axes))
        sizes |= {"diagonal": (self.columns, axes, axes), "below": (self.blocks, axes, axes)}
        for name, size in sizes.items():
            tensors.append(torch.empty(batch, *size, dtype=torch.float64, device=self.device))
            setattr(workspace, name, array(tensors[-1], vec if len(size) == 2 else mat))
        tensors.append(torch.empty(batch, self.columns, dtype=torch.int32, device=self.device))
        workspace.at = array(tensors[-1])
        arguments = [self.body, self.parameters(parameters), workspace, *inputs]
        launch(kernel, batch, arguments, self.device, ELEMENT_STEP_COST * self.elements * steps * batch)


class Rollout(Operation):
    """Rollout, (batch, steps + 1, …), from the initial state, controls and parameters; all in float64.

    The backward pass keeps the states, and solves a linear system per step; `kernels.rollout` has the derivation.
    """

    differentiable = 2

    def __init__(self, launcher: BodyLauncher, nodes: int, axes: int) -> None:
        self.launcher, self.shape = launcher, (nodes, axes)

    def _nodes(self, tensor: Tensor) -> Any:
        """Memory of states as vectors of nodes."""
        return argument(tensor.unflatten(-1, self.shape), self.launcher.kernels.Vec)

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Compute all q and v, the largest residual, the most iterations and the first failed step."""
        q, v, controls, *parameters = inputs
        batch, steps = controls.shape[:2]
        positions, velocities = (first.new_empty(batch, steps + 1, first.shape[1]) for first in (q, v))
        positions[:, 0], velocities[:, 0] = q.detach(), v.detach()
        iterations, failed = (torch.zeros(batch, dtype=torch.int32, device=q.device) for _ in range(2))
        reports = [q.new_zeros(batch), iterations, failed]
        arguments = [argument(controls.contiguous()), *map(self._nodes, (positions, velocities))]
        arguments += map(argument, reports)
        self.launcher.run(self.launcher.kernels.forward, batch, arguments, tuple(parameters), steps)
        return (positions, velocities, *reports)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Compute the gradients to the initial state, to controls and to parameters."""
        controls, parameters = inputs[2], inputs[3:]
        q, v = outputs[:2]
        batch, steps = controls.shape[:2]
        output_bars = [torch.zeros_like(q) if gradient is None else gradient.contiguous() for gradient in gradients]
        state_bars = [q.new_empty(batch, q.shape[2]) for _ in range(2)]
        controls_bar = torch.zeros_like(controls, memory_format=torch.contiguous_format)
        parameter_bars = tuple(torch.zeros(p.shape, dtype=p.dtype, device=p.device) for p in parameters)
        struct = self.launcher.parameters(parameter_bars)
        struct.needs_gradients = int(any(needed[3:]))
        arguments = [argument(controls.contiguous()), *map(self._nodes, (q, v, *output_bars, *state_bars)), struct]
        arguments.append(argument(controls_bar))
        self.launcher.run(self.launcher.kernels.backward, batch, arguments, tuple(parameters), steps)
        return *state_bars, controls_bar, *parameter_bars
