"""Solve linear complementarity problems in batches, with the analytic gradient at the solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import torch
import warp as wp
from jaxtyping import Float
from torch import Tensor

from physvision.core import Status
from physvision.kernels.precision import start_warp
from physvision.physics.lcp.kernels.launch import solve_problems
from physvision.physics.lcp.kernels.workspace import inside_sizes
from physvision.physics.lcp.problem import MechanicalProblem, Problem

# The scaled residual below which a world counts as solved, and the compliance that shares redundant load.
TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}
RIDGE = 16 * torch.finfo(torch.float64).eps


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


class _Solve(torch.autograd.Function):
    """z(A, b), solved in a kernel and differentiated implicitly."""

    @staticmethod
    def forward(matrix: Tensor, vector: Tensor, free: int) -> tuple[Tensor, Tensor, Tensor]:
        start_warp()
        dtype = vector.dtype
        matrix, vector = matrix.detach().double().contiguous(), vector.detach().double().contiguous()
        batch, n = vector.shape
        bound = n - free
        z = torch.zeros_like(vector)
        residual = vector.new_zeros(batch)
        iterations = torch.zeros(batch, dtype=torch.int32, device=vector.device)
        reals, wholes = inside_sizes(bound)
        real = vector.new_empty(batch, reals + free * free + free * (bound + 1) + n)
        integer = iterations.new_empty(batch, wholes + free)
        outputs = [wp.from_torch(t) for t in (real, integer, z, residual, iterations)]
        inputs = [wp.from_torch(t) for t in (matrix.reshape(batch, n * n), vector)]
        wp.launch(
            solve_problems,
            dim=batch,
            inputs=[*inputs, n, free, RIDGE, *outputs],
            device=wp.device_from_torch(vector.device),
        )
        return z.to(dtype), residual.to(dtype), iterations

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        """Keep what the backward pass needs."""
        matrix, vector, ctx.free = inputs
        ctx.save_for_backward(matrix, vector, output[0])
        ctx.mark_non_differentiable(output[1], output[2])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor, Tensor, None]:
        """Cotangents of the inputs from those of the outputs."""
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
        matrix, vector, z = (saved.double() for saved in ctx.saved_tensors)
        dtype = gradients[0].dtype
        w = (matrix @ z.unsqueeze(2)).squeeze(2) + vector
        w = torch.where(w > 64 * torch.finfo(dtype).eps * vector.abs().amax(1, True), w, 0.0)
        total = z + w
        share = torch.where(total > 0, z / torch.where(total > 0, total, 1.0), 0.0)
        share[:, : ctx.free] = 1.0
        ridge = RIDGE * matrix.abs().amax((1, 2)).unsqueeze(1)
        system = share.unsqueeze(2) * matrix + torch.diag_embed(1 - share + share * ridge)
        answer, _ = torch.linalg.solve_ex(system.transpose(1, 2), gradients[0].double().unsqueeze(2))
        to_vector = -share * answer.squeeze(2)
        return (to_vector.unsqueeze(2) * z.unsqueeze(1)).to(dtype), to_vector.to(dtype), None

    @staticmethod
    def vmap(  # pyright: ignore[reportIncompatibleMethodOverride]
        info: Any, in_dims: tuple, matrix: Tensor, vector: Tensor, free: int
    ) -> tuple[tuple, tuple]:
        """Fold the mapped dimension into the batch."""
        matrix, vector = (
            t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
            for t, dim in zip((matrix, vector), in_dims[:2], strict=True)
        )
        shape = vector.shape[:2]
        outputs = _Solve.apply(matrix.flatten(0, 1), vector.flatten(0, 1), free)
        return tuple(t.unflatten(0, shape) for t in outputs), (0, 0, 0)


@overload
def solve(problem: Problem) -> Solution: ...
@overload
def solve(problem: MechanicalProblem) -> MechanicalSolution: ...
def solve(problem: Problem | MechanicalProblem) -> Solution | MechanicalSolution:
    """Solve every world's problem; differentiable in all its matrices and vectors.

    A world that has no solution, or whose solution is not found, is named in the status and disturbs no other.
    """
    general = problem if isinstance(problem, Problem) else problem.assemble()
    z, residual, iterations = _Solve.apply(general.matrix, general.vector, general.free)
    converged = (residual < TOLERANCE[z.dtype]) & torch.isfinite(z).all(1)
    status = Status(converged, residual, iterations.long(), torch.where(converged, -1, 0))
    if isinstance(problem, Problem):
        w = (general.matrix @ z.unsqueeze(2)).squeeze(2) + general.vector
        return Solution(z, w, status)
    ne, nc, nf = problem.sizes
    velocity, joint, contact, friction, slip = z.split([problem.momentum.shape[1], ne, nc, nf, nc if nf else 0], 1)
    return MechanicalSolution(velocity, joint, contact, friction, slip, status)
