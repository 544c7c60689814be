"""Elastic bodies on meshes of triangles and tetrahedra, with muscles, and contact with planes."""

from physvision.core.registry import register_all
from physvision.physics.soft.body import Ground, Muscle, SoftBody
from physvision.physics.soft.mesh import Mesh, box, disc, read, rectangle
from physvision.physics.soft.properties import SoftProperties

__all__ = ["Ground", "Mesh", "Muscle", "SoftBody", "SoftProperties", "box", "disc", "read", "rectangle"]

register_all("physvision.physics.soft", (Ground, Mesh, Muscle, SoftBody, box, disc, read, rectangle))
