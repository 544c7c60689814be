"""Contact problems of rigid bodies, solved in batches, with the analytic gradient at the solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from physvision.core import InputError, Status
from physvision.core.checks import check_finite, check_like, check_shape, check_tensor
from physvision.kernels.batched_function import Operation, Tensors, apply
from physvision.kernels.launching import argument, launch
from physvision.kernels.precision import start_warp
from physvision.kernels.workspace import fill_struct
from physvision.physics.lcp.settings import SolverSettings

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Problem:
    """Mixed linear complementarity problem of rigid bodies (de Avila Belbute-Peres et al., NeurIPS 2018).

    With free velocities v°, inverse masses W and multipliers λ, y, τ of normals N, joints J and tangents T,
        v = v° + W (Jᵀ y + Nᵀ λ + Tᵀ τ),     J v + j = 0,     0 ≤ λ ⟂ N v + b ≥ 0,
        |τ| ≤ μ λ,  with T v = 0 or τ = −μ λ sign(T v).
    A row is one scalar constraint between two bodies of three velocities each. The body after the last is the world,
    which never moves. Rows may be redundant, contacts open, and μ zero.

    Attributes:
        inverse_mass: Inverse masses and inertia W of each body, (batch, bodies, 3); zero for a body that keeps its
            velocity.
        velocity: Velocities v° without joints and contacts, (batch, bodies, 3).
        joint_bodies: Pair of bodies of each joint row.
        joints: Joint rows J, (batch, joint rows, 2, 3); None for no joints.
        joint_offset: Offset j of each joint row, (batch, joint rows); None for zero.
        contact_bodies: Pair of bodies of each contact.
        normals: Normal rows N, positive where bodies part, (batch, contacts, 2, 3); None for no contacts.
        normal_offset: Offset b of each normal row, such as restitution times the velocity before an impact,
            (batch, contacts); None for zero.
        tangents: Tangential rows T, (batch, contacts, 2, 3); None for no friction.
        friction: Coefficients μ, (batch, contacts); needed with `tangents`.
    """

    inverse_mass: Float[Tensor, "batch bodies 3"]
    velocity: Float[Tensor, "batch bodies 3"]
    joint_bodies: Pairs = ()
    joints: Float[Tensor, "batch joint_rows 2 3"] | None = None
    joint_offset: Float[Tensor, "batch joint_rows"] | None = None
    contact_bodies: Pairs = ()
    normals: Float[Tensor, "batch contacts 2 3"] | None = None
    normal_offset: Float[Tensor, "batch contacts"] | None = None
    tangents: Float[Tensor, "batch contacts 2 3"] | None = None
    friction: Float[Tensor, "batch contacts"] | None = None

    def __post_init__(self) -> None:
        batch, bodies, _ = check_tensor("problem.velocity", self.velocity).shape
        joints, contacts = len(self.joint_bodies), len(self.contact_bodies)
        expected = {
            "inverse_mass": (batch, bodies, 3),
            "joints": (batch, joints, 2, 3),
            "joint_offset": (batch, joints),
            "normals": (batch, contacts, 2, 3),
            "normal_offset": (batch, contacts),
            "tangents": (batch, contacts, 2, 3),
            "friction": (batch, contacts),
        }
        for name, shape in expected.items():
            value = getattr(self, name)
            if value is not None:
                label = f"problem.{name}"
                check_like(label, check_tensor(label, value), "problem.velocity", self.velocity)
                check_shape(label, value, shape)
        for name, count in (("joint", joints), ("contact", contacts)):
            rows = "joints" if name == "joint" else "normals"
            if count and getattr(self, rows) is None:
                raise InputError(f"problem.{rows}: expected {count} rows, one for each pair of bodies, got None")
            pairs = getattr(self, f"{name}_bodies")
            if any(not 0 <= body <= bodies for pair in pairs for body in pair):
                raise InputError(f"problem.{name}_bodies: expected bodies 0 to {bodies}, the world, got {list(pairs)}")
        if self.tangents is not None and self.friction is None:
            raise InputError("problem.friction: tangents need the friction coefficient of each contact; got None")
        if bool((check_finite("problem.inverse_mass", self.inverse_mass) < 0).any()):
            raise InputError(f"problem.inverse_mass: expected at least 0, got {float(self.inverse_mass.min())}")
        if self.friction is not None and bool((check_finite("problem.friction", self.friction) < 0).any()):
            raise InputError(f"problem.friction: expected μ ≥ 0, got {float(self.friction.min())}")


# Estimated time of a problem of n rows, divided by n³, in microseconds.
MICROSECONDS = 0.01


@dataclass(frozen=True)
class Solution:
    """Velocities and multipliers that solve a `Problem`; only the velocities carry gradients.

    Attributes:
        velocity: Velocities v of the bodies, (batch, bodies, 3).
        joint: Multipliers y of the joint rows, (batch, joint rows).
        normal: Multipliers λ of the contacts' normals, (batch, contacts).
        tangent: Multipliers τ of the contacts' tangents, (batch, contacts).
        mode: Contact modes: 0 open, 1 sliding, 2 sticking; (batch, contacts).
        status: Convergence, largest violation of the problem as a fraction of the largest row value, and
            factorizations of each world.
    """

    velocity: Float[Tensor, "batch bodies 3"]
    joint: Float[Tensor, "batch joint_rows"]
    normal: Float[Tensor, "batch contacts"]
    tangent: Float[Tensor, "batch contacts"]
    mode: Int[Tensor, "batch contacts"]
    status: Status


class _Solve(Operation):
    """Velocities (batch, 3 bodies) as a function of inverse masses, free velocities, rows, offsets and friction."""

    differentiable = 1

    def __init__(self, bodies: Tensor, joint_rows: int, settings: SolverSettings) -> None:
        self.bodies, self.joint_rows, self.settings = bodies, joint_rows, settings

    def _run(self, kernel: Any, inverse_mass: Tensor, rows: Tensor, *arrays: Any) -> None:
        from physvision.physics.lcp.kernels.problem import Settings, layout

        batch, size = rows.shape[:2]
        contacts = (size - self.joint_rows) // 2
        bodies = inverse_mass.shape[1] // 3 - 1
        reals, wholes = layout.lengths(bodies, self.joint_rows, contacts, contacts)
        values = [self.bodies, inverse_mass, rows.flatten(1), *arrays]
        values += [rows.new_empty(batch, reals), torch.empty(batch, wholes, dtype=torch.int32, device=rows.device)]
        sizes = [fill_struct(Settings, self.settings), bodies, self.joint_rows, contacts]
        launch(kernel, batch, [*sizes, *map(argument, values)], rows.device, batch * MICROSECONDS * size**3)

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Compute velocities, multipliers, friction ratios, modes, residuals and factorizations."""
        from physvision.physics.lcp.kernels.batch import solve_problems

        start_warp()
        inverse_mass, velocity, rows, offset, friction = (value.detach().contiguous() for value in inputs)
        multipliers, ratio, v = torch.zeros_like(offset), torch.zeros_like(friction), velocity.clone()
        mode = torch.zeros_like(friction, dtype=torch.int32)
        residual = offset.new_zeros(offset.shape[0])
        iterations = torch.zeros_like(residual, dtype=torch.int32)
        self._run(
            solve_problems, inverse_mass, rows, offset, friction, v, multipliers, ratio, mode, residual, iterations
        )
        return v, multipliers, ratio, mode, residual, iterations

    @override
    def backward(self, inputs: Tensors, outputs: Tensors, gradients: Tensors, needed: tuple[bool, ...]) -> Tensors:
        """Compute cotangents of the inputs from that of the velocities."""
        # The solution satisfies v = v° + W Cᵀ λ with R v + b = 0 over the active rows R, C their rows with friction:
        # C = N + ratio T where a contact slides. With F = R W Cᵀ and the cotangent v̄, one solve Fᵀ κ = C W v̄ gives
        #     z = v̄ − Rᵀ κ,    v̄° = z,    b̄ = −κ,    W̄ = z ∘ Cᵀ λ,    rows: λ_i W z − κ_i v,
        # and μ̄ = sign(ratio) λ T W z where it slides. This is equation 10 of de Avila Belbute-Peres et al., 2018,
        # after Amos and Kolter, 2017 (OptNet), on the active set.
        from physvision.physics.lcp.kernels.batch import solve_adjoints

        inverse_mass, _, rows, offset, friction = inputs
        v, multipliers, ratio, mode = outputs[:4]
        kappa = torch.zeros_like(offset)
        seed = gradients[0].contiguous()
        self._run(solve_adjoints, inverse_mass.contiguous(), rows.contiguous(), friction, seed, ratio, mode, kappa)
        columns = 3 * self.bodies.long().unsqueeze(2) + torch.arange(3, device=v.device)
        indices = columns.flatten().expand(v.shape[0], -1)

        def transposed(weights: Tensor) -> Tensor:
            return torch.zeros_like(v).scatter_add(1, indices, (rows * weights[..., None, None]).flatten(1))

        z = seed - transposed(kappa)
        force = multipliers[..., None, None]
        to_rows = force * (inverse_mass * z)[:, columns] - kappa[..., None, None] * v[:, columns]
        tangents = rows[:, self.joint_rows + 1 :: 2] * (inverse_mass * z)[:, columns[self.joint_rows + 1 :: 2]]
        to_friction = ratio.sign() * multipliers[:, self.joint_rows :: 2] * tangents.sum((2, 3)) * (mode == 1)
        return z * transposed(multipliers), z, to_rows, -kappa, to_friction


