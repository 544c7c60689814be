"""How a whole motion changes with what it is made from, by the engine's own gradients.

An engine has a backward pass, and no forward one; a motion has many more numbers than unknowns. So all steps are
differentiated at once, each in worlds of its own, and the derivatives of the states follow step by step:

    S_{k+1} = A_k S_k + G_k dθ/dz + B_k du_k/dz,      A, G, B of step k by state, properties and control
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.physics.engine import Engine

_WORLDS = 65_536  # at a time: bounds the memory of long motions


def motion_slopes(
    engine: Engine,
    motion: Trajectory,
    properties: Mapping[str, Tensor],
    controls: Float[Tensor, "batch steps nu"] | None,
    start: Float[Tensor, "batch tangent unknowns"],
    property_slopes: Mapping[str, Tensor],
    control_slopes: Float[Tensor, "batch steps nu unknowns"] | None = None,
) -> Float[Tensor, "batch times tangent unknowns"]:
    """Derivatives of all states by unknowns, displacements of (q, v) in the tangent space.

    Args:
        engine: what moved.
        motion: its rollout.
        properties: leaves with a value for each world, as they were given.
        controls: as they were given.
        start: derivative of the initial state.
        property_slopes: derivative of each leaf, (batch, *leaf, unknowns).
        control_slopes: derivative of the controls; None where they do not depend on unknowns.
    """
    batch, steps, rows = motion.batch, motion.steps, 2 * engine.nv
    share = max(1, _WORLDS // (steps * rows))
    found = []
    for first in range(0, batch, share):
        some = slice(first, first + share)
        leaves = {name: value[some] for name, value in properties.items()}
        piece = Trajectory(motion.q[some], motion.v[some], dt=motion.dt)
        by_state, by_leaf, by_control = step_derivatives(
            engine, piece, leaves, None if controls is None else controls[some]
        )
        drive = torch.zeros(*by_state.shape[:3], start.shape[-1], dtype=start.dtype, device=start.device)
        for name, slope in property_slopes.items():
            # (batch, steps, rows, numbers) times (batch, numbers, unknowns)
            numbers = by_leaf[name].reshape(*by_state.shape[:3], -1)
            drive = drive + numbers @ slope[some].reshape(len(numbers), 1, -1, slope.shape[-1])
        if control_slopes is not None:
            drive = drive + by_control @ control_slopes[some]
        found.append(torch.cat([start[some].unsqueeze(1), _followed(by_state, drive, start[some])], 1))
    return torch.cat(found)


def _followed(
    by_state: Float[Tensor, "batch steps tangent tangent"],
    drive: Float[Tensor, "batch steps tangent unknowns"],
    start: Float[Tensor, "batch tangent unknowns"],
) -> Float[Tensor, "batch steps tangent unknowns"]:
    """S after each step of S_{k+1} = A_k S_k + d_k.

    Two steps in a row are one: A₂ (A₁ S + d₁) + d₂ = (A₂ A₁) S + (A₂ d₁ + d₂). So each step is joined with the one
    before, then each pair with the pair before, and so on: log₂ n rounds for all at once instead of n small products.
    """
    first = by_state[:, :1] @ start.unsqueeze(1) + drive[:, :1]
    through, driven = by_state, torch.cat([first, drive[:, 1:]], 1)
    reach, steps = 1, by_state.shape[1]
    while reach < steps:
        driven = torch.cat([driven[:, :reach], driven[:, reach:] + through[:, reach:] @ driven[:, :-reach]], 1)
        through = torch.cat([through[:, :reach], through[:, reach:] @ through[:, :-reach]], 1)
        reach *= 2
    return driven


def step_derivatives(
    engine: Engine,
    motion: Trajectory,
    properties: Mapping[str, Tensor],
    controls: Float[Tensor, "batch steps nu"] | None = None,
) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """Derivatives of each step's end by its start, by each leaf and by its control: (batch, steps, 2 nv, …)."""
    batch, steps, rows, like = motion.batch, motion.steps, 2 * engine.nv, motion.q
    start = State(motion.q[:, :-1].flatten(0, 1), motion.v[:, :-1].flatten(0, 1)).detach().repeat(rows)
    worlds = start.batch
    leaves = {
        name: value.detach().repeat_interleave(steps * rows, 0).requires_grad_() for name, value in properties.items()
    }
    dq, dv = (like.new_zeros(worlds, engine.nv, requires_grad=True) for _ in range(2))
    du = like.new_zeros(worlds, engine.nu, requires_grad=True)
    with torch.enable_grad():
        given = None if controls is None else controls.detach().flatten(0, 1).repeat_interleave(rows, 0) + du
        begun = State(engine.integrate(start.q, dq), start.v + dv)
        end = engine.step(begun, given, leaves or None)
        change = torch.cat([engine.difference(end.q.detach(), end.q), end.v], 1)
        picked = (change * torch.eye(rows, dtype=like.dtype, device=like.device).repeat(worlds // rows, 1)).sum()
        slopes = torch.autograd.grad(picked, (dq, dv, du, *leaves.values()), allow_unused=True, materialize_grads=True)
    gq, gv, gu, *by_leaf = (slope.reshape(batch, steps, rows, *slope.shape[1:]) for slope in slopes)
    return torch.cat([gq, gv], -1), dict(zip(leaves, by_leaf, strict=True)), gu
