"""Elastic bodies and cloth on meshes of triangles and tetrahedra, with muscles, contact planes and colliders."""

from physvision.core.mesh import (
    Mesh as Mesh,
    box as box,
    cloth as cloth,
    disc as disc,
    read as read,
    rectangle as rectangle,
)
from physvision.core.registry import register_all
from physvision.physics.soft.body import SoftBody as SoftBody
from physvision.physics.soft.description import (
    Collider as Collider,
    Ground as Ground,
    Material as Material,
    Muscle as Muscle,
    SoftContact as SoftContact,
)
from physvision.physics.soft.properties import SoftProperties as SoftProperties

register_all(
    "physvision.physics.soft",
    (Ground, Material, Mesh, Muscle, SoftBody, SoftContact, Collider, box, cloth, disc, read, rectangle),
)
