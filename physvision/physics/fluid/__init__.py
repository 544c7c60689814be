"""Incompressible flow in the plane on a staggered grid, with dye, solids, walls, channels and jets."""

from physvision.core.registry import register_all
from physvision.physics.fluid.flow import Boundary, Flow, FluidMaterial, Jet
from physvision.physics.fluid.properties import FlowProperties

__all__ = ["Boundary", "Flow", "FlowProperties", "FluidMaterial", "Jet"]

register_all("physvision.physics.fluid", (Boundary, Flow, FluidMaterial, Jet))
