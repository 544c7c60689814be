"""Differentiable engines: articulated bodies, rigid bodies in the plane, and the contract that they share."""

from physvision.core.registry import register_all
from physvision.physics.engine import Engine, MechanicalEngine
from physvision.physics.hybrid import Hybrid
from physvision.physics.physics_layer import PhysicsLayer
from physvision.physics.properties import Properties
from physvision.physics.stepped import LearnedEngine
from physvision.physics.wrapper import EngineWrapper

__all__ = [
    "Engine",
    "EngineWrapper",
    "Hybrid",
    "LearnedEngine",
    "MechanicalEngine",
    "PhysicsLayer",
    "Properties",
]

register_all("physvision.physics", (Hybrid, PhysicsLayer))
