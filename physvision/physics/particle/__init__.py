"""One point on a line, in the plane or on a circle: what drives it, holds it back and slows it, in one small law."""

from physvision.physics.particle.engine import Particle
from physvision.physics.particle.properties import ParticleProperties

__all__ = ["Particle", "ParticleProperties"]
