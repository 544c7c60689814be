"""Properties of a flow: the numbers that a call may override and that gradients reach."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties


@register_properties
@dataclass(frozen=True)
class FlowProperties(Properties):
    """Material, boundaries and solids of a flow in the plane, one meter deep."""

    viscosity: Tensor = leaf(unit="m²/s", range="not negative", meaning="kinematic viscosity")
    diffusivity: Tensor = leaf(unit="m²/s", range="not negative", meaning="diffusivity of dye")
    density: Tensor = leaf(unit="kg/m³", range="positive", meaning="density, which scales forces and energy")
    gravity: Tensor = leaf("axes", unit="m/s²", meaning="gravity, which drives the flow along a periodic axis")
    excess_density: Tensor = leaf(meaning="relative increase of the density by dye of concentration one")
    wall_speed: Tensor = leaf("sides", unit="m/s", meaning="tangential velocity of left, right, lower and upper walls")
    inflow: Tensor = leaf("rows", unit="m/s", meaning="inflow velocity through the left side of a channel")
    inflow_dye: Tensor = leaf("rows", range="not negative", meaning="concentration of dye in the inflow")
    solid: Tensor = leaf("columns", "rows", range="unit interval", meaning="solid fraction of each cell")
    solid_time: Tensor = leaf(unit="s", range="positive", meaning="time constant in which a solid stops the flow")
