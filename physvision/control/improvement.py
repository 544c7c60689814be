"""The best affine change of controls for a linearised motion and a quadratic cost: one launch for all worlds."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.cost import Residuals
from physvision.core import Trajectory
from physvision.kernels import precision
from physvision.kernels.launching import Repeated, Shelf, argument
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
    A, B = engine.linearize(trajectory, controls, properties)
    given = [A, B, *residuals[:-1], controls, *bounds, damping]
    batch, steps, n, m = B.shape
    like = {"dtype": torch.float64, "device": B.device}
    found = [torch.empty(*sizes, **like) for sizes in ((batch, steps, m), (batch, steps, m, n), (batch,))]
    moving = [
        *(each.to(torch.float64) for each in given),
        *found,
        torch.empty(batch, dtype=torch.int32, device=B.device),
    ]
    key = (residuals.effort, *((each.shape, each.stride()) for each in moving))
    launch = _SHELF.take(key, B.device, lambda: _launch(moving, residuals.effort))
    for at, tensor in enumerate(moving):
        launch.move(at, tensor)
    launch.run()
    _SHELF.give(key, B.device, launch)
    change, gains, promise = (each.to(controls) for each in found)
    return Improvement(change, gains, promise, moving[-1] == 1)


_SHELF = Shelf()


def _launch(moving: list[Tensor], effort: float) -> Repeated:
    """The launch for tensors of these shapes."""
    kernels, B = _kernels(), moving[1]
    batch, steps, n, m = B.shape
    real, whole = kernels.layout.lengths(n, m)
    numbers = torch.zeros(batch, -(-real // 4) * 4, dtype=torch.float64, device=B.device)
    work = [argument(numbers), argument(numbers.unflatten(1, (-1, 4)), kernels.four)]
    integers = torch.empty(batch, whole, dtype=torch.int32, device=B.device)
    inputs = [*map(argument, moving), effort, *work, argument(integers)]
    cost = 0.001 * batch * steps * (n + m) ** 3
    return Repeated(kernels.backward, batch, inputs, B.device, cost, (numbers, integers))


def _kernels() -> Any:
    precision.start_warp()
    from physvision.control import kernels

    return kernels
