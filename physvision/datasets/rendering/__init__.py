"""Procedural looks that generated data sets share: surface textures, light, moving cameras, sensors."""

from physvision.datasets.rendering.cameras import (
    CameraPath as CameraPath,
    handheld_path as handheld_path,
    intrinsics as intrinsics,
)
from physvision.datasets.rendering.lighting import Lighting as Lighting, random_lighting as random_lighting
from physvision.datasets.rendering.palette import Palette as Palette, random_palette as random_palette
from physvision.datasets.rendering.renderer import MOMENTS as MOMENTS, Looks as Looks, Renderer as Renderer
from physvision.datasets.rendering.sensor import Sensor as Sensor
from physvision.datasets.rendering.sphere_textures import (
    SphereTexture as SphereTexture,
    random_sphere_texture as random_sphere_texture,
)
from physvision.datasets.rendering.surfaces import hsv_color as hsv_color, patterned_surface as patterned_surface
