"""Differentiable engines: articulated bodies, rigid bodies in the plane, and the contract that they share."""

from physvision.physics.engine import Engine

__all__ = ["Engine"]
