"""Backward pass of iLQR: the affine policy that is optimal for a linearized motion and a quadratic cost.

One launch solves all worlds; `kernels/riccati.py` has the method.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.cost import Residuals
from physvision.core import Trajectory
from physvision.kernels import precision
from physvision.kernels.launching import LaunchCache, RecordedLaunch, argument
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.physics.feedback import Bounds


class BackwardPass(NamedTuple):
    """Result of the backward pass.

    Attributes:
        change: Change of each step's feedforward control.
        gains: Feedback gains of each step.
        expected_decrease: Decrease of the cost that the change promises.
        status: If true, the quadratic problem has a solution.
    """

    change: Float[Tensor, "batch steps nu"]
    gains: Float[Tensor, "batch steps nu twice_nv"]
    expected_decrease: Float[Tensor, " batch"]
    status: Bool[Tensor, " batch"]


def backward_pass(
    engine: Engine,
    trajectory: Trajectory,
    controls: Float[Tensor, "batch steps nu"],
    residuals: Residuals,
    bounds: Bounds,
    damping: Float[Tensor, " batch"],
    properties: Overrides = None,
) -> BackwardPass:
    """Solve the linear-quadratic problem about a trajectory.

    Args:
        engine: Engine whose motion is linearized.
        trajectory: Trajectory about which it is linearized.
        controls: Controls that lead along the trajectory.
        residuals: Residuals of the cost about the trajectory.
        bounds: Bounds of the controls.
        damping: Number added to the cost's curvature in the controls, which makes changes smaller.
        properties: Overrides of the engine's properties, as in `Engine.rollout`.
    """
    A, B = engine.linearize(trajectory, controls, properties)
    inputs = [A, B, *residuals[:-1], controls, *bounds, damping]
    batch, steps, n, m = B.shape
    options = {"dtype": torch.float64, "device": B.device}
    outputs = [torch.empty(*sizes, **options) for sizes in ((batch, steps, m), (batch, steps, m, n), (batch,))]
    tensors = [
        *(value.to(torch.float64) for value in inputs),
        *outputs,
        torch.empty(batch, dtype=torch.int32, device=B.device),
    ]
    key = (residuals.control_weight, *((tensor.shape, tensor.stride()) for tensor in tensors))
    launch = _LAUNCH_CACHE.take(key, B.device, lambda: _launch(tensors, residuals.control_weight))
    for index, tensor in enumerate(tensors):
        launch.set_memory(index, tensor)
    launch.run()
    _LAUNCH_CACHE.give_back(key, B.device, launch)
    change, gains, expected_decrease = (output.to(controls) for output in outputs)
    return BackwardPass(change, gains, expected_decrease, tensors[-1] == 1)


_LAUNCH_CACHE = LaunchCache()


def _launch(tensors: list[Tensor], control_weight: float) -> RecordedLaunch:
    """Prepare the launch for tensors of these shapes."""
    kernels, B = _kernels(), tensors[1]
    batch, steps, n, m = B.shape
    num_scalars, num_integers = kernels.layout.lengths(n, m)
    scalars = torch.zeros(batch, -(-num_scalars // 4) * 4, dtype=torch.float64, device=B.device)
    integers = torch.empty(batch, num_integers, dtype=torch.int32, device=B.device)
    workspace = [argument(scalars), argument(scalars.unflatten(1, (-1, 4)), kernels.four), argument(integers)]
    inputs = [*map(argument, tensors), control_weight, *workspace]
    microseconds = 0.001 * batch * steps * (n + m) ** 3
    return RecordedLaunch(kernels.backward, batch, inputs, B.device, microseconds, (scalars, integers))


def _kernels() -> Any:
    precision.start_warp()
    from physvision.control import kernels

    return kernels
