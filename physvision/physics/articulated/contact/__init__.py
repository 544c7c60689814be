"""What of a tree may touch what else, and of the world."""

from physvision.physics.articulated.contact.features import features
from physvision.physics.articulated.contact.filters import Touching, all_touching
from physvision.physics.articulated.contact.listed import ContactList, nearest
from physvision.physics.articulated.contact.pairs import Pairs

__all__ = ["ContactList", "Pairs", "Touching", "all_touching", "features", "nearest"]
