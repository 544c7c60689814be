"""Rigid bodies in the plane: joints, contacts and friction, with gradients that are right through impacts."""

from physvision.core.registry import register_all
from physvision.physics.rigid2d.bodies import Body, Circle, Polygon, Rectangle
from physvision.physics.rigid2d.joints import HoldAngle, HoldX, HoldY, Joint, Revolute, Spring, Weld
from physvision.physics.rigid2d.plot import plot
from physvision.physics.rigid2d.properties import WorldProperties
from physvision.physics.rigid2d.settings import StepSettings
from physvision.physics.rigid2d.world import World

__all__ = [
    "Body",
    "Circle",
    "HoldAngle",
    "HoldX",
    "HoldY",
    "Joint",
    "Polygon",
    "Rectangle",
    "Revolute",
    "Spring",
    "StepSettings",
    "Weld",
    "World",
    "WorldProperties",
    "plot",
]

register_all(
    "physvision.physics.rigid2d",
    (Circle, HoldAngle, HoldX, HoldY, Polygon, Rectangle, Revolute, Spring, StepSettings, Weld, World),
)
