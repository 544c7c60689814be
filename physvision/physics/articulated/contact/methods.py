"""The methods of contact by name: what `contact=` takes."""

from __future__ import annotations

from physvision.core import InputError
from physvision.physics.articulated.contact.compliant import Compliant, CompliantEach
from physvision.physics.articulated.contact.fixed_step import Complementarity, Relaxed
from physvision.physics.articulated.contact.yielding import Penalty, Soft

Law = Penalty | Soft | Complementarity | Relaxed | Compliant | CompliantEach
Contact = str | Law | None
LAWS: dict[str, type[Law]] = {
    "penalty": Penalty,
    "soft": Soft,
    "complementarity": Complementarity,
    "relaxed": Relaxed,
    "compliant": Compliant,
}


def law_of(contact: Contact) -> Law | None:
    """The law of a method that steps by a fixed time; None for contact by events, and for none.

    Raises:
        InputError: no such method.
    """
    if isinstance(contact, Law):
        return contact
    if contact in (None, "event"):
        return None
    if contact not in LAWS:
        names = ", ".join(repr(name) for name in ("event", *LAWS))
        laws = ", ".join(law.__name__ for law in LAWS.values())
        raise InputError(f"contact: expected {names}, an instance of {laws}, or None, got {contact!r}")
    return LAWS[contact]()
