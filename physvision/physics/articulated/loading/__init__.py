"""Engines from MJCF and URDF, read by MuJoCo's own compiler."""

from physvision.physics.articulated.loading.load import load as load
from physvision.physics.articulated.loading.transmissions import ServoSettings as ServoSettings
