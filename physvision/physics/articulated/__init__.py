"""Trees of rigid bodies in reduced coordinates, differentiable with respect to states, controls and properties."""

from physvision.core.registry import register, register_all
from physvision.physics.articulated.builders import (
    cartpole as cartpole,
    cartpole_properties as cartpole_properties,
    chain as chain,
    chain_properties as chain_properties,
    from_dh as from_dh,
    from_dh_properties as from_dh_properties,
    tree as tree,
)
from physvision.physics.articulated.contact import (
    Compliant as Compliant,
    ContactLaw as ContactLaw,
    ContactList as ContactList,
    ContactSettings as ContactSettings,
)
from physvision.physics.articulated.engine import Articulation as Articulation
from physvision.physics.articulated.loading import ServoSettings as ServoSettings, load as load
from physvision.physics.articulated.model.bodies import Body as Body, Joint as Joint
from physvision.physics.articulated.model.mechanism import (
    Fluid as Fluid,
    LoopJoint as LoopJoint,
    Mechanism as Mechanism,
)
from physvision.physics.articulated.model.properties import TreeProperties as TreeProperties
from physvision.physics.articulated.model.transmissions import Transmission as Transmission

register_all(
    "physvision.physics.articulated",
    (
        *(Articulation, Body, Compliant, ContactSettings, Fluid, Joint, LoopJoint, Mechanism, ServoSettings),
        *(Transmission, tree),
        *(cartpole, cartpole_properties, chain, chain_properties, from_dh, from_dh_properties),
    ),
)
register("physvision.physics.articulated.load", reads_files=True)(load)
