"""Solve linear complementarity problems in batches, with the analytic gradient at the solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from physvision.core import Status
from physvision.kernels.batched_function import Operation, Tensors, apply
from physvision.kernels.launching import argument, launch
from physvision.kernels.precision import start_warp
from physvision.physics.lcp.problem import MechanicalProblem, Problem

# The scaled residual below which a world counts as solved, and the compliance that shares redundant load.
TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}
RIDGE = 16 * torch.finfo(torch.float64).eps

# A guess at the time that a problem of size n takes, divided by n³.
MICROSECONDS = 0.01


@dataclass(frozen=True)
class Solution:
    """The answer to a `Problem`.

    Attributes:
        z: the unknowns, (batch, n).
        w: A z + b, (batch, n).
        status: per world: converged, scaled residual max |min(z, w)|, iterations.
    """

    z: Float[Tensor, "batch n"]
    w: Float[Tensor, "batch n"]
    status: Status


@dataclass(frozen=True)
class MechanicalSolution:
    """The answer to a `MechanicalProblem`.

    Attributes:
        velocity: v after the step or impact, (batch, nv).
        joint: joint impulses y, (batch, ne).
        contact: contact impulses c, (batch, nc).
        friction: friction impulses f, (batch, nf).
        slip: speed of sliding γ of each contact, (batch, nc); empty without friction.
        status: as in `Solution`.
    """

    velocity: Float[Tensor, "batch nv"]
    joint: Float[Tensor, "batch ne"]
    contact: Float[Tensor, "batch nc"]
    friction: Float[Tensor, "batch nf"]
    slip: Float[Tensor, "batch slips"]
    status: Status


class _Solve(Operation):
    """z(A, b), solved in a kernel and differentiated implicitly."""

    differentiable = 1

    def __init__(self, free: int) -> None:
        self.free = free

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Solutions, residuals and iterations."""
        from physvision.physics.lcp.kernels.launch import solve_problems
        from physvision.physics.lcp.kernels.workspace import whole_layout

        start_warp()
        dtype, device = inputs[1].dtype, inputs[1].device
        matrix, vector = (given.detach().double().contiguous() for given in inputs)
        batch, n = vector.shape
        found = torch.zeros_like(vector), vector.new_zeros(batch), vector.new_zeros(batch, dtype=torch.int32)
        reals, wholes = whole_layout.lengths(n, self.free)
        real = vector.new_empty(batch, reals)
        integer = found[2].new_empty(batch, wholes)
        arrays = [argument(given) for given in (matrix.reshape(batch, n * n), vector, real, integer, *found)]
        kernel: Any = solve_problems
        launch(
            kernel,
            batch,
            [*arrays[:2], n, self.free, RIDGE, *arrays[2:]],
            device,
            batch * MICROSECONDS * n**3,
        )
        return found[0].to(dtype), found[1].to(dtype), found[2]

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Cotangents of A and b from that of z."""
        # With free rows F and complementary rows C, the solution satisfies
        #     A_F z + b_F = 0,    z_C ∘ (A_C z + b_C) = 0.
        # Its differential, with w = A z + b,
        #     A_F dz = −(dA_F z + db_F),    w_C ∘ dz_C + z_C ∘ A_C dz = −z_C ∘ (dA_C z + db_C).
        # Divided by z_C + w_C, which strict complementarity keeps from zero, with s = z/(z + w) and s = 1 on F:
        #     K dz = −s ∘ (dA z + db),    K = diag(s) A + diag(1 − s).
        # For a loss with ∂L/∂z = g: one solve with the transpose, Kᵀ y = g, gives
        #     ∂L/∂b = −s ∘ y,    ∂L/∂A = (∂L/∂b) zᵀ.
        # This is equation 10 of de Avila Belbute-Peres et al., 2018, after Amos and Kolter, 2017 (OptNet), scaled.
        # A ridge of the rounding error shares the load of redundant rows; rows with z = w = 0 count as idle.
        matrix, vector, z = (saved.double() for saved in (*inputs, outputs[0]))
        dtype = gradients[0].dtype
        w = (matrix @ z.unsqueeze(2)).squeeze(2) + vector
        w = torch.where(w > 64 * torch.finfo(dtype).eps * vector.abs().amax(1, True), w, 0.0)
        total = z + w
        share = torch.where(total > 0, z / torch.where(total > 0, total, 1.0), 0.0)
        share[:, : self.free] = 1.0
        ridge = RIDGE * matrix.abs().amax((1, 2)).unsqueeze(1)
        system = share.unsqueeze(2) * matrix + torch.diag_embed(1 - share + share * ridge)
        answer, _ = torch.linalg.solve_ex(system.transpose(1, 2), gradients[0].double().unsqueeze(2))
        to_vector = -share * answer.squeeze(2)
        return (to_vector.unsqueeze(2) * z.unsqueeze(1)).to(dtype), to_vector.to(dtype)


@overload
def solve(problem: Problem) -> Solution: ...
@overload
def solve(problem: MechanicalProblem) -> MechanicalSolution: ...
def solve(problem: Problem | MechanicalProblem) -> Solution | MechanicalSolution:
    """Solve every world's problem; differentiable in all its matrices and vectors.

    A world that has no solution, or whose solution is not found, is named in the status and disturbs no other.
    """
    general = problem if isinstance(problem, Problem) else problem.assemble()
    z, residual, iterations = apply(_Solve(general.free), general.matrix, general.vector)
    converged = (residual < TOLERANCE[z.dtype]) & torch.isfinite(z).all(1)
    status = Status(converged, residual, iterations.long(), torch.where(converged, -1, 0))
    if isinstance(problem, Problem):
        w = (general.matrix @ z.unsqueeze(2)).squeeze(2) + general.vector
        return Solution(z, w, status)
    ne, nc, nf = problem.sizes
    velocity, joint, contact, friction, slip = z.split([problem.momentum.shape[1], ne, nc, nf, nc if nf else 0], 1)
    return MechanicalSolution(velocity, joint, contact, friction, slip, status)
