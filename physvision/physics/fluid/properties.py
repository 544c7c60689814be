"""What a fluid is, and what stands in it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties


@register_properties
@dataclass(frozen=True)
class FlowProperties(Properties):
    """Numbers of a fluid of the plane, one metre deep, and of what stands in it."""

    viscosity: Tensor = leaf(unit="m²/s", range="not negative", meaning="kinematic: of momentum")
    diffusivity: Tensor = leaf(unit="m²/s", range="not negative", meaning="of dye")
    density: Tensor = leaf(unit="kg/m³", range="positive", meaning="scales forces and energy, not the motion")
    gravity: Tensor = leaf(
        "axes", unit="m/s²", meaning="acceleration of all fluid; what drives it along a periodic axis"
    )
    heaviness: Tensor = leaf(meaning="by how much full dye makes fluid heavier, as a share")
    wall_speed: Tensor = leaf("sides", unit="m/s", meaning="of left, right, lower and upper walls along themselves")
    inflow: Tensor = leaf("rows", unit="m/s", meaning="through the left side of a channel")
    inflow_dye: Tensor = leaf("rows", range="not negative", meaning="dye that comes with it")
    solid: Tensor = leaf("columns", "rows", range="unit interval", meaning="share of each cell that stands still")
    solid_time: Tensor = leaf(unit="s", range="positive", meaning="in which a solid stops what flows into it")
