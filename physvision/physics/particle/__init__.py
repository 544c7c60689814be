"""A particle on a line, in the plane or on a circle, with a driving force, a restoring force and drag."""

from physvision.physics.particle.engine import Particle as Particle
from physvision.physics.particle.properties import ParticleProperties as ParticleProperties
