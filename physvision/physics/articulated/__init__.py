"""Trees of rigid bodies in reduced coordinates, differentiable in everything."""

from physvision.physics.articulated.engine import Articulation, tree
from physvision.physics.articulated.model import Body, Joint
from physvision.physics.articulated.properties import Properties

__all__ = ["Articulation", "Body", "Joint", "Properties", "tree"]
