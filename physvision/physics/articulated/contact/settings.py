"""Settings of contact: the method, friction, restitution and excluded pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physvision.core import InputError
from physvision.physics.articulated.contact.laws import Compliant, CompliantLaws, Contact, ContactLaw, law_of

FRICTION_MODELS = ("cone", "pyramid")


@dataclass(frozen=True)
class ContactSettings:
    """Contact method, friction and restitution of a mechanism, and the pairs that do not collide.

    Attributes:
        method: Contact method: "event" for hard contact by events, "compliant" or a `Compliant` for MuJoCo's contact,
            another `ContactLaw` that steps by a fixed time, or None for no contact.
        friction: Coefficient of sliding friction of all shapes, or of each shape.
        restitution: Coefficient of restitution of all shapes.
        rotational_friction: Lengths (torsional, rolling) of all shapes, or of each shape, m. Times the normal force,
            they are the largest moments against spinning about the contact normal and against rolling.
        friction_model: Friction "cone", isotropic, or "pyramid", with independent bounds along two tangents.
        exclude: Pairs of names of bodies that do not collide; "world" stands for the static shapes.
    """

    method: Contact = "event"
    friction: float | Sequence[float] = 0.0
    restitution: float = 0.0
    rotational_friction: Sequence[float] | np.ndarray = (0.0, 0.0)
    friction_model: str = "cone"
    exclude: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        if self.friction_model not in FRICTION_MODELS:
            raise InputError(
                f"friction_model: expected one of {', '.join(FRICTION_MODELS)}, got {self.friction_model!r}"
            )
        law = self.law
        try:
            hash(law)
        except TypeError as error:
            raise InputError(f"contact: expected a law that is hashable, as a frozen dataclass is; {error}") from error
        if self.is_pyramid and law is not None and not law.has_friction_pyramid:
            raise InputError(f"friction_model: 'pyramid' needs contact='event', got {type(law).__name__}")
        if self.compliant_law is not None and self.restitution != 0:
            raise InputError(f"restitution: compliant contact has none, expected 0, got {self.restitution}")

    @property
    def law(self) -> ContactLaw | None:
        """Law of a method that steps by a fixed time; None for contact by events, and for no contact."""
        return law_of(self.method)

    @property
    def compliant_law(self) -> Compliant | CompliantLaws | None:
        """Law of compliant contact; None for other methods."""
        law = self.law
        return law if isinstance(law, Compliant | CompliantLaws) else None

    @property
    def by_events(self) -> bool:
        """If true, contact is simulated by events."""
        return self.method is not None and self.law is None

    @property
    def is_pyramid(self) -> bool:
        """If true, friction is bounded by a pyramid."""
        return self.friction_model == "pyramid"


def contact_settings(contact: Contact | ContactSettings) -> ContactSettings:
    """Settings of a contact method that is given by its name, its law or whole settings."""
    return contact if isinstance(contact, ContactSettings) else ContactSettings(contact)