def solve(problem: Problem, settings: SolverSettings | None = None) -> Solution:
    """Solve every world's problem; the velocities are differentiable in all its tensors.

    Method: active-set solution from guessed contact modes, then a primal-dual interior point and, where friction folds
    its path, a relaxed convex problem; the same solver steps `rigid2d.World`. Use it for steps and impacts of your own;
    bodies have three velocities each. Redundant contacts share their load by a compliance that is then removed. A world
    without a solution is named in the status and disturbs no other.

    Args:
        problem: Bodies, rows, offsets and friction of each world.
        settings: Tolerances and limits of the solver; None for the defaults.
    """
    batch, bodies, _ = problem.velocity.shape
    joints, contacts = len(problem.joint_bodies), len(problem.contact_bodies)
    empty = problem.velocity.new_zeros
    world = empty(batch, 1, 3)
    normals = empty(batch, contacts, 2, 3) if problem.normals is None else problem.normals
    tangents = torch.zeros_like(normals) if problem.tangents is None else problem.tangents
    rows = torch.stack([normals, tangents], 2).flatten(1, 2)
    offset = empty(batch, contacts) if problem.normal_offset is None else problem.normal_offset
    offset = torch.stack([offset, torch.zeros_like(offset)], 2).flatten(1)
    friction = empty(batch, contacts) if problem.friction is None else problem.friction
    if joints and problem.joints is not None:
        ahead = empty(batch, joints) if problem.joint_offset is None else problem.joint_offset
        rows, offset = torch.cat([problem.joints, rows], 1), torch.cat([ahead, offset], 1)
    pairs = [*problem.joint_bodies, *(pair for pair in problem.contact_bodies for _ in range(2))]
    numbers = torch.tensor(pairs, dtype=torch.int32, device=rows.device).reshape(-1, 2)
    tensors = (
        torch.cat([problem.inverse_mass, world], 1).flatten(1),
        torch.cat([problem.velocity, world], 1).flatten(1),
        rows,
        offset,
        friction,
    )
    operation = _Solve(numbers, joints, settings or SolverSettings())
    v, multipliers, _, mode, residual, iterations = apply(operation, *(tensor.double() for tensor in tensors))
    dtype = problem.velocity.dtype
    converged = (residual < operation.settings.max_search_residual) & torch.isfinite(v).all(1)
    status = Status(converged, residual.to(dtype), iterations.long(), torch.where(converged, -1, 0))
    velocity, multipliers = v.unflatten(1, (-1, 3))[:, :bodies].to(dtype), multipliers.to(dtype)
    normal, tangent = multipliers[:, joints::2], multipliers[:, joints + 1 :: 2]
    return Solution(velocity, multipliers[:, :joints], normal, tangent, mode, status)
