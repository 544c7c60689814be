"""Recipe of the data set `billiards`: balls on a table, seen from above."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from physvision.core import InputError
from physvision.datasets.billiards.appearance import DrawingStyle, draw_frames
from physvision.datasets.billiards.simulation import Table, simulate
from physvision.datasets.recipe import Field, FrameFormat, Number, Recipe, check_number, integer, real, span
from physvision.video.overlay import Arrow, CircleOutline, OverlayShape

_MAX_PLACEMENTS = 10_000


@dataclass(frozen=True)
class BilliardsRecipe(Recipe):
    """Balls that bounce in a box: exact from impact to impact, drawn anti-aliased.

    One world unit is one pixel; x points right, y down, and the walls are the borders of the picture.

    Attributes:
        trials: Number of trials; a tenth each is for validation and test.
        frames: Number of frames of a trial.
        seed: Seed of all random choices.
        balls: Number of balls.
        size: Side of the picture and the box, pixels.
        radius: Radius of the balls, pixels.
        fps: Frames per second.
        speed: Lowest and highest speed at the start, pixels a frame.
        restitution: Coefficient of restitution of all impacts, 0 to 1.
        sliding_deceleration: Deceleration of moving balls by the table, pixels a second squared.
        masses: Lowest and highest mass, drawn for every ball of every trial; kg.
        colors: Red, green, blue of each ball, 0 to 1; hues at equal steps if not given.
        background: Red, green, blue behind the balls, 0 to 1.
        texture: Contrast of a smooth random pattern in the background, drawn for every trial; 0 to 1.
        noise: Standard deviation of the noise of every pixel and channel; 1 is full scale.
        shake: Standard deviation of the camera's offset from frame to frame, pixels.
    """

    trials: int = integer(10_000, 1)
    frames: int = integer(300, 1)
    balls: int = integer(3, 1)
    size: int = integer(64, 2)
    radius: Number = real(3.2, 0, exclusive=True)
    fps: Number = real(30, 0, exclusive=True)
    speed: tuple[Number, Number] = span((0.3, 1.5), 0)
    restitution: Number = real(1.0, 0, 1)
    sliding_deceleration: Number = real(0.0, 0)
    masses: tuple[Number, Number] = span((1.0, 1.0), 0, exclusive=True)
    colors: tuple[tuple[Number, Number, Number], ...] | None = None
    background: tuple[Number, Number, Number] = (0.0, 0.0, 0.0)
    texture: Number = real(0.0, 0, 1)
    noise: Number = real(0.0, 0)
    shake: Number = real(0.0, 0)

    name: ClassVar[str] = "billiards"

    def check(self) -> None:
        """Raise if a value is out of range."""
        super().check()
        for index, level in enumerate(self.background):
            check_number(f"background[{index}]", level, 0, 1)
        if self.colors is not None and len(self.colors) != self.balls:
            raise InputError(f"colors: expected one for each of {self.balls} balls, got {len(self.colors)}")
        for index, color in enumerate(self.ball_colors()):
            for level in color:
                check_number(f"colors[{index}]", level, 0, 1)
        self._check_space()

    def _check_space(self) -> None:
        """Raise if the balls do not fit, or cover so much of the box that random placement would hardly succeed."""
        free_size = self.size - 2 * self.radius
        coverage = self.balls * np.pi * self.radius**2 / self.size**2
        if free_size <= 0 or (self.balls > 1 and coverage > 0.4):
            raise InputError(
                f"size: a box of {self.size} pixels is too small for {self.balls} balls of radius {self.radius:g} "
                f"(they cover {coverage:.0%} of it, at most 40% can be placed); make it larger or the balls smaller"
            )

    @property
    def frame_format(self) -> FrameFormat:
        """Size and rate of the frames."""
        geometry = (
            "the pixel of row i and column j covers j <= x <= j + 1 and i <= y <= i + 1, y points down; with camera "
            "shake the world's point p is seen at p + camera"
        )
        return FrameFormat(self.size, self.size, 3, float(self.fps), geometry)

    @property
    def fields(self) -> dict[str, Field]:
        """State and properties of every frame."""
        balls = self.balls
        return {
            "q": Field((balls, 3), "px, px, rad", "x, y of the center and angle of every ball; discs do not turn"),
            "v": Field((balls, 3), "px/s, px/s, rad/s", "rate of q; after an impact at this very moment"),
            "mass": Field((balls,), "kg", "masses of the balls", per_trial=True),
            "radius": Field((balls,), "px", "radii of the balls", per_trial=True),
            "restitution": Field((), "1", "restitution of all impacts", per_trial=True),
            "sliding_deceleration": Field((), "px/s^2", "deceleration of moving balls by the table", per_trial=True),
            "camera": Field((2,), "px", "offset of the picture by camera shake"),
        }

    def ball_colors(self) -> tuple[tuple[float, ...], ...]:
        """Red, green, blue of each ball, 0 to 1."""
        if self.colors is not None:
            return tuple(tuple(map(float, color)) for color in self.colors)
        return tuple(colorsys.hsv_to_rgb(ball / self.balls, 1.0, 1.0) for ball in range(self.balls))

    def trial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Make one trial, its frames and fields."""
        table = Table(
            radii=np.full(self.balls, float(self.radius)),
            masses=random.uniform(*self.masses, self.balls),
            box=(float(self.size), float(self.size)),
            restitution=float(self.restitution),
            sliding_deceleration=float(self.sliding_deceleration),
        )
        positions = self._place(random)
        speeds = random.uniform(*self.speed, self.balls) * self.fps
        headings = random.uniform(0.0, 2 * np.pi, self.balls)
        velocities = speeds[:, None] * np.stack([np.cos(headings), np.sin(headings)], axis=1)
        motion = simulate(table, positions, velocities, np.arange(self.frames) / self.fps)
        # Offsets of the picture are independent from frame to frame, like those of a trembling hand.
        camera = random.normal(0.0, self.shake, (self.frames, 2)) if self.shake else np.zeros((self.frames, 2))
        style = DrawingStyle(
            size=self.size,
            colors=np.array(self.ball_colors()),
            background=np.array(self.background, float),
            texture=float(self.texture),
            noise=float(self.noise),
        )
        angles = np.zeros((self.frames, self.balls, 1))
        return {
            "frames": draw_frames(style, motion.positions, table.radii, camera, random),
            "q": np.concatenate([motion.positions, angles], axis=2),
            "v": np.concatenate([motion.velocities, angles], axis=2),
            "camera": camera,
            "mass": table.masses,
            "radius": table.radii,
            "restitution": np.array(table.restitution),
            "sliding_deceleration": np.array(table.sliding_deceleration),
        }

    def marks(self, values: Mapping[str, np.ndarray]) -> list[OverlayShape]:
        """Circle around every ball, and an arrow to its place in a fifth of a second without impacts."""
        marks: list[OverlayShape] = []
        for position, velocity, radius in zip(values["q"], values["v"], values["radius"], strict=True):
            start = position[:2] + values["camera"]
            end = start + 0.2 * velocity[:2]
            marks += [CircleOutline(tuple(start), float(radius)), Arrow(tuple(start), tuple(end))]
        return marks

    def _place(self, random: np.random.Generator) -> np.ndarray:
        """Centers of balls that touch neither each other nor a wall, uniform among all such."""
        for _ in range(_MAX_PLACEMENTS):
            centers = np.empty((0, 2))
            while len(centers) < self.balls:
                center = random.uniform(self.radius, self.size - self.radius, 2)
                if len(centers) and np.linalg.norm(centers - center, axis=1).min() <= 2 * self.radius:
                    break
                centers = np.vstack([centers, center])
            else:
                return centers
        raise InputError(
            f"size: {self.balls} balls of radius {self.radius:g} found no room in a box of {self.size} pixels "
            f"in {_MAX_PLACEMENTS} tries; make it larger or the balls smaller"
        )
