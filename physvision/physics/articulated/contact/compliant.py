"""Contact as MuJoCo has it: forces that pull what overlaps after a reference acceleration. What `contact=` takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from physvision.core import InputError
from physvision.core.checks import check_positive


@dataclass(frozen=True)
class Compliant:
    """Of all accelerations the one that costs least: ½ |a − a₀|² by inertia, and what overlaps must follow a reference.

    MuJoCo's contact with its pyramid of friction, to rounding where the numbers are the same: points midway between
    surfaces, tangents along capsules, stops of joints. A contact that is overcome by g ought to accelerate by
    −b u − k d g, u being its velocity, and does so the more the larger d is against 1: a share that grows with g. What
    slides is lifted by the pyramid, which by Coulomb's law it is not.

    Attributes:
        time_constant: T, s, of how fast what overlaps is pushed out; steps should be at most half as long.
        damping_ratio: ζ; k = 1/(d₁ T ζ)², b = 2/(d₁ T), d₁ being the largest share.
        shares: least and largest d.
        width: m, or rad of a joint, of overlap at which d is largest.
    """

    kernels: ClassVar[str] = "physvision.physics.articulated.kernels.rollouts.convex_contact"
    numbers: ClassVar[dict[str, float]] = {}  # those of all, which kernels read; there are those of pairs and stops

    time_constant: float = 0.02
    damping_ratio: float = 1.0
    shares: tuple[float, float] = (0.9, 0.95)
    width: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("time_constant", "damping_ratio", "width"):
            check_positive(name, getattr(self, name))
        least, most = self.shares
        if not 0 < least <= most < 1:
            raise InputError(f"shares: expected the least and the largest, between zero and one, got {self.shares}")

    @property
    def reference(self) -> tuple[float, float, float]:
        """The numbers k and b, and the width."""
        most = self.shares[1]
        return (most * self.time_constant * self.damping_ratio) ** -2, 2 / (most * self.time_constant), self.width

    def each(self, pairs: int, stops: int) -> tuple[Sequence[Compliant], Sequence[Compliant]]:
        """The numbers of so many pairs of shapes, and of so many joints with stops."""
        return [self] * pairs, [self] * stops


@dataclass(frozen=True)
class CompliantEach:
    """The same with numbers of their own, as model files have them.

    Attributes:
        pairs: of pairs of shapes, in the order of the engine's `touching`.
        stops: of joints with limits, in their order.
    """

    kernels: ClassVar[str] = "physvision.physics.articulated.kernels.rollouts.convex_contact"
    numbers: ClassVar[dict[str, float]] = {}  # those of all, which kernels read; there are those of pairs and stops

    pairs: tuple[Compliant, ...] = ()
    stops: tuple[Compliant, ...] = ()

    def each(self, pairs: int, stops: int) -> tuple[Sequence[Compliant], Sequence[Compliant]]:
        """The numbers of all pairs of shapes, and of all joints with stops."""
        for name, count, given in (("pairs", pairs, self.pairs), ("stops", stops, self.stops)):
            if len(given) != count:
                raise InputError(f"{name}: expected numbers of {count}, got those of {len(given)}")
        return self.pairs, self.stops
