"""The kernels of a particle."""

from physvision.physics.particle.kernels.law import backward, forward
