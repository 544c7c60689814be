"""Rollout of a flow and its adjoint as an operation on batches: states are kept, and steps recomputed in reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from typing_extensions import override

from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import outside_transforms
from physvision.physics.fluid.step import StepData, Stepper
from physvision.physics.fluid.waves import Waves


class Rollout(Operation):
    """Rollout, (batch, steps + 1, …), from the initial state, controls and leaves of the properties; all in float64.

    Args:
        stepper: Time stepping on the grid.
        waves: Faster time stepping of velocities on periodic axes; None for other boundaries.
        shapes: Shapes of dye and of both velocities.
        jets: Accelerations of the unknown faces at a control of 1, (jets, …) of each velocity.
        names: Names of the leaves.
    """

    differentiable = 2

    def __init__(
        self,
        stepper: Stepper,
        waves: Waves | None,
        shapes: tuple[tuple[int, int], ...],
        jets: tuple[Tensor, Tensor],
        names: tuple[str, ...],
    ) -> None:
        self.stepper, self.waves, self.shapes, self.jets, self.names = stepper, waves, shapes, jets, names

    def fields(self, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Dye and both velocities as fields."""
        dye, u, w = self.shapes
        count = u[0] * u[1]
        return q.unflatten(-1, dye), v[..., :count].unflatten(-1, u), v[..., count:].unflatten(-1, w)

    def accelerations(self, control: Tensor) -> tuple[Tensor, Tensor]:
        """Accelerations of the unknown faces by the jets."""
        if not control.shape[1]:
            return control.new_zeros(()), control.new_zeros(())
        x, y = (torch.einsum("bj,jxy->bxy", control, jet) for jet in self.jets)
        return x, y

    def prepare(self, leaves: Tensors) -> StepData:
        """Data that all steps share."""
        return self.stepper.prepare(dict(zip(self.names, leaves, strict=True)), self.shapes)

    def _step(self, q: Tensor, v: Tensor, control: Tensor, data: StepData, has_dye: bool) -> tuple[Tensor, Tensor]:
        dye, u, w = self.fields(q, v)
        dye, u, w, _ = self.stepper(dye if has_dye else None, u, w, self.accelerations(control), data)
        return q if dye is None else dye.flatten(1), torch.cat([u.flatten(1), w.flatten(1)], 1)

    def _has_dye(self, q: Tensor, leaves: Tensors) -> bool:
        """If true, there may be dye; on a GPU always, so that nobody waits for it."""
        inflow = leaves[self.names.index("inflow_dye")]
        return q.is_cuda or bool(q.any()) or bool(inflow.any())

    def _is_plain(self, q: Tensor, leaves: Sequence[Tensor]) -> bool:
        """If true, there is neither dye nor a solid."""
        solid = leaves[self.names.index("solid")]
        return len(q) > 0 and not self._has_dye(q, tuple(leaves)) and not bool(solid.any())

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Compute all q and v, the first failed step and the first underresolved step."""
        q, v, controls, *leaves = inputs
        steps = controls.shape[1]
        all_q, all_v = (first.new_empty(len(first), steps + 1, first.shape[1]) for first in (q, v))
        all_q[:], all_v[:, 0] = q[:, None], v
        with torch.no_grad():
            if self.waves is not None and self._is_plain(q, leaves):
                viscosity, gravity = (leaves[self.names.index(name)] for name in ("viscosity", "gravity"))
                self.waves.forward(all_v, controls, viscosity, gravity)
            else:
                data, has_dye = self.prepare(tuple(leaves)), self._has_dye(q, tuple(leaves))
                for step in range(steps):
                    q, v = self._step(q, v, controls[:, step], data, has_dye)
                    all_q[:, step + 1], all_v[:, step + 1] = q, v
            marks = self._marked_steps(all_q[:, 1:], all_v[:, 1:])
        return all_q, all_v, *marks

    def _marked_steps(self, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """First step after which a value is not finite, and first one in which the flow passes more than a cell."""
        if not q.shape[0] * q.shape[1]:
            never = q.new_full((len(q),), -1, dtype=torch.long)
            return never, never.clone()
        count = self.shapes[1][0] * self.shapes[1][1]
        # The largest magnitudes suffice, and take no copy of all states.
        dye, along_x, along_y = (
            torch.maximum(values.amax(2), -values.amin(2)) for values in (q, v[..., :count], v[..., count:])
        )
        hx, hy = self.stepper.spacing
        finite = dye.isfinite() & along_x.isfinite() & along_y.isfinite()
        return _first(~finite), _first(self.stepper.h * torch.maximum(along_x / hx, along_y / hy) > 1.0)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Compute the gradients to the initial state, to controls and to the leaves."""
        controls, leaves = inputs[2], inputs[3:]
        q, v = outputs[:2]
        bars = [torch.zeros_like(x) if bar is None else bar for x, bar in zip((q, v), gradients, strict=True)]
        needs_dye = needed[0] or any(needed[3 + self.names.index(name)] for name in ("inflow_dye", "solid"))
        if self.waves is not None and not needs_dye and self._is_plain(q[:, 0], leaves):
            return self._backward_by_waves(v, bars[1], controls, leaves, needed[3:])
        # Without dye nothing depends on it but itself.
        has_dye = needed[0] or needed[3 + self.names.index("inflow_dye")] or self._has_dye(q[:, 0], leaves)
        return self._backward_by_steps((q, v), bars, controls, leaves, needed[3:], has_dye)

    def _backward_by_waves(
        self, v: Tensor, v_bar: Tensor, controls: Tensor, leaves: Tensors, needed: Sequence[bool]
    ) -> Tensors:
        leaf_bars = [
            torch.zeros_like(leaf) if is_needed else None for leaf, is_needed in zip(leaves, needed, strict=True)
        ]
        viscosity, gravity = (self.names.index(name) for name in ("viscosity", "gravity"))
        assert self.waves is not None
        start_bar, controls_bar, viscosity_bar, gravity_bar = self.waves.backward(
            v, v_bar, controls, leaves[viscosity], leaves[gravity], needed[viscosity]
        )
        leaf_bars[viscosity] = viscosity_bar if needed[viscosity] else None
        leaf_bars[gravity] = gravity_bar if needed[gravity] else None
        return None, start_bar, controls_bar, *leaf_bars

    def _backward_by_steps(
        self,
        states: tuple[Tensor, Tensor],
        bars: list[Tensor],
        controls: Tensor,
        leaves: Tensors,
        needed: Sequence[bool],
        has_dye: bool,
    ) -> Tensors:
        """Differentiate each step by torch, last first.

        The data that steps share are inputs of each step; the sums of their gradients go back to the leaves once.
        """
        (q, v), (q_bar, v_bar) = states, (bar[:, -1] for bar in bars)
        controls_bar = torch.zeros_like(controls)
        with outside_transforms(), torch.enable_grad():
            own = [leaf.detach().requires_grad_(is_needed) for leaf, is_needed in zip(leaves, needed, strict=True)]
            data, structure = pytree.tree_flatten(self.prepare(tuple(own)))
        data_needed = [value.requires_grad for value in data]
        sums = [torch.zeros_like(value) for value in data if value.requires_grad]
        for step in reversed(range(controls.shape[1])):
            with outside_transforms(), torch.enable_grad():
                start = [value.detach().requires_grad_() for value in (q[:, step], v[:, step], controls[:, step])]
                shared = [
                    value.detach().requires_grad_(is_needed) for value, is_needed in zip(data, data_needed, strict=True)
                ]
                end = self._step(start[0], start[1], start[2], pytree.tree_unflatten(shared, structure), has_dye)
                sources = [*start, *(value for value in shared if value.requires_grad)]
                parts = torch.autograd.grad(end, sources, (q_bar, v_bar), allow_unused=True, materialize_grads=True)
            q_bar, v_bar = parts[0] + bars[0][:, step], parts[1] + bars[1][:, step]
            controls_bar[:, step] = parts[2]
            for total, part in zip(sums, parts[3:], strict=True):
                total += part
        with outside_transforms():
            leaf_bars = [
                torch.zeros_like(leaf) if is_needed else None for leaf, is_needed in zip(own, needed, strict=True)
            ]
            results = [value for value in data if value.requires_grad]
            if results:
                sources = [leaf for leaf in own if leaf.requires_grad]
                parts = torch.autograd.grad(results, sources, sums, allow_unused=True, materialize_grads=True)
                for bar, part in zip((bar for bar in leaf_bars if bar is not None), parts, strict=True):
                    bar += part
        return q_bar, v_bar, controls_bar, *leaf_bars


def _first(steps: Tensor) -> Tensor:
    """First marked step of each world, counted from one; −1 for none."""
    return torch.where(steps.any(1), steps.int().argmax(1) + 1, -1)
