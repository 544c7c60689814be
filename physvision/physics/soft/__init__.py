"""Elastic bodies and cloth on meshes of triangles and tetrahedra, with muscles, contact planes and colliders."""

from physvision.core.mesh import Mesh, box, cloth, disc, read, rectangle
from physvision.core.registry import register_all
from physvision.physics.soft.body import SoftBody
from physvision.physics.soft.description import Collider, Ground, Material, Muscle, SoftContact
from physvision.physics.soft.properties import SoftProperties

__all__ = [
    "Collider",
    "Ground",
    "Material",
    "Mesh",
    "Muscle",
    "SoftBody",
    "SoftContact",
    "SoftProperties",
    "box",
    "cloth",
    "disc",
    "read",
    "rectangle",
]

register_all(
    "physvision.physics.soft",
    (Ground, Material, Mesh, Muscle, SoftBody, SoftContact, Collider, box, cloth, disc, read, rectangle),
)
