"""Dye in a flow that stirs it, seen from above."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from physvision.core import InputError
from physvision.datasets.dye.spectral import Spectral
from physvision.datasets.recipe import Field, FrameFormat, Number, Recipe, integer, real, span
from physvision.video.overlay import Arrow, OverlayShape

_ARROWS = 8  # along each axis of a picture with marks


@dataclass(frozen=True)
class DyeRecipe(Recipe):
    """A spot of dye in a periodic square of 2π m of fluid that is stirred once and slows down by its viscosity.

    A pixel shows the mean of the dye in it.

    Attributes:
        trials: Number of trials; a tenth each is for validation and test.
        frames: Number of frames of a trial.
        seed: Seed of all random choices.
        size: Side of the picture, pixels, and number of cells of the state along each axis.
        dt: Time between frames, s.
        viscosity: Lowest and highest kinematic viscosity, drawn for every trial; m²/s.
        diffusivity: Diffusivity of the dye, m²/s.
        speed: Root mean square speed of the flow at the start, m/s.
        noise: Standard deviation of the noise of every pixel; 1 is full scale.
        modes: Number of modes of the solver along each axis; the upper third stays empty.
        substeps: Number of steps of the solver from frame to frame.
    """

    trials: int = integer(20, 1)
    frames: int = integer(11, 1)
    size: int = integer(64, 3)
    dt: Number = real(0.2, 0, exclusive=True)
    viscosity: tuple[Number, Number] = span((0.02, 0.08), 0)
    diffusivity: Number = real(1e-3, 0)
    speed: Number = real(1.0, 0, exclusive=True)
    noise: Number = real(0.0, 0)
    modes: int = integer(96, 8)
    substeps: int = integer(40, 1)

    name: ClassVar[str] = "dye"

    @property
    def frame_format(self) -> FrameFormat:
        """Size and rate of the frames."""
        geometry = (
            f"a pixel is a cell of {2 * np.pi / self.size:.9g} m; x points right and y up, both from 0 to 2π m, "
            "and what leaves on one side comes in on the other"
        )
        return FrameFormat(self.size, self.size, 1, 1.0 / self.dt, geometry)

    @property
    def fields(self) -> dict[str, Field]:
        """State and properties of every frame."""
        cells = self.size**2
        return {
            "q": Field((cells,), "1", "mean dye of each cell, y running fastest"),
            "v": Field((2 * cells,), "m/s", "mean velocity through the left face of each cell, then the lower one"),
            "viscosity": Field((), "m^2/s", "kinematic viscosity", per_trial=True),
            "diffusivity": Field((), "m^2/s", "diffusivity of the dye", per_trial=True),
        }

    def trial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Make one trial, its frames and fields."""
        low, high = map(float, self.viscosity)
        viscosity = float(np.exp(random.uniform(np.log(low), np.log(high)))) if low > 0 else random.uniform(low, high)
        solver = Spectral(self.modes, viscosity, float(self.diffusivity))
        fields = self._start(solver, random)
        frames = np.empty((self.frames, self.size, self.size, 1), np.uint8)
        q, v = np.empty((self.frames, self.size**2)), np.empty((self.frames, 2 * self.size**2))
        for frame in range(self.frames):
            if frame:
                with np.errstate(over="ignore", invalid="ignore"):
                    fields = solver.advance(fields, float(self.dt), self.substeps)
                if not np.isfinite(fields).all():
                    raise InputError(f"substeps: {self.substeps} are too few for flow this fast or thick; take more")
            dye = solver.rectangle_means(fields[1], self.size, (0.5, 0.5), (1.0, 1.0))
            along_x, along_y = solver.velocities(fields)
            q[frame] = dye.ravel()
            v[frame, : self.size**2] = solver.rectangle_means(along_x, self.size, (0.0, 0.5), (0.0, 1.0)).ravel()
            v[frame, self.size**2 :] = solver.rectangle_means(along_y, self.size, (0.5, 0.0), (1.0, 0.0)).ravel()
            picture = dye.T[::-1] + self.noise * random.standard_normal(dye.shape)
            frames[frame, ..., 0] = np.rint(255.0 * np.clip(picture, 0.0, 1.0))
        constant = {"viscosity": viscosity, "diffusivity": float(self.diffusivity)}
        return {
            "frames": frames,
            "q": q,
            "v": v,
            **{name: np.array(value) for name, value in constant.items()},
        }

    def _start(self, solver: Spectral, random: np.random.Generator) -> np.ndarray:
        """Initial modes of vorticity and dye: swirls of at most two waves along each axis, and a smooth spot."""
        n = self.modes
        x, y = np.meshgrid(*(2 * [np.arange(n) * 2 * np.pi / n]), indexing="ij")
        stream = np.zeros((n, n))
        for i in range(3):
            for j in range(-2, 3):
                if (i, j) > (0, 0):
                    size, phase = random.standard_normal() / (i * i + j * j), random.uniform(0, 2 * np.pi)
                    stream += size * np.cos(i * x + j * y + phase)
        vorticity = solver.k2 * np.fft.fft2(stream)
        u, v = (np.fft.ifft2(part).real for part in solver.velocities(np.stack([vorticity, vorticity])))
        a, b = random.uniform(0, 2 * np.pi, 2)
        spot = np.exp(np.cos(x - a) + np.cos(y - b) - 2.0)
        vorticity *= self.speed / np.sqrt((u**2 + v**2).mean())
        return np.where(solver.retained, np.stack([vorticity, np.fft.fft2(spot)]), 0.0)

    def marks(self, values: Mapping[str, np.ndarray]) -> list[OverlayShape]:
        """Arrows along the flow, as long as it moves in a tenth of a second."""
        h, spacing = 2 * np.pi / self.size, max(self.size // _ARROWS, 1)
        u, v = values["v"].reshape(2, self.size, self.size)
        cells = range(spacing // 2, self.size, spacing)
        return [
            Arrow(
                (i + 0.5, self.size - j - 0.5),
                (i + 0.5 + 0.1 * float(u[i, j]) / h, self.size - j - 0.5 - 0.1 * float(v[i, j]) / h),
            )
            for i in cells
            for j in cells
        ]
