"""Incompressible flow in the plane on a staggered grid, with dye, solids, walls, channels and jets."""

from physvision.core.registry import register_all
from physvision.physics.fluid.flow import Boundary as Boundary, Flow as Flow, FluidMaterial as FluidMaterial, Jet as Jet
from physvision.physics.fluid.properties import FlowProperties as FlowProperties

register_all("physvision.physics.fluid", (Boundary, Flow, FluidMaterial, Jet))
