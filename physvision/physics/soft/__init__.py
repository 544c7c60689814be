"""Elastic bodies and cloth on meshes of triangles and tetrahedra, with muscles; contact with planes and solids."""

from physvision.core.mesh import Mesh, box, cloth, disc, read, rectangle
from physvision.core.registry import register_all
from physvision.physics.soft.body import SoftBody
from physvision.physics.soft.parts import Ground, Muscle, Solid
from physvision.physics.soft.properties import SoftProperties

__all__ = [
    "Ground",
    "Mesh",
    "Muscle",
    "SoftBody",
    "SoftProperties",
    "Solid",
    "box",
    "cloth",
    "disc",
    "read",
    "rectangle",
]

register_all("physvision.physics.soft", (Ground, Mesh, Muscle, SoftBody, Solid, box, cloth, disc, read, rectangle))
