"""What of a tree may touch what else, and of the world."""

from physvision.physics.articulated.contact.compliant import Compliant, CompliantEach
from physvision.physics.articulated.contact.features import features
from physvision.physics.articulated.contact.fixed_step import Complementarity, Relaxed
from physvision.physics.articulated.contact.listed import ContactList, nearest
from physvision.physics.articulated.contact.methods import Contact, Law, law_of
from physvision.physics.articulated.contact.shape_pairs import Touching, all_touching
from physvision.physics.articulated.contact.yielding import Penalty, Soft

__all__ = [
    "Complementarity",
    "Compliant",
    "CompliantEach",
    "Contact",
    "ContactList",
    "Law",
    "Penalty",
    "Relaxed",
    "Soft",
    "Touching",
    "all_touching",
    "features",
    "law_of",
    "nearest",
]
