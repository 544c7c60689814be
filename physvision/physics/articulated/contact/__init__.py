"""What of a tree may touch what else, and of the world."""

from physvision.physics.articulated.contact.features import features
from physvision.physics.articulated.contact.laws import Compliant, CompliantEach, Contact, ContactLaw, law_of
from physvision.physics.articulated.contact.listed import ContactList, nearest
from physvision.physics.articulated.contact.shape_pairs import Touching, all_touching

__all__ = [
    "Compliant",
    "CompliantEach",
    "Contact",
    "ContactLaw",
    "ContactList",
    "Touching",
    "all_touching",
    "features",
    "law_of",
    "nearest",
]
