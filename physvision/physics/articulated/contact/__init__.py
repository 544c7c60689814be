"""Contact methods and their settings, pairs of shapes that may collide, and their contact features."""

from physvision.physics.articulated.contact.contact_list import ContactList, select_contacts
from physvision.physics.articulated.contact.features import pair_features
from physvision.physics.articulated.contact.laws import Compliant, CompliantPairs, Contact, ContactLaw
from physvision.physics.articulated.contact.settings import ContactSettings, contact_settings
from physvision.physics.articulated.contact.shape_pairs import ShapePair, default_shape_pairs

__all__ = [
    "Compliant",
    "CompliantPairs",
    "Contact",
    "ContactLaw",
    "ContactList",
    "ContactSettings",
    "ShapePair",
    "contact_settings",
    "default_shape_pairs",
    "pair_features",
    "select_contacts",
]
