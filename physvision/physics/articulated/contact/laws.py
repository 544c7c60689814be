"""Contact laws that are solved once in each step of fixed length: values of `contact=` beside "event"."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from physvision.core import InputError
from physvision.core.checks import check_positive


class ContactLaw(ABC):
    """Base class of contact laws; a subclass with kernels of its own extends the engine.

    A law is immutable and hashable, as a frozen dataclass is: launches are recorded for it, and found again by it.

    Attributes:
        kernels: Dotted name of the module, within a package called `kernels`, that has the Warp kernels `rollout` and
            `rollout_backward` (see `kernels.rollouts.template`) and the struct `Law` where there are parameters.
        has_friction_pyramid: If true, the law can replace the friction cone by a pyramid.
    """

    kernels: ClassVar[str]
    has_friction_pyramid: ClassVar[bool] = False

    @property
    def parameters(self) -> dict[str, float]:
        """Fields of the struct `Law` of the kernels, besides the length of a step, `dt`."""
        return {}


@dataclass(frozen=True)
class Compliant(ContactLaw):
    """MuJoCo's convex contact: the acceleration that minimizes ½ |a − a₀|² in the metric of the inertia plus a penalty.

    The penalty pulls constraints with an error toward a reference acceleration −b u − k d e for the velocity u of their
    rows and the error e, of a contact its separation. With equal parameters the result is MuJoCo's to rounding:
    pyramidal or elliptic friction, contact points midway between the surfaces, tangents along capsules, limits, dry
    friction, servos and equality constraints. The impedance d grows with the error within `impedance_range`. Sliding
    contacts are lifted by the cone, unlike under Coulomb's law.

    Attributes:
        time_constant: Time constant T of the return from penetration, s; steps should be at most half as long.
        damping_ratio: Damping ratio ζ; k = 1/(d₁ T ζ)², b = 2/(d₁ T), with the largest impedance d₁.
        impedance_range: Impedance d without an error, and with a large one.
        width: Error at which the impedance is largest, m, or rad of a joint; zero for the mean impedance everywhere.
        midpoint: Fraction of the width at which the impedance changes most.
        power: Power by which the impedance leaves its smallest and approaches its largest value, at least 1.
        stiffness: Stiffness k d₁², 1/s², in place of time constant and damping ratio; None to compute it.
        damping: Damping b d₁, 1/s, which belongs to `stiffness`.
    """

    kernels: ClassVar[str] = "physvision.physics.articulated.kernels.rollouts.convex_contact"

    time_constant: float = 0.02
    damping_ratio: float = 1.0
    impedance_range: tuple[float, float] = (0.9, 0.95)
    width: float = 1e-3
    midpoint: float = 0.5
    power: float = 2.0
    stiffness: float | None = None
    damping: float = 0.0

    def __post_init__(self) -> None:
        for name in ("time_constant", "damping_ratio"):
            check_positive(name, getattr(self, name))
        low, high = self.impedance_range
        if not (0 < low < 1 and 0 < high < 1):
            raise InputError(f"impedance_range: expected two numbers between zero and one, got {self.impedance_range}")
        in_range = self.width >= 0 and 0 < self.midpoint < 1 and self.power >= 1
        if not (in_range and (self.stiffness or 0.0) >= 0 and self.damping >= 0):
            raise InputError(
                "width, midpoint, power, stiffness, damping: expected at least zero, between zero and one, at least "
                f"one and twice at least zero, got {self.width}, {self.midpoint}, {self.power}, {self.stiffness}, "
                f"{self.damping}"
            )

    @property
    def reference(self) -> tuple[float, float, float]:
        """Stiffness k and damping b of the reference acceleration, and the width."""
        high, width = self.impedance_range[1], self.width or 1.0
        if self.stiffness is not None:
            return self.stiffness / high**2, self.damping / high, width
        return (high * self.time_constant * self.damping_ratio) ** -2, 2 / (high * self.time_constant), width

    @property
    def impedance(self) -> tuple[float, float]:
        """Impedance without an error, and with one of the width."""
        low, high = self.impedance_range
        mean = (low + high) / 2
        return (low, high) if self.width else (mean, mean)

    def expand(self, counts: ConstraintCounts) -> CompliantConstraints:
        """Repeat these parameters for all constraints."""
        row = CompliantRow(self)
        return CompliantConstraints(
            pairs=[row] * counts.pairs,
            limits=[row] * counts.limits,
            transmissions=[row] * counts.transmissions,
            loops=[row] * counts.loops,
        )


@dataclass(frozen=True)
class CompliantRow:
    """Parameters of one constraint.

    Attributes:
        law: Reference and impedance.
        mobility: Acceleration of the constraint by a force of one in the initial position, 1/kg or 1/(kg m²); None to
            compute it.
        angular_mobility: Acceleration by a moment of one that a weld's rows of orientation have, 1/(kg m²); None to
            compute it.
    """

    law: Compliant
    mobility: float | None = None
    angular_mobility: float | None = None


class ConstraintCounts(NamedTuple):
    """Numbers of constraints of each kind: pairs of shapes, joints with limits, transmissions and loop joints."""

    pairs: int
    limits: int
    transmissions: int
    loops: int


class CompliantConstraints(NamedTuple):
    """Parameters of all constraints of an engine, with the friction cone.

    Attributes:
        pairs: Parameters of the pairs of shapes.
        limits: Parameters of the joints with limits.
        transmissions: Parameters of the dry friction of velocities, then of the transmissions.
        loops: Parameters of the loop joints.
        is_elliptic: If true, the friction cone is elliptic, not a pyramid.
        friction_ratio: Ratio of the stiffness along friction to that along the normal (MuJoCo's `impratio`).
    """

    pairs: Sequence[CompliantRow]
    limits: Sequence[CompliantRow]
    transmissions: Sequence[CompliantRow]
    loops: Sequence[CompliantRow]
    is_elliptic: bool = False
    friction_ratio: float = 1.0


@dataclass(frozen=True, eq=False)  # recorded launches are found again by its identity
class CompliantLaws(ContactLaw):
    """Compliant contact with separate parameters for every constraint, as model files have them.

    Attributes:
        constraints: Parameters of all constraints, in the order of the engine.
    """

    kernels: ClassVar[str] = Compliant.kernels

    constraints: CompliantConstraints

    def expand(self, counts: ConstraintCounts) -> CompliantConstraints:
        """Return the parameters of all constraints."""
        for name, count in counts._asdict().items():
            rows = getattr(self.constraints, name)
            if len(rows) != count:
                raise InputError(f"{name}: expected {count} laws, got {len(rows)}")
        return self.constraints


Contact = str | ContactLaw | None


def law_of(contact: Contact) -> ContactLaw | None:
    """Return the law that `contact=` names; None for contact by events, and without contact.

    Raises:
        InputError: The name is not that of a method.
    """
    if isinstance(contact, ContactLaw):
        return contact
    if contact in (None, "event"):
        return None
    if contact != "compliant":
        raise InputError(f"contact: expected 'event', 'compliant', an instance of ContactLaw, or None, got {contact!r}")
    return Compliant()
