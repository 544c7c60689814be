"""The best affine change of controls for a linearised motion and a quadratic cost: one launch for all worlds."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.cost import Cost
from physvision.control.feedback import Bounds
from physvision.core import Trajectory
from physvision.kernels import precision
from physvision.kernels.launching import argument, array, launch
from physvision.physics import Engine
from physvision.physics.engine import Overrides


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
    cost: Cost,
    bounds: Bounds,
    damping: Float[Tensor, " batch"],
    properties: Overrides = None,
) -> Improvement:
    """The policy that the linear-quadratic problem about a trajectory asks for.

    Args:
        engine: whose motion it is.
        trajectory: about which motion and cost are expanded.
        controls: that lead along it.
        cost: what is made small.
        bounds: of the controls.
        damping: added to the curvature of the cost over the controls, so that changes are small.
        properties: as in `Engine.rollout`.
    """
    A, B = engine.linearize(trajectory, controls, properties)
    expanded = cost.expanded(engine, trajectory, controls)
    batch, steps, n, m = *B.shape[:2], 2 * engine.nv, engine.nu
    device, kernels = trajectory.q.device, _kernels()

    def whole(tensor: Tensor) -> Tensor:
        return tensor.detach().double().contiguous()

    gradient, hessian = whole(expanded.gradient), whole(expanded.hessian)
    e: Any = kernels.Expansion()
    parts = {
        "A": whole(A),
        "B": whole(B),
        "cost_x": gradient[..., :n],
        "cost_u": gradient[..., n:],
        "cost_xx": hessian[..., :n, :n],
        "cost_ux": hessian[..., n:, :n],
        "cost_uu": hessian[..., n:, n:],
        "final_x": whole(expanded.final_gradient),
        "final_xx": whole(expanded.final_hessian),
        "controls": whole(controls),
        "low": whole(bounds.low),
        "high": whole(bounds.high),
    }
    for name, tensor in parts.items():
        setattr(e, name, array(tensor))
    real, integer = kernels.layout.lengths(n, m)
    found = {
        "k": gradient.new_zeros(batch, steps, m),
        "K": gradient.new_zeros(batch, steps, m, n),
        "promise": gradient.new_zeros(batch),
        "found": torch.zeros(batch, dtype=torch.int32, device=device),
    }
    policy: Any = kernels.Policy()
    for name, tensor in found.items():
        setattr(policy, name, array(tensor))
    memory = gradient.new_empty(batch, real), torch.empty(batch, integer, dtype=torch.int32, device=device)
    inputs = [e, argument(whole(damping)), steps, n, m, *(argument(each) for each in memory), policy]
    launch(kernels.backward, batch, inputs, device, 0.002 * batch * steps * (n + m) ** 3)
    like = controls.dtype
    return Improvement(found["k"].to(like), found["K"].to(like), found["promise"], found["found"] == 1)


def _kernels() -> Any:
    precision.start_warp()
    from physvision.control import kernels

    return kernels
