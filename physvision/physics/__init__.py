"""Differentiable engines and their common interface; the packages of the engines are imported when first used."""

import importlib
from typing import TYPE_CHECKING, Any

from physvision.core.registry import register_all
from physvision.physics.engine import Engine as Engine, MechanicalEngine as MechanicalEngine
from physvision.physics.physics_layer import PhysicsLayer as PhysicsLayer
from physvision.physics.properties import Properties as Properties
from physvision.physics.stepped import Hybrid as Hybrid, LearnedEngine as LearnedEngine
from physvision.physics.wrapper import EngineWrapper as EngineWrapper

if TYPE_CHECKING:
    from physvision.physics import (
        articulated as articulated,
        fluid as fluid,
        lcp as lcp,
        particle as particle,
        rigid2d as rigid2d,
        soft as soft,
    )

register_all("physvision.physics", (Hybrid, PhysicsLayer))
_ENGINES = ("articulated", "fluid", "lcp", "particle", "rigid2d", "soft")


def __getattr__(name: str) -> Any:
    if name not in _ENGINES:
        raise AttributeError(f"module 'physvision.physics' has no attribute {name!r}")
    return importlib.import_module(f"physvision.physics.{name}")
