"""Trees of rigid bodies in reduced coordinates, differentiable in everything."""

from physvision.core.registry import register_all
from physvision.physics.articulated.builders import (
    cartpole,
    cartpole_properties,
    chain,
    chain_properties,
    from_dh,
    from_dh_properties,
    tree,
)
from physvision.physics.articulated.contact import (
    Compliant,
    ContactLaw,
    ContactList,
)
from physvision.physics.articulated.engine import Articulation
from physvision.physics.articulated.loading import load
from physvision.physics.articulated.model.fluid import Medium
from physvision.physics.articulated.model.kinematic_tree import Body, Joint
from physvision.physics.articulated.model.loop_joints import Connection
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.articulated.model.transmissions import Transmission

__all__ = [
    "Articulation",
    "Body",
    "Compliant",
    "Connection",
    "ContactLaw",
    "ContactList",
    "Joint",
    "Medium",
    "Transmission",
    "TreeProperties",
    "cartpole",
    "cartpole_properties",
    "chain",
    "chain_properties",
    "from_dh",
    "from_dh_properties",
    "load",
    "tree",
]

register_all(
    "physvision.physics.articulated",
    (
        *(Articulation, Body, Compliant, Connection, Joint, Medium, Transmission, load, tree),
        *(cartpole, cartpole_properties, chain, chain_properties, from_dh, from_dh_properties),
    ),
)
