"""Rigid bodies in the plane: joints, contacts and friction, with gradients that are right through impacts."""

from physvision.core.registry import register_all
from physvision.physics.rigid2d.bodies import Body as Body, Circle as Circle, Polygon as Polygon, Rectangle as Rectangle
from physvision.physics.rigid2d.joints import (
    HoldAngle as HoldAngle,
    HoldX as HoldX,
    HoldY as HoldY,
    Joint as Joint,
    Revolute as Revolute,
    Spring as Spring,
    Weld as Weld,
)
from physvision.physics.rigid2d.plot import plot as plot
from physvision.physics.rigid2d.properties import WorldProperties as WorldProperties
from physvision.physics.rigid2d.settings import StepSettings as StepSettings
from physvision.physics.rigid2d.world import World as World

register_all(
    "physvision.physics.rigid2d",
    (Circle, HoldAngle, HoldX, HoldY, Polygon, Rectangle, Revolute, Spring, StepSettings, Weld, World),
)
