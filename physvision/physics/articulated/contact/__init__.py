"""What of a tree may touch what else, and of the world."""

from physvision.physics.articulated.contact.filters import Touching, all_touching
from physvision.physics.articulated.contact.pairs import Pairs

__all__ = ["Pairs", "Touching", "all_touching"]
