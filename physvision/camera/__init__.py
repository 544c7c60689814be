"""The differentiable ray-cast camera: poses and textures in, frames out."""

from physvision.camera.calibration import Calibration as Calibration, read_calibration as read_calibration
from physvision.camera.camera import BoundCamera as BoundCamera, Camera as Camera
from physvision.camera.ray_caster import Light as Light, RayCaster as RayCaster, Visible as Visible
from physvision.camera.textures import noise as noise, stripes as stripes
from physvision.core.registry import register_all

register_all("physvision.camera", (BoundCamera, Camera, Light))
