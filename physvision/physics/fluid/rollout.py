"""A rollout and its adjoint as an operation on batches: states are kept, and steps are done again on the way back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import outside_transforms
from physvision.physics.fluid.step import Numbers, Stepper


class Rollout(Operation):
    """States, (batch, steps + 1, …), from the first, the controls and the leaves of the properties; all in float64.

    Args:
        stepper: one step.
        shapes: of dye and of both velocities.
        jets: acceleration of the unknown faces at a control of 1, (jets, …) of each velocity.
        names: of the leaves.
    """

    differentiable = 2

    def __init__(
        self, stepper: Stepper, shapes: tuple[tuple[int, int], ...], jets: tuple[Tensor, Tensor], names: tuple[str, ...]
    ) -> None:
        self.stepper, self.shapes, self.jets, self.names = stepper, shapes, jets, names

    def parts(self, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Dye and both velocities as fields."""
        dye, u, w = self.shapes
        count = u[0] * u[1]
        return q.unflatten(-1, dye), v[..., :count].unflatten(-1, u), v[..., count:].unflatten(-1, w)

    def pushes(self, control: Tensor) -> tuple[Tensor, Tensor]:
        """Accelerations of the unknown faces by the jets."""
        x, y = (torch.einsum("bj,jxy->bxy", control, jet) for jet in self.jets)
        return x, y

    def _step(self, q: Tensor, v: Tensor, control: Tensor, leaves: Tensors) -> tuple[Tensor, Tensor]:
        dye, u, w = self.parts(q, v)
        known = numbers(dict(zip(self.names, leaves, strict=True)))
        found = self.stepper(dye, u, w, self.pushes(control), known)
        dye, u, w = (field.flatten(1) for field in found[:3])
        return dye, torch.cat([u, w], 1)

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """All q and v, first bad and first coarse step."""
        q, v, controls, *leaves = inputs
        steps = controls.shape[1]
        all_q, all_v = (each.new_empty(len(each), steps + 1, each.shape[1]) for each in (q, v))
        bad, coarse = (torch.full((len(q),), -1, dtype=torch.long, device=q.device) for _ in range(2))
        with torch.no_grad():
            all_q[:, 0], all_v[:, 0] = q, v
            for step in range(steps):
                q, v = self._step(q, v, controls[:, step], tuple(leaves))
                all_q[:, step + 1], all_v[:, step + 1] = q, v
                finite = torch.isfinite(q).all(1) & torch.isfinite(v).all(1)
                bad = torch.where((bad < 0) & ~finite, step + 1, bad)
                coarse = torch.where((coarse < 0) & (self._cells_passed(v) > 1.0), step + 1, coarse)
        return all_q, all_v, bad, coarse

    def _cells_passed(self, v: Tensor) -> Tensor:
        """By the quickest flow of each world in a step."""
        count = self.shapes[1][0] * self.shapes[1][1]
        hx, hy = self.stepper.spacing
        pace = torch.cat([v[:, :count].abs() / hx, v[:, count:].abs() / hy], 1)
        return self.stepper.h * pace.amax(1) if len(v) else v.new_zeros(0)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Cotangents of the first state, of controls and of the leaves: torch's reverse of each step, last first."""
        controls, leaves = inputs[2], inputs[3:]
        q, v = outputs[:2]
        bars = [torch.zeros_like(all) if bar is None else bar for all, bar in zip((q, v), gradients, strict=True)]
        q_bar, v_bar = bars[0][:, -1], bars[1][:, -1]
        controls_bar = torch.zeros_like(controls)
        leaf_bars = [
            torch.zeros_like(leaf) if wanted else None for leaf, wanted in zip(leaves, needed[3:], strict=True)
        ]
        for step in reversed(range(controls.shape[1])):
            with outside_transforms(), torch.enable_grad():
                given = [each.detach().requires_grad_() for each in (q[:, step], v[:, step], controls[:, step])]
                own = [leaf.detach().requires_grad_(wanted) for leaf, wanted in zip(leaves, needed[3:], strict=True)]
                after = self._step(given[0], given[1], given[2], tuple(own))
                sought = [*given, *(leaf for leaf in own if leaf.requires_grad)]
                found = torch.autograd.grad(after, sought, (q_bar, v_bar), allow_unused=True, materialize_grads=True)
            q_bar, v_bar = found[0], found[1]
            controls_bar[:, step] = found[2]
            for bar, part in zip((bar for bar in leaf_bars if bar is not None), found[3:], strict=True):
                bar += part
            q_bar, v_bar = q_bar + bars[0][:, step], v_bar + bars[1][:, step]
        return q_bar, v_bar, controls_bar, *leaf_bars


def numbers(leaves: dict[str, Tensor]) -> Numbers:
    """Leaves with a value for each world, as a step uses them."""

    def single(value: Tensor) -> Tensor:
        return value[:, None, None]

    left, right, low, high = (single(side) for side in leaves["wall_speed"].unbind(1))
    return Numbers(
        viscosity=single(leaves["viscosity"]),
        diffusivity=single(leaves["diffusivity"]),
        gravity=(single(leaves["gravity"][:, 0]), single(leaves["gravity"][:, 1])),
        heaviness=single(leaves["heaviness"]),
        wall_speed=(left, right, low, high),
        inflow=leaves["inflow"][:, None],
        inflow_dye=leaves["inflow_dye"][:, None],
        solid=leaves["solid"],
        solid_time=single(leaves["solid_time"]),
    )
