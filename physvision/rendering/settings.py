"""Light, colors and quality of rendered pictures."""

from __future__ import annotations

from dataclasses import dataclass

Color = tuple[float, float, float]


@dataclass(frozen=True)
class RenderSettings:
    """Tuning numbers of the renderer, chosen by looking at pictures of robots, piles and cloth.

    Attributes:
        sun: Direction towards the sun with z up, of any length; a lower sun makes longer shadows.
        sun_color: Linear light of the sun; more makes the difference of light and shadow larger.
        sky_color: Linear light from above; more brightens shadows.
        ground_color: Linear light from below; more brightens undersides.
        horizon: Linear color of the sky at the horizon, to which distant ground fades.
        zenith: Linear color of the sky overhead.
        ground: Color of a ground that the scene does not have, and of planes without a color of their own.
        gloss: Strength of highlights; 0 for matt surfaces.
        shadow_size: Width of the sun's depth picture, texels, a multiple of 8; more makes shadows sharper and slower.
        penumbra: Growth of the soft edge of a shadow for each meter from the object; the real sun has 0.01.
        max_penumbra: Largest radius of the soft edge, texels; more costs time.
        haze: Distance at which the ground has faded by 63 %, in distances of the camera from its target.
        near: Depth below which surfaces are not drawn, m.
        resolution: Segments around a sphere; more makes rounder outlines and is slower.
        max_detailed_shapes: Number of shapes above which each has half as many segments.
    """

    sun: Color = (-0.45, -0.55, 1.0)
    sun_color: Color = (0.66, 0.63, 0.57)
    sky_color: Color = (0.33, 0.36, 0.40)
    ground_color: Color = (0.16, 0.15, 0.14)
    horizon: Color = (0.72, 0.80, 0.88)
    zenith: Color = (0.22, 0.42, 0.72)
    ground: Color = (0.72, 0.74, 0.77)
    gloss: float = 0.18
    shadow_size: int = 1024
    penumbra: float = 0.12
    max_penumbra: float = 14.0
    haze: float = 7.0
    near: float = 0.01
    resolution: int = 24
    max_detailed_shapes: int = 150


SETTINGS = RenderSettings()
