"""Trees of rigid bodies in reduced coordinates, differentiable with respect to states, controls and properties."""

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
    ContactSettings,
)
from physvision.physics.articulated.engine import Articulation
from physvision.physics.articulated.loading import load
from physvision.physics.articulated.model.bodies import Body, Joint
from physvision.physics.articulated.model.fluid import Fluid
from physvision.physics.articulated.model.loop_joints import LoopJoint
from physvision.physics.articulated.model.mechanism import Mechanism
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.articulated.model.transmissions import Transmission

__all__ = [
    "Articulation",
    "Body",
    "Compliant",
    "ContactLaw",
    "ContactList",
    "ContactSettings",
    "Fluid",
    "Joint",
    "LoopJoint",
    "Mechanism",
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
        *(Articulation, Body, Compliant, ContactSettings, Fluid, Joint, LoopJoint, Mechanism, Transmission, load, tree),
        *(cartpole, cartpole_properties, chain, chain_properties, from_dh, from_dh_properties),
    ),
)
