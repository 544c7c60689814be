"""An elastic block, seen from the side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from physvision.datasets.block.elasticity import Block
from physvision.datasets.recipe import Field, FrameFormat, Number, Recipe, integer, real, span
from physvision.video.overlay import CircleOutline, OverlayShape

# Positions of the marks on the lower edge, in sides of the block, and their red, green and blue.
MARKS = ((0.0, 0.0), (0.5, 0.0), (1.0, 0.0))
COLORS = ((1.0, 0.2, 0.2), (0.2, 1.0, 0.2), (0.3, 0.4, 1.0))
_BODY_BRIGHTNESS = 0.35
_VISIBLE_SIDES = 1.5  # side of the picture, in sides of the block
_SUPERSAMPLING = 8  # subpixels along each side of a pixel


@dataclass(frozen=True)
class BlockRecipe(Recipe):
    """Block that hangs by its top and is released, with three marks on its lower edge; small strains.

    Attributes:
        trials: Number of trials; a tenth each is for validation and test.
        frames: Number of frames of a trial.
        seed: Seed of all random choices.
        size: Side of the picture, pixels.
        dt: Time between frames, s.
        side: Side of the block, m.
        modulus: Lowest and highest Young's modulus, drawn for every trial; Pa.
        ratio: Poisson's ratio.
        density: Density, kg/m³.
        gravity: Gravitational acceleration, downwards, m/s².
        noise: Standard deviation of the noise of every pixel and channel; 1 is full scale.
        substeps: Number of steps of the solver from frame to frame.
    """

    trials: int = integer(20, 1)
    frames: int = integer(51, 1)
    size: int = integer(96, 8)
    dt: Number = real(0.01, 0, exclusive=True)
    side: Number = real(0.2, 0, exclusive=True)
    modulus: tuple[Number, Number] = span((1e4, 4e4), 0, exclusive=True)
    ratio: Number = real(0.3, 0, 0.49)
    density: Number = real(1000.0, 0, exclusive=True)
    gravity: Number = real(9.81, 0)
    noise: Number = real(0.01, 0)
    substeps: int = integer(10, 1)

    name: ClassVar[str] = "block"
    packages: ClassVar[tuple[str, ...]] = ("numpy", "opencv-python-headless", "physvision", "pyarrow", "scikit-fem")

    @property
    def scale(self) -> float:
        """Pixels per meter of the world."""
        return self.size / (_VISIBLE_SIDES * self.side)

    @property
    def frame_format(self) -> FrameFormat:
        """Size and rate of the frames."""
        geometry = (
            f"(x, y) m, y up from the block's lower left corner at rest, is seen at column {self.size / 2:g} + "
            f"{self.scale:.9g} (x - {self.side / 2:g}), row {0.85 * self.size:g} - {self.scale:.9g} y; "
            "the pixel of row i and column j covers j to j + 1 and i to i + 1"
        )
        return FrameFormat(self.size, self.size, 3, 1.0 / self.dt, geometry)

    @property
    def fields(self) -> dict[str, Field]:
        """State of the marks and properties of every frame."""
        return {
            "q": Field((2 * len(MARKS),), "m", "places of the marks, x and y of each"),
            "v": Field((2 * len(MARKS),), "m/s", "rates of q"),
            "modulus": Field((), "Pa", "Young's modulus", per_trial=True),
            "ratio": Field((), "1", "Poisson's ratio", per_trial=True),
            "density": Field((), "kg/m^3", "density", per_trial=True),
            "gravity": Field((), "m/s^2", "gravity, downwards", per_trial=True),
        }

    def trial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Make one trial, its frames and fields."""
        side = float(self.side)
        modulus = float(np.exp(random.uniform(*np.log(np.array(self.modulus, dtype=float)))))
        block = Block(side, modulus, float(self.ratio), float(self.density), float(self.gravity))
        displacements, velocities = block.motion(
            float(self.dt) / self.substeps, (self.frames - 1) * self.substeps, self.substeps
        )
        corners = [int(np.abs(block.nodes - side * np.array(mark)).sum(1).argmin()) for mark in MARKS]
        edge = _boundary_nodes(block.nodes, side)
        positions = block.nodes + displacements
        frames = np.stack([self._picture(nodes[edge], nodes[corners]) for nodes in positions])
        noise = random.standard_normal(frames.shape, dtype=np.float32) * np.float32(self.noise)
        constant = {"modulus": modulus, "ratio": self.ratio, "density": self.density, "gravity": self.gravity}
        return {
            "frames": np.rint(255.0 * np.clip(frames + noise, 0.0, 1.0)).astype(np.uint8),
            "q": positions[:, corners].reshape(self.frames, -1),
            "v": velocities[:, corners].reshape(self.frames, -1),
            **{name: np.array(float(value)) for name, value in constant.items()},
        }

    @property
    def radius(self) -> float:
        """Radius of the marks, m."""
        return 0.06 * float(self.side)

    def _pixels(self, points: np.ndarray) -> np.ndarray:
        """Columns and rows of points of the world."""
        return np.stack(
            [
                self.size / 2 + self.scale * (points[..., 0] - self.side / 2),
                0.85 * self.size - self.scale * points[..., 1],
            ],
            -1,
        )

    def _picture(self, edge: np.ndarray, marks: np.ndarray) -> np.ndarray:
        """Draw the block and its marks at a higher resolution, and average."""
        canvas = np.zeros((_SUPERSAMPLING * self.size, _SUPERSAMPLING * self.size, 3), np.float32)
        centers = np.arange(_SUPERSAMPLING * self.size) + 0.5
        # OpenCV fills pixels whose centers, at whole numbers, are inside; corners are in 1/256 of a subpixel.
        outline = np.rint(256 * (_SUPERSAMPLING * self._pixels(edge) - 0.5)).astype(np.int32)
        cv2.fillPoly(canvas, [outline], (_BODY_BRIGHTNESS,) * 3, shift=8)
        for center, color in zip(_SUPERSAMPLING * self._pixels(marks), COLORS, strict=True):
            squared_distance = (centers - center[0]) ** 2 + (centers[:, None] - center[1]) ** 2
            canvas[squared_distance < (_SUPERSAMPLING * self.scale * self.radius) ** 2] = color
        return canvas.reshape(self.size, _SUPERSAMPLING, self.size, _SUPERSAMPLING, 3).mean((1, 3))

    def marks(self, values: Mapping[str, np.ndarray]) -> list[OverlayShape]:
        """Circle around each mark of the block."""
        return [
            CircleOutline(tuple(center), self.scale * self.radius)
            for center in self._pixels(values["q"].reshape(-1, 2))
        ]


def _boundary_nodes(nodes: np.ndarray, side: float) -> np.ndarray:
    """Indices of the nodes on the boundary of the square, in order around it."""
    x, y = nodes.T / side - 0.5
    boundary = np.flatnonzero(np.maximum(np.abs(x), np.abs(y)) > 0.5 - 1e-9)
    return boundary[np.argsort(np.arctan2(y[boundary], x[boundary]))]
