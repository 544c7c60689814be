"""Parameters of the contact laws that are compared; each is a value of `contact=`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from physvision.core import InputError
from physvision.core.checks import check_positive
from physvision.physics.articulated import ContactLaw


@dataclass(frozen=True)
class Penalty(ContactLaw):
    """Spring and damper between penetrating shapes: N = max(0, −k g − c ġ) for a separation g below zero.

    Steps must be short against √(mass / stiffness), and gradients through a bounce are right only then.

    Attributes:
        stiffness: Spring constant k, N/m; at a joint limit N m/rad.
        damping: Damping constant c, N s/m; at a joint limit N m s/rad.
        slip_speed: Speed below which friction falls to zero, so that it is smooth, m/s.
    """

    kernels: ClassVar[str] = "contact_comparison.kernels.penalty"

    stiffness: float = 1e4
    damping: float = 10.0
    slip_speed: float = 1e-2

    def __post_init__(self) -> None:
        check_positive("stiffness", self.stiffness)
        check_positive("slip_speed", self.slip_speed)
        _check_not_negative("damping", self.damping)

    @property
    def parameters(self) -> dict[str, float]:
        """Fields of the struct `Law` of the kernels."""
        return {**vars(self), "distance": 0.0}


@dataclass(frozen=True)
class Soft(ContactLaw):
    """Smooth repulsion that begins before shapes touch: N = k δ log(1 + exp(−g / δ)) for a separation g.

    Attributes:
        stiffness: Spring constant k at deep penetration, N/m; at a joint limit N m/rad.
        distance: Separation δ at which the force begins, m.
        slip_speed: Speed below which friction falls to zero, so that it is smooth, m/s.
    """

    kernels: ClassVar[str] = "contact_comparison.kernels.penalty"

    stiffness: float = 1e4
    distance: float = 1e-3
    slip_speed: float = 1e-2

    def __post_init__(self) -> None:
        for name in ("stiffness", "distance", "slip_speed"):
            check_positive(name, getattr(self, name))

    @property
    def parameters(self) -> dict[str, float]:
        """Fields of the struct `Law` of the kernels."""
        return {**vars(self), "damping": 0.0}


@dataclass(frozen=True)
class Complementarity(ContactLaw):
    """Complementarity 0 ≤ λ_n ⟂ u_n ≥ 0 and the friction cone at the end of each step, for the contacts at its start.

    An impact within a step takes effect when the next step begins: a bounce has the derivative of the time grid.

    Attributes:
        compliance: Compliance R in u = (A + R) λ + b, 1/kg; at a joint limit 1/(kg m²).
    """

    kernels: ClassVar[str] = "contact_comparison.kernels.complementarity"
    has_friction_pyramid: ClassVar[bool] = True

    compliance: float = 0.0

    def __post_init__(self) -> None:
        _check_not_negative("compliance", self.compliance)

    @property
    def parameters(self) -> dict[str, float]:
        """Fields of the struct `Law` of the kernels."""
        return vars(self)


@dataclass(frozen=True)
class Relaxed(ContactLaw):
    """Relaxed complementarity λ_n u_n = κ > 0: a point on the central path, smooth in velocities and friction.

    Attributes:
        smoothing: Relaxation κ, J. Contacts with impulse λ separate at κ / λ, and sticking contacts creep.
    """

    kernels: ClassVar[str] = "contact_comparison.kernels.relaxed"

    smoothing: float = 1e-6

    def __post_init__(self) -> None:
        check_positive("smoothing", self.smoothing)

    @property
    def parameters(self) -> dict[str, float]:
        """Fields of the struct `Law` of the kernels."""
        return vars(self)


def _check_not_negative(name: str, value: float) -> None:
    """Raise an InputError for a negative number and for NaN."""
    if not value >= 0:
        raise InputError(f"{name}: expected a number from zero on, got {value}")
