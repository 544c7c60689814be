"""Contact as a force that depends on how far shapes overlap: what `contact=` takes beside "event", for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from physvision.core import InputError
from physvision.core.checks import check_positive


@dataclass(frozen=True)
class Penalty:
    """A spring and a damper where shapes overlap: N = max(0, −k g − c ġ) for a gap g below zero.

    Steps must be short against √(mass / stiffness), and gradients through a bounce are right only then.

    Attributes:
        stiffness: k, N/m; of a joint's stop N m/rad.
        damping: c, N s/m; of a joint's stop N m s/rad.
        slip_speed: m/s below which friction falls to nothing, for it is smooth.
    """

    kernels: ClassVar[str] = "physvision.physics.articulated.kernels.rollouts.yielding"

    stiffness: float = 1e4
    damping: float = 10.0
    slip_speed: float = 1e-2

    def __post_init__(self) -> None:
        check_positive("stiffness", self.stiffness)
        check_positive("slip_speed", self.slip_speed)
        if not self.damping >= 0:
            raise InputError(f"damping: expected a number from zero on, got {self.damping}")

    @property
    def numbers(self) -> dict[str, float]:
        """What kernels read."""
        return {**vars(self), "distance": 0.0}


@dataclass(frozen=True)
class Soft:
    """A smooth force that begins before shapes touch: N = k δ log(1 + exp(−g / δ)).

    Attributes:
        stiffness: k, N/m, deep within each other; of a joint's stop N m/rad.
        distance: δ, m, at which the force begins.
        slip_speed: m/s below which friction falls to nothing, for it is smooth.
    """

    kernels: ClassVar[str] = "physvision.physics.articulated.kernels.rollouts.yielding"

    stiffness: float = 1e4
    distance: float = 1e-3
    slip_speed: float = 1e-2

    def __post_init__(self) -> None:
        for name in ("stiffness", "distance", "slip_speed"):
            check_positive(name, getattr(self, name))

    @property
    def numbers(self) -> dict[str, float]:
        """What kernels read."""
        return {**vars(self), "damping": 0.0}
