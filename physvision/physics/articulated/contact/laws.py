"""Contact laws that are solved once in each step of fixed length: values of `contact=` beside "event"."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from physvision.core import InputError
from physvision.core.checks import check_positive


class ContactLaw(ABC):
    """Base class of contact laws; a subclass with kernels of its own extends the engine.

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

    The penalty pulls penetrating contacts towards a reference acceleration −b u − k d g for the contact velocity u and
    the separation g. With equal parameters the result is MuJoCo's to rounding: pyramidal friction, contact points
    midway between the surfaces, tangents along capsules, joint limits. The impedance d grows with the penetration
    within `impedance_range`. Sliding contacts are lifted by the pyramid, unlike under Coulomb's law.

    Attributes:
        time_constant: Time constant T of the return from penetration, s; steps should be at most half as long.
        damping_ratio: Damping ratio ζ; k = 1/(d₁ T ζ)², b = 2/(d₁ T), with the largest impedance d₁.
        impedance_range: Smallest and largest impedance d.
        width: Penetration at which the impedance is largest, m, or rad of a joint.
    """

    kernels: ClassVar[str] = "physvision.physics.articulated.kernels.rollouts.convex_contact"

    time_constant: float = 0.02
    damping_ratio: float = 1.0
    impedance_range: tuple[float, float] = (0.9, 0.95)
    width: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("time_constant", "damping_ratio", "width"):
            check_positive(name, getattr(self, name))
        low, high = self.impedance_range
        if not 0 < low <= high < 1:
            raise InputError(
                f"impedance_range: expected two increasing numbers between zero and one, got {self.impedance_range}"
            )

    @property
    def reference(self) -> tuple[float, float, float]:
        """Stiffness k and damping b of the reference acceleration, and the width."""
        high = self.impedance_range[1]
        return (high * self.time_constant * self.damping_ratio) ** -2, 2 / (high * self.time_constant), self.width

    def laws(self, pairs: int, joint_limits: int) -> tuple[Sequence[Compliant], Sequence[Compliant]]:
        """Repeat these parameters for every pair of shapes and for every joint with limits."""
        return [self] * pairs, [self] * joint_limits


@dataclass(frozen=True)
class CompliantPairs(ContactLaw):
    """Compliant contact with separate parameters for every pair and joint, as model files have them.

    Attributes:
        pairs: Parameters of the pairs of shapes, in the order of the engine's shape pairs.
        joint_limits: Parameters of the joints with limits, in their order.
    """

    kernels: ClassVar[str] = Compliant.kernels

    pairs: tuple[Compliant, ...] = ()
    joint_limits: tuple[Compliant, ...] = ()

    def laws(self, pairs: int, joint_limits: int) -> tuple[Sequence[Compliant], Sequence[Compliant]]:
        """Return the parameters of all pairs of shapes, and of all joints with limits."""
        for name, count, laws in (("pairs", pairs, self.pairs), ("joint_limits", joint_limits, self.joint_limits)):
            if len(laws) != count:
                raise InputError(f"{name}: expected {count} laws, got {len(laws)}")
        return self.pairs, self.joint_limits


Contact = str | ContactLaw | None
DEFAULT_COMPLIANT = Compliant()  # one object, by whose identity recorded launches are found again


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
    return DEFAULT_COMPLIANT
