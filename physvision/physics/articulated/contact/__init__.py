"""What of a tree may touch what else, and of the world."""

from physvision.physics.articulated.contact.features import features
from physvision.physics.articulated.contact.filters import Touching, all_touching
from physvision.physics.articulated.contact.listed import ContactList, nearest
from physvision.physics.articulated.contact.pairs import Pairs
from physvision.physics.articulated.contact.yielding import Contact, Penalty, Soft, Yielding, law_of

__all__ = [
    "Contact",
    "ContactList",
    "Pairs",
    "Penalty",
    "Soft",
    "Touching",
    "Yielding",
    "all_touching",
    "features",
    "law_of",
    "nearest",
]
