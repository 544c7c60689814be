"""Navier–Stokes in vorticity, and dye, on a periodic square, by Fourier's modes: derivatives are exact.

    ∂ω/∂t = −u·∇ω + ν ∇²ω,   ∂c/∂t = −u·∇c + κ ∇²c,   ∇²ψ = −ω,   u = ∂ψ/∂y,   v = −∂ψ/∂x

Products are taken in space and kept below two thirds of the modes; steps are the classical ones of Runge and Kutta.
"""

from __future__ import annotations

import numpy as np

from physvision.datasets.clips.integration import runge_kutta_step

Field = np.ndarray


class Spectral:
    """Pseudo-spectral solver of vorticity and dye in a periodic square of side 2π m.

    Args:
        modes: Number of modes along each axis.
        viscosity: Kinematic viscosity, m²/s.
        diffusivity: Diffusivity of the dye, m²/s.
    """

    def __init__(self, modes: int, viscosity: float, diffusivity: float) -> None:
        self.wave_numbers = np.fft.fftfreq(modes, 1 / modes)
        self.kx, self.ky = self.wave_numbers[:, None], self.wave_numbers[None]
        self.k2 = self.kx**2 + self.ky**2
        self.inverse_k2 = np.where(self.k2 == 0, 0.0, 1 / np.where(self.k2 == 0, 1.0, self.k2))
        self.retained = (np.abs(self.kx) < modes / 3) & (np.abs(self.ky) < modes / 3)
        self.diffusivities = viscosity, diffusivity

    def velocities(self, fields: Field) -> tuple[Field, Field]:
        """Modes of the velocities along x and y."""
        stream = self.inverse_k2 * fields[0]
        return 1j * self.ky * stream, -1j * self.kx * stream

    def rate(self, fields: Field) -> Field:
        """Rates of the modes of vorticity and of dye."""
        u, v = (np.fft.ifft2(part).real for part in self.velocities(fields))
        rates = []
        for field, diffusivity in zip(fields, self.diffusivities, strict=True):
            x, y = (np.fft.ifft2(1j * k * field).real for k in (self.kx, self.ky))
            rates.append(-np.where(self.retained, np.fft.fft2(u * x + v * y), 0.0) - diffusivity * self.k2 * field)
        return np.stack(rates)

    def advance(self, fields: Field, seconds: float, steps: int) -> Field:
        """Modes after a time of `seconds`, in `steps` Runge–Kutta steps."""
        h = seconds / steps
        for _ in range(steps):
            fields = runge_kutta_step(self.rate, fields, h)
        return fields

    def rectangle_means(
        self, field: Field, cells: int, corner: tuple[float, float], widths: tuple[float, float]
    ) -> Field:
        """Means over rectangles with centers (corner + (i, j)) · h and sides `widths` · h, where h = 2π/cells."""
        h = 2 * np.pi / cells
        row, column = (
            np.exp(1j * np.outer(np.arange(cells) + first, self.wave_numbers) * h)
            * np.sinc(self.wave_numbers * h * width / (2 * np.pi))
            / len(self.wave_numbers)
            for first, width in zip(corner, widths, strict=True)
        )
        return (row @ field @ column.T).real
