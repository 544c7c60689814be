"""What is known of two shapes before a closer look: how near they can be by balls about them, or a ball and a plane."""

from __future__ import annotations

import math

import numpy as np

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Shape, Sphere
from physvision.physics.articulated.contact.features import (
    CORNER_PLANE,
    ELLIPSOID_PLANE,
    POINT_PLANE,
    RIM_PLANE,
    STRING,
    STRUT,
)

# As `kernels/collision/broad_phase.py` numbers them.
_BALLS, _PLANE, _ALWAYS = range(3)


def group_kind(kind: int) -> int:
    """How a lower bound of the gaps is found, by the kind of the pair's first feature."""
    if kind in (POINT_PLANE, RIM_PLANE, CORNER_PLANE, ELLIPSOID_PLANE):
        return _PLANE
    return _ALWAYS if kind in (STRING, STRUT) else _BALLS


def reach(shape: Shape) -> tuple[float, float, float]:
    """The shares of a shape's sizes of which the length is the radius of a ball about its origin that holds it."""
    match shape:
        case Sphere():
            return 1.0, 0.0, 0.0
        case Capsule():
            return math.sqrt(2), 0.0, math.sqrt(0.5)  # no less than radius and half the length together
        case Cylinder():
            return 1.0, 0.0, 0.5
        case Box():
            return 0.5, 0.5, 0.5
        case Ellipsoid():
            return 1.0, 1.0, 1.0
        case Hull():
            x, y, z = np.abs(shape.vertices).max(0).tolist()
            return x, y, z
        case _:
            return 0.0, 0.0, 0.0
