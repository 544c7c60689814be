"""Base class of the differentiable computations of a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import RecordedLaunch, argument, is_short, launch
from physvision.physics.articulated.arrays import PARAMETERS
from physvision.physics.articulated.compiler.device_model import DeviceModel
from physvision.physics.articulated.compiler.struct_cache import ModelStructs
from physvision.physics.articulated.settings import SETTINGS
from physvision.physics.articulated.workspace import Workspace


@dataclass(frozen=True, eq=False)
class TreeOperation(Operation):
    """A computation by the kernels of a tree.

    With `structs`, the parameters of the model are constants and are no inputs of the computation.
    """

    model: DeviceModel
    structs: ModelStructs | None

    def _tree(self, parameters: Tensors) -> Any:
        if self.structs is not None:
            return self.structs.tree
        return self.model.tree_struct(dict(zip(PARAMETERS, parameters, strict=True)))

    def _launch(self, kernel: Any, batch: int, inputs: list[Any], backward: bool, evaluations: int = 1) -> None:
        launch(kernel, batch, inputs, self.model.device, self._cost(batch, backward, evaluations))

    def _launch_rollout(
        self,
        kernel: Any,
        workspace: Workspace,
        key: tuple | None,
        arguments: Callable[[], list[Any]],
        torques: Mapping[int, Tensor],
        states: Sequence[Tensor],
        cost: float,
    ) -> None:
        """Launch a kernel; a short launch is recorded, and repeated for an equal key and strides.

        Args:
            kernel: Kernel of the launch.
            workspace: Workspace that keeps recorded launches.
            key: Values that the arguments depend on; None if they change in each call.
            arguments: Function that returns the arguments before the states.
            torques: Tensors of the arrays `torque` in arguments, by index.
            states: Tensors of the last arguments.
            cost: Estimated time on one core, µs.
        """
        batch, device = states[0].shape[0], self.model.device
        if key is None or self.structs is None or not is_short(batch, cost, device):
            launch(kernel, batch, [*arguments(), *map(argument, states)], device, cost)
            return
        key = (kernel, self.structs, *key, *[tensor.stride() for tensor in (*torques.values(), *states)])

        def record() -> RecordedLaunch:
            return RecordedLaunch(kernel, batch, [*arguments(), *map(argument, states)], device)

        recorded = workspace.launches.take(key, device, record)
        for index, tensor in torques.items():
            recorded.set_memory(index, tensor, "torque")
        for index, tensor in enumerate(states, -len(states)):
            recorded.set_memory(index, tensor)
        recorded.run()
        workspace.launches.give_back(key, device, recorded)

    def _cost(self, batch: int, backward: bool, evaluations: int) -> float:
        """Estimated time on one core, µs."""
        cost = SETTINGS.backward_cost if backward else SETTINGS.forward_cost
        return cost * evaluations * self.model.tree.links * batch

    def _single_evaluation(self, batch: int, kind: str, **values: Tensor) -> Workspace:
        """Borrow a workspace with the inputs of a single evaluation in its first row."""
        workspace = self.model.workspaces.borrow(batch, 1, kind)
        for name, value in values.items():
            workspace.tensors[name][:, 0] = value
        return workspace

    def _torque(self, torque: Tensor | None, batch: int, steps: int) -> Tensor:
        """Generalized forces, expanded zeros if there are none."""
        if torque is not None:
            return torque
        return self.model.allocator.zeros(1, 1, 1).expand(batch, steps, self.model.forces_per_step)

    def _force_gradient(self, value: Tensor | None, needed: bool, batch: int, steps: int, *shape: int) -> Tensor:
        """Zeroed gradient to external forces, with one step for all where it is not needed."""
        if needed and value is not None:
            return self.model.allocator.zeros(batch, steps, *shape)
        return self.model.allocator.zeros(batch, 1, *shape).expand(batch, steps, *shape)

    def _torque_gradient(self, torque: Tensor | None, needed: bool, batch: int, steps: int) -> Tensor:
        return self._force_gradient(torque, needed, batch, steps, self.model.forces_per_step)

    def _wrench_gradient(self, wrenches: Tensor | None, needed: bool, batch: int, steps: int) -> Tensor | None:
        if wrenches is None:
            return None
        return self._force_gradient(wrenches, needed, batch, steps, self.model.tree.bodies, 6)


def zeros_if_none(gradient: Tensor | None, like: Tensor) -> Tensor:
    """Gradient to an output, or expanded zeros in its shape if there is none."""
    if gradient is not None:
        return gradient.detach()
    return torch.zeros((), dtype=like.dtype, device=like.device).expand_as(like)
