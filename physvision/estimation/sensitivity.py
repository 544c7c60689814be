"""Sensitivities of a whole motion to its inputs, by the engine's own gradients.

An engine has a backward pass, but no forward mode, and a motion has many more numbers than unknowns. So all steps are
differentiated at once, each in its own worlds, and the sensitivities S of the states follow step by step:

    S_{k+1} = A_k S_k + G_k dθ/dz + B_k du_k/dz,      A, G, B of step k by state, properties and control
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.physics.engine import Engine


def state_sensitivities(
    engine: Engine,
    motion: Trajectory,
    properties: Mapping[str, Tensor],
    controls: Float[Tensor, "batch steps nu"] | None,
    initial: Float[Tensor, "batch tangent unknowns"],
    property_jacobians: Mapping[str, Tensor],
    control_jacobian: Float[Tensor, "batch steps nu unknowns"] | None = None,
) -> Float[Tensor, "batch times tangent unknowns"]:
    """Return the derivatives of all states by the unknowns, in the tangent space of (q, v).

    Args:
        engine: Engine that made the motion.
        motion: Rollout to differentiate.
        properties: Property leaves of the rollout, with a value for each world.
        controls: Controls of the rollout.
        initial: Derivative of the initial state.
        property_jacobians: Derivative of each leaf, (batch, *leaf, unknowns).
        control_jacobian: Derivative of the controls; None where they do not depend on unknowns.
    """
    batch, steps, rows = motion.batch, motion.steps, 2 * engine.nv
    chunk = max(1, DEFAULT_SETTINGS.max_batched_worlds // (steps * rows))
    sensitivities = []
    for first in range(0, batch, chunk):
        part = slice(first, first + chunk)
        leaves = {name: value[part] for name, value in properties.items()}
        trajectory = Trajectory(motion.q[part], motion.v[part], dt=motion.dt)
        by_state, by_leaf, by_control = step_jacobians(
            engine, trajectory, leaves, None if controls is None else controls[part]
        )
        drive = torch.zeros(*by_state.shape[:3], initial.shape[-1], dtype=initial.dtype, device=initial.device)
        for name, jacobian in property_jacobians.items():
            # (batch, steps, rows, numbers) times (batch, numbers, unknowns)
            numbers = by_leaf[name].reshape(*by_state.shape[:3], -1)
            drive = drive + numbers @ jacobian[part].reshape(len(numbers), 1, -1, jacobian.shape[-1])
        if control_jacobian is not None:
            drive = drive + by_control @ control_jacobian[part]
        propagated = _propagate(by_state, drive, initial[part])
        sensitivities.append(torch.cat([initial[part].unsqueeze(1), propagated], 1))
    return torch.cat(sensitivities)


def _propagate(
    by_state: Float[Tensor, "batch steps tangent tangent"],
    drive: Float[Tensor, "batch steps tangent unknowns"],
    initial: Float[Tensor, "batch tangent unknowns"],
) -> Float[Tensor, "batch steps tangent unknowns"]:
    """Solve S_{k+1} = A_k S_k + d_k for all steps by a parallel prefix scan.

    Two successive steps are one: A₂ (A₁ S + d₁) + d₂ = (A₂ A₁) S + (A₂ d₁ + d₂). So each step is combined with the one
    before, then each pair with the pair before, and so on: log₂ n rounds instead of n small products.
    """
    first = by_state[:, :1] @ initial.unsqueeze(1) + drive[:, :1]
    transition, offset = by_state, torch.cat([first, drive[:, 1:]], 1)
    stride, steps = 1, by_state.shape[1]
    while stride < steps:
        offset = torch.cat([offset[:, :stride], offset[:, stride:] + transition[:, stride:] @ offset[:, :-stride]], 1)
        transition = torch.cat([transition[:, :stride], transition[:, stride:] @ transition[:, :-stride]], 1)
        stride *= 2
    return offset


def step_jacobians(
    engine: Engine,
    motion: Trajectory,
    properties: Mapping[str, Tensor],
    controls: Float[Tensor, "batch steps nu"] | None = None,
) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """Return the Jacobians of each step's end by its start, each leaf and its control, (batch, steps, 2 nv, …)."""
    batch, steps, rows, like = motion.batch, motion.steps, 2 * engine.nv, motion.q
    start = State(motion.q[:, :-1].flatten(0, 1), motion.v[:, :-1].flatten(0, 1)).detach().repeat(rows)
    worlds = start.batch
    leaves = {
        name: value.detach().repeat_interleave(steps * rows, 0).requires_grad_() for name, value in properties.items()
    }
    dq, dv = (like.new_zeros(worlds, engine.nv, requires_grad=True) for _ in range(2))
    du = like.new_zeros(worlds, engine.nu, requires_grad=True)
    with torch.enable_grad():
        control = None if controls is None else controls.detach().flatten(0, 1).repeat_interleave(rows, 0) + du
        perturbed = State(engine.integrate(start.q, dq), start.v + dv)
        end = engine.step(perturbed, control, leaves or None)
        change = torch.cat([engine.difference(end.q.detach(), end.q), end.v], 1)
        selected = (change * torch.eye(rows, dtype=like.dtype, device=like.device).repeat(worlds // rows, 1)).sum()
        gradients = torch.autograd.grad(
            selected, (dq, dv, du, *leaves.values()), allow_unused=True, materialize_grads=True
        )
    by_q, by_v, by_control, *by_leaf = (
        gradient.reshape(batch, steps, rows, *gradient.shape[1:]) for gradient in gradients
    )
    return torch.cat([by_q, by_v], -1), dict(zip(leaves, by_leaf, strict=True)), by_control
