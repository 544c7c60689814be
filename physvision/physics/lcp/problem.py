"""What is to be solved: a general mixed problem, or the one of rigid bodies with joints, contacts and friction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError
from physvision.core.checks import check_finite, check_like, check_shape, check_tensor


@dataclass(frozen=True)
class Problem:
    """Find z with w = A z + b, where w = 0 in the first `free` rows and z ≥ 0, w ≥ 0, z·w = 0 in the others.

    Attributes:
        matrix: A, (batch, n, n).
        vector: b, (batch, n).
        free: how many of the first unknowns may have any sign; their rows are equations.
    """

    matrix: Float[Tensor, "batch n n"]
    vector: Float[Tensor, "batch n"]
    free: int = 0

    def __post_init__(self) -> None:
        batch, n = check_tensor("problem.vector", self.vector).shape
        check_like("problem.matrix", check_tensor("problem.matrix", self.matrix), "problem.vector", self.vector)
        check_shape("problem.matrix", self.matrix, (batch, n, n))
        if not 0 <= self.free <= n:
            raise InputError(f"problem.free: expected 0 to {n}, the number of unknowns, got {self.free}")


@dataclass(frozen=True)
class MechanicalProblem:
    """One step or one impact of rigid bodies: the mixed problem of de Avila Belbute-Peres et al., NeurIPS 2018.

    With velocities v, joint impulses y, contact impulses c, friction impulses f and the slip γ of each contact,
        M v − Jeᵀ y − Jcᵀ c − Jfᵀ f = p,     Je v = j,
        0 ≤ c ⟂ Jc v + r ≥ 0,     0 ≤ f ⟂ Jf v + E γ ≥ 0,     0 ≤ γ ⟂ μ c − Eᵀ f ≥ 0,
    where E sums the friction directions of one contact. Rows may be redundant, contacts idle, μ zero.

    Attributes:
        mass: M, (batch, nv, nv), symmetric and positive definite.
        momentum: p = M v₀ + dt f, (batch, nv).
        joints: Je, (batch, ne, nv); None for no joints.
        contacts: Jc, (batch, nc, nv), positive apart; None for no contacts.
        friction: Jf, (batch, nc · directions, nv), the directions of one contact next to each other and
            positively spanning the tangent (in the plane: t and −t); None for no friction.
        coefficients: μ, (batch, nc); needed with `friction`.
        joint_rates: j, (batch, ne); None for zero.
        rebound: r, restitution times the approach velocity (negative) before the impact, (batch, nc); None for zero.
    """

    mass: Float[Tensor, "batch nv nv"]
    momentum: Float[Tensor, "batch nv"]
    joints: Float[Tensor, "batch ne nv"] | None = None
    contacts: Float[Tensor, "batch nc nv"] | None = None
    friction: Float[Tensor, "batch nf nv"] | None = None
    coefficients: Float[Tensor, "batch nc"] | None = None
    joint_rates: Float[Tensor, "batch ne"] | None = None
    rebound: Float[Tensor, "batch nc"] | None = None

    def __post_init__(self) -> None:
        batch, nv = check_tensor("problem.momentum", self.momentum).shape
        ne, nc, nf = self.sizes
        expected = {
            "mass": (batch, nv, nv),
            "joints": (batch, ne, nv),
            "contacts": (batch, nc, nv),
            "friction": (batch, nf, nv),
            "coefficients": (batch, nc),
            "joint_rates": (batch, ne),
            "rebound": (batch, nc),
        }
        for name, shape in expected.items():
            value = getattr(self, name)
            if value is not None:
                label = f"problem.{name}"
                check_like(label, check_tensor(label, value), "problem.momentum", self.momentum)
                check_shape(label, value, shape)
        if nf and (nc == 0 or nf % nc):
            raise InputError(f"problem.friction: expected a multiple of {nc} rows, one set a contact, got {nf}")
        if nf and self.coefficients is None:
            raise InputError("problem.coefficients: friction rows need the coefficient of each contact; none was given")
        if self.coefficients is not None and bool((check_finite("problem.coefficients", self.coefficients) < 0).any()):
            raise InputError(f"problem.coefficients: expected μ ≥ 0, got {float(self.coefficients.min())}")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of joint rows, of contacts and of friction rows."""
        ne, nc, nf = (0 if rows is None else rows.shape[1] for rows in (self.joints, self.contacts, self.friction))
        return ne, nc, nf

    def assemble(self) -> Problem:
        """The same as one general problem, unknowns in the order v, y, c, f, γ.

        Joint rows carry a compliance of about the rounding error, so that redundant rows share their load.
        """
        batch, nv = self.momentum.shape
        ne, nc, nf = self.sizes
        blocks = [self.mass]
        for rows in (self.joints, self.contacts, self.friction):
            if rows is not None:
                blocks.append(-rows.transpose(1, 2))
        slips = nc if nf else 0
        size = nv + ne + nc + nf + slips
        top = torch.cat([*blocks, self.momentum.new_zeros(batch, nv, slips)], 2)
        parts = [top]
        if self.joints is not None and ne:
            # In units of Je M⁻¹ Jeᵀ, whose size is that of |Je|²/|M|.
            unit = self.joints.detach().square().amax((1, 2)) / self.mass.detach().abs().amax((1, 2))
            compliance = 64 * torch.finfo(torch.float64).eps * unit
            own = compliance[:, None, None] * torch.eye(ne, dtype=top.dtype, device=top.device)
            parts.append(torch.cat([self.joints, own, top.new_zeros(batch, ne, size - nv - ne)], 2))
        if self.contacts is not None:
            parts.append(torch.cat([self.contacts, top.new_zeros(batch, nc, size - nv)], 2))
        if self.friction is not None and self.coefficients is not None and nf:
            sums = (
                torch.eye(nc, dtype=top.dtype, device=top.device).repeat_interleave(nf // nc, 0).expand(batch, -1, -1)
            )
            parts.append(torch.cat([self.friction, top.new_zeros(batch, nf, ne + nc + nf), sums], 2))
            bound = torch.diag_embed(self.coefficients)
            blank = top.new_zeros(batch, nc, nv + ne)
            parts.append(torch.cat([blank, bound, -sums.transpose(1, 2), top.new_zeros(batch, nc, nc)], 2))
        rates = top.new_zeros(batch, ne) if self.joint_rates is None else self.joint_rates
        rebound = top.new_zeros(batch, nc) if self.rebound is None else self.rebound
        vector = torch.cat([-self.momentum, -rates, rebound, top.new_zeros(batch, nf + slips)], 1)
        return Problem(torch.cat(parts, 1), vector, nv + ne)
