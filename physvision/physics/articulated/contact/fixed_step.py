"""Complementarity solved once in each step: what `contact=` takes beside "event", for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from physvision.core import InputError
from physvision.core.checks import check_positive


@dataclass(frozen=True)
class Complementarity:
    """0 ≤ λ_n ⟂ u_n ≥ 0 and the cone of friction, at the end of each step, of all that touches when it begins.

    What strikes within a step bounces when the next begins: the derivative of a bounce is that of the grid of time.

    Attributes:
        compliance: 1/kg, R in u = (A + R) λ + b, by which contacts yield to their impulses; of a joint's stop
            1/(kg m²).
    """

    kernels: ClassVar[str] = "physvision.physics.articulated.kernels.rollouts.complementarity"

    compliance: float = 0.0

    def __post_init__(self) -> None:
        if not self.compliance >= 0:
            raise InputError(f"compliance: expected a number from zero on, got {self.compliance}")

    @property
    def numbers(self) -> dict[str, float]:
        """What kernels read."""
        return vars(self)


@dataclass(frozen=True)
class Relaxed:
    """The same, but λ_n u_n = κ > 0: a point on the central path, smooth in velocities and friction.

    Attributes:
        smoothing: κ, J. Contacts that bear λ part at κ / λ, and what sticks creeps.
    """

    kernels: ClassVar[str] = "physvision.physics.articulated.kernels.rollouts.relaxed"

    smoothing: float = 1e-6

    def __post_init__(self) -> None:
        check_positive("smoothing", self.smoothing)

    @property
    def numbers(self) -> dict[str, float]:
        """What kernels read."""
        return vars(self)
