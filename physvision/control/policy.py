"""The best affine change of controls for a linearised motion and a quadratic cost: one launch for all worlds."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.cost import Residuals
from physvision.core import Trajectory
from physvision.kernels import precision
from physvision.kernels.launching import Recorded, Shelf, argument
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.physics.feedback import Bounds


class Improvement(NamedTuple):
    """Change of each step's control and its gains, the change of cost that they promise, and where they exist."""

    change: Float[Tensor, "batch steps nu"]
    gains: Float[Tensor, "batch steps nu twice_nv"]
    promise: Float[Tensor, " batch"]
    found: Bool[Tensor, " batch"]


def improvement(
    engine: Engine,
    trajectory: Trajectory,
    controls: Float[Tensor, "batch steps nu"],
    residuals: Residuals,
    bounds: Bounds,
    damping: Float[Tensor, " batch"],
    properties: Overrides = None,
) -> Improvement:
    """The policy that the linear-quadratic problem about a trajectory asks for.

    Args:
        engine: whose motion it is.
        trajectory: about which the motion is linearised.
        controls: that lead along it.
        residuals: of the cost that is made small, about the trajectory.
        bounds: of the controls.
        damping: added to the curvature of the cost over the controls, so that changes are small.
        properties: as in `Engine.rollout`.
    """
    given = [*engine.linearize(trajectory, controls, properties), *residuals, controls, *bounds, damping]
    key = (controls.device, *(each.shape for each in given))
    recorded = _SHELF.take(key, controls.device, lambda: _recorded(given))
    change, gains, promise, found = recorded(*given)
    _SHELF.give(key, controls.device, recorded)
    return Improvement(change.to(controls), gains.to(controls), promise, found == 1)


_SHELF = Shelf()


def _recorded(given: list[Tensor]) -> Recorded:
    """The launch for inputs of these shapes."""
    batch, steps, n, m = given[1].shape
    kernels, device = _kernels(), given[1].device
    memory = [torch.zeros(each.shape, dtype=torch.float64, device=device) for each in given]
    like = memory[0]
    results = [like.new_zeros(batch, steps, m), like.new_zeros(batch, steps, m, n), like.new_zeros(batch)]
    results.append(torch.zeros(batch, dtype=torch.int32, device=device))
    real, integer = kernels.layout.lengths(n, m)
    work = [like.new_empty(batch, real), torch.empty(batch, integer, dtype=torch.int32, device=device)]
    inputs = [argument(each) for each in (*memory, *work, *results)]
    return Recorded(kernels.backward, batch, inputs, memory, results, 0.002 * batch * steps * (n + m) ** 3, work)


def _kernels() -> Any:
    precision.start_warp()
    from physvision.control import kernels

    return kernels
