"""Problem of one step or impact: bodies with joints, contacts and friction, one for each world of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError
from physvision.core.checks import check_finite, check_like, check_shape, check_tensor

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
