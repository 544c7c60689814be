"""What of a tree may touch what of the world."""

from physvision.physics.articulated.contact.pairs import Pairs

__all__ = ["Pairs"]
