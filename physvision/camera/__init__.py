"""The differentiable ray-cast camera: poses and textures in, frames out."""

from physvision.camera.bound import BoundCamera
from physvision.camera.camera import Camera
from physvision.camera.ray_caster import Light, RayCaster, Visible
from physvision.camera.textures import noise, stripes
from physvision.core.registry import register_all

__all__ = ["BoundCamera", "Camera", "Light", "RayCaster", "Visible", "noise", "stripes"]

register_all("physvision.camera", (BoundCamera, Camera, Light))
