"""Properties of a soft body: the numbers that a call may override and that gradients reach."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties


@register_properties
@dataclass(frozen=True)
class SoftProperties(Properties):
    """Materials, muscles, obstacles and the shape at rest; a body of the plane is one meter deep."""

    youngs_modulus: Tensor = leaf("materials", unit="Pa", range="positive", meaning="Young's modulus")
    poissons_ratio: Tensor = leaf("materials", range="poisson", meaning="Poisson's ratio")
    density: Tensor = leaf("materials", unit="kg/m³", range="positive", meaning="density at rest")
    viscous_time: Tensor = leaf("materials", unit="s", range="not negative", meaning="viscosity over stiffness")
    rest: Tensor = leaf("nodes", "axes", unit="m", meaning="positions of the nodes at rest")
    load: Tensor = leaf("nodes", "axes", unit="N", meaning="constant force on each node")
    gravity: Tensor = leaf("axes", unit="m/s²", meaning="gravity")
    velocity_decay: Tensor = leaf(unit="1/s", range="not negative", meaning="mass-proportional damping")
    tension: Tensor = leaf("muscles", unit="Pa", range="not negative", meaning="tension of a muscle at control 1")
    contact_stiffness: Tensor = leaf(unit="Pa/m", range="positive", meaning="pressure of obstacles per penetration")
    friction: Tensor = leaf("obstacles", range="not negative", meaning="friction of each ground, then of each collider")
    radius: Tensor = leaf("colliders", unit="m", range="positive", meaning="radius of a ball, or of a box's edges")
    collider_mass: Tensor = leaf("colliders", unit="kg", range="positive", meaning="mass of each collider")
    thickness: Tensor = leaf("sheets", unit="m", range="positive", meaning="thickness of cloth")
    bending: Tensor = leaf(
        "sheets", range="not negative", meaning="bending stiffness of cloth relative to that of a plate"
    )
