"""Incompressible flow of the plane on a staggered grid: dye, solids, walls, channels and jets."""

from physvision.core.registry import register_all
from physvision.physics.fluid.flow import Flow, Jet
from physvision.physics.fluid.properties import FlowProperties

__all__ = ["Flow", "FlowProperties", "Jet"]

register_all("physvision.physics.fluid", (Flow, Jet))
