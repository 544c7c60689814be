"""A rollout and its adjoint as an operation on batches: states are kept, and steps are done again on the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from typing_extensions import override

from physvision.kernels.batched_function import Operation, Tensors
from physvision.kernels.launching import outside_transforms
from physvision.physics.fluid.step import Prepared, Stepper
from physvision.physics.fluid.waves import Waves


class Rollout(Operation):
    """States, (batch, steps + 1, …), from the first, the controls and the leaves of the properties; all in float64.

    Args:
        stepper: one step.
        waves: the same where all axes are periodic, for velocities alone.
        shapes: of dye and of both velocities.
        jets: acceleration of the unknown faces at a control of 1, (jets, …) of each velocity.
        names: of the leaves.
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

    def parts(self, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Dye and both velocities as fields."""
        dye, u, w = self.shapes
        count = u[0] * u[1]
        return q.unflatten(-1, dye), v[..., :count].unflatten(-1, u), v[..., count:].unflatten(-1, w)

    def pushes(self, control: Tensor) -> tuple[Tensor, Tensor]:
        """Accelerations of the unknown faces by the jets."""
        if not control.shape[1]:
            return control.new_zeros(()), control.new_zeros(())
        x, y = (torch.einsum("bj,jxy->bxy", control, jet) for jet in self.jets)
        return x, y

    def prepared(self, leaves: Tensors) -> Prepared:
        """What all steps share."""
        return self.stepper.prepare(dict(zip(self.names, leaves, strict=True)), self.shapes)

    def _step(self, q: Tensor, v: Tensor, control: Tensor, known: Prepared, dyed: bool) -> tuple[Tensor, Tensor]:
        dye, u, w = self.parts(q, v)
        dye, u, w, _ = self.stepper(dye if dyed else None, u, w, self.pushes(control), known)
        return q if dye is None else dye.flatten(1), torch.cat([u.flatten(1), w.flatten(1)], 1)

    def _dyed(self, q: Tensor, leaves: Tensors) -> bool:
        """Whether there is, or may come, any dye; a GPU is not waited for to know."""
        inflow = leaves[self.names.index("inflow_dye")]
        return q.is_cuda or bool(q.any()) or bool(inflow.any())

    def _plain(self, q: Tensor, leaves: Sequence[Tensor]) -> bool:
        """Whether waves of velocity are all there is."""
        solid = leaves[self.names.index("solid")]
        return len(q) > 0 and not self._dyed(q, tuple(leaves)) and not bool(solid.any())

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """All q and v, first bad and first coarse step."""
        q, v, controls, *leaves = inputs
        steps = controls.shape[1]
        all_q, all_v = (each.new_empty(len(each), steps + 1, each.shape[1]) for each in (q, v))
        all_q[:], all_v[:, 0] = q[:, None], v
        with torch.no_grad():
            if self.waves is not None and self._plain(q, leaves):
                viscosity, gravity = (leaves[self.names.index(name)] for name in ("viscosity", "gravity"))
                self.waves.forward(all_v, controls, viscosity, gravity)
            else:
                known, dyed = self.prepared(tuple(leaves)), self._dyed(q, tuple(leaves))
                for step in range(steps):
                    q, v = self._step(q, v, controls[:, step], known, dyed)
                    all_q[:, step + 1], all_v[:, step + 1] = q, v
            bad, coarse = self._judged(all_q[:, 1:], all_v[:, 1:])
        return all_q, all_v, bad, coarse

    def _judged(self, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The first step after which something is not finite, and that in which something passes more than a cell."""
        if not q.shape[0] * q.shape[1]:
            none = q.new_full((len(q),), -1, dtype=torch.long)
            return none, none.clone()
        count = self.shapes[1][0] * self.shapes[1][1]
        # The largest numbers tell, and take no copy of all states.
        dye, along_x, along_y = (
            torch.maximum(each.amax(2), -each.amin(2)) for each in (q, v[..., :count], v[..., count:])
        )
        hx, hy = self.stepper.spacing
        finite = dye.isfinite() & along_x.isfinite() & along_y.isfinite()
        return _first(~finite), _first(self.stepper.h * torch.maximum(along_x / hx, along_y / hy) > 1.0)

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Cotangents of the first state, of controls and of the leaves: torch's reverse of each step, last first."""
        controls, leaves = inputs[2], inputs[3:]
        q, v = outputs[:2]
        bars = [torch.zeros_like(all) if bar is None else bar for all, bar in zip((q, v), gradients, strict=True)]
        wanted = needed[3:]
        build_dataclass = needed[0] or any(wanted[self.names.index(name)] for name in ("inflow_dye", "solid"))
        if self.waves is not None and not build_dataclass and self._plain(q[:, 0], leaves):
            ends = [torch.zeros_like(leaf) if yes else None for leaf, yes in zip(leaves, wanted, strict=True)]
            viscosity, gravity = (self.names.index(name) for name in ("viscosity", "gravity"))
            v_bar, controls_bar, viscosity_bar, gravity_bar = self.waves.backward(
                v, bars[1], controls, leaves[viscosity], leaves[gravity], wanted[viscosity]
            )
            ends[viscosity] = viscosity_bar if wanted[viscosity] else None
            ends[gravity] = gravity_bar if wanted[gravity] else None
            return None, v_bar, controls_bar, *ends
        q_bar, v_bar = bars[0][:, -1], bars[1][:, -1]
        controls_bar = torch.zeros_like(controls)
        # Without dye nothing depends on it but itself.
        dyed = needed[0] or wanted[self.names.index("inflow_dye")] or self._dyed(q[:, 0], leaves)
        with outside_transforms(), torch.enable_grad():
            own = [leaf.detach().requires_grad_(asked) for leaf, asked in zip(leaves, wanted, strict=True)]
            made, shape = pytree.tree_flatten(self.prepared(tuple(own)))
        # What steps share is a leaf of each step; its sum goes back to the properties once, at the end.
        asked = [each.requires_grad for each in made]
        sums = [torch.zeros_like(each) for each in made if each.requires_grad]
        for step in reversed(range(controls.shape[1])):
            with outside_transforms(), torch.enable_grad():
                given = [each.detach().requires_grad_() for each in (q[:, step], v[:, step], controls[:, step])]
                held = [each.detach().requires_grad_(yes) for each, yes in zip(made, asked, strict=True)]
                after = self._step(given[0], given[1], given[2], pytree.tree_unflatten(held, shape), dyed)
                sought = [*given, *(each for each in held if each.requires_grad)]
                found = torch.autograd.grad(after, sought, (q_bar, v_bar), allow_unused=True, materialize_grads=True)
            q_bar, v_bar = found[0] + bars[0][:, step], found[1] + bars[1][:, step]
            controls_bar[:, step] = found[2]
            for total, part in zip(sums, found[3:], strict=True):
                total += part
        with outside_transforms():
            ends = [torch.zeros_like(leaf) if yes else None for leaf, yes in zip(own, wanted, strict=True)]
            results = [each for each in made if each.requires_grad]
            if results:
                sought = [leaf for leaf in own if leaf.requires_grad]
                found = torch.autograd.grad(results, sought, sums, allow_unused=True, materialize_grads=True)
                for end, part in zip((end for end in ends if end is not None), found, strict=True):
                    end += part
        return q_bar, v_bar, controls_bar, *ends


def _first(steps: Tensor) -> Tensor:
    """Of each world the first step, counted from one, that is true; −1 where none is."""
    return torch.where(steps.any(1), steps.int().argmax(1) + 1, -1)
