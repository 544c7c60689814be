"""Differentiable engines and their common interface; the packages of the engines are imported when first used."""

import importlib
from typing import TYPE_CHECKING, Any

from physvision.core.registry import register_all
from physvision.physics.engine import Engine, MechanicalEngine
from physvision.physics.hybrid import Hybrid
from physvision.physics.physics_layer import PhysicsLayer
from physvision.physics.properties import Properties
from physvision.physics.stepped import LearnedEngine
from physvision.physics.wrapper import EngineWrapper

if TYPE_CHECKING:
    from physvision.physics import articulated, fluid, lcp, particle, rigid2d, soft

__all__ = [
    "Engine",
    "EngineWrapper",
    "Hybrid",
    "LearnedEngine",
    "MechanicalEngine",
    "PhysicsLayer",
    "Properties",
    "articulated",
    "fluid",
    "lcp",
    "particle",
    "rigid2d",
    "soft",
]

register_all("physvision.physics", (Hybrid, PhysicsLayer))


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'physvision.physics' has no attribute {name!r}")
    return importlib.import_module(f"physvision.physics.{name}")
