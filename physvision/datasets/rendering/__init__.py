"""Procedural looks that generated data sets share: surface textures, light, moving cameras, sensors."""

from physvision.datasets.rendering.cameras import CameraPath, handheld_path, intrinsics
from physvision.datasets.rendering.lighting import Lighting, random_lighting
from physvision.datasets.rendering.palette import Palette, random_palette
from physvision.datasets.rendering.renderer import MOMENTS, Looks, Renderer
from physvision.datasets.rendering.sensor import Sensor
from physvision.datasets.rendering.sphere_textures import SphereTexture, random_sphere_texture
from physvision.datasets.rendering.surfaces import hsv_color, patterned_surface, smooth_noise

__all__ = [
    "MOMENTS",
    "CameraPath",
    "Lighting",
    "Looks",
    "Palette",
    "Renderer",
    "Sensor",
    "SphereTexture",
    "handheld_path",
    "hsv_color",
    "intrinsics",
    "patterned_surface",
    "random_lighting",
    "random_palette",
    "random_sphere_texture",
    "smooth_noise",
]
