"""Recipe of the data set `tabletop`: walls, places of balls, pictures of cloth, rails and floor, and motion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from physvision.core import InputError
from physvision.datasets.billiards.rolling import random_orientations
from physvision.datasets.billiards.simulation import Motion, Table, simulate
from physvision.datasets.filmed_recipe import FilmedRecipe
from physvision.datasets.recipe import Field, Number, span
from physvision.datasets.rendering import MOMENTS, Palette, patterned_surface, random_palette, random_sphere_texture
from physvision.datasets.rendering.cameras import project
from physvision.datasets.rendering.surfaces import add_clutter
from physvision.datasets.tabletop.rendering import TabletopLooks, TabletopRenderer
from physvision.video.overlay import Arrow, CircleOutline, OverlayShape

_MAX_PLACEMENTS = 10_000
# Pixels of the surface's picture per px of the world, and px of the world around the table.
SURFACE_SCALE, SURFACE_MARGIN = 3, 24
# Distance of the camera from the table, in sides of the picture.
_DISTANCE = 2.5
# Fraction of the table that balls may cover.
_MAX_COVER = 0.4


@dataclass(frozen=True)
class TabletopRecipe(FilmedRecipe):
    """Textured balls on a cluttered table under a moving camera: exact from event to event, ray cast.

    One world unit is one pixel at the table's height under an upright camera; x points right, y down, z into the table.
    Every trial has its own balls, walls, properties, looks and camera. All ranges are drawn from uniformly.

    Attributes:
        trials: Number of trials; a tenth each is for validation and test.
        frames: Number of frames of a trial.
        seed: Seed of all random choices.
        size: Side of the picture, pixels.
        fps: Frames per second.
        tilt: Largest tilt of the camera against the table's normal, degrees.
        roll: Largest rotation of the camera about its line of sight, degrees.
        shake: Standard deviation of the camera's rotation about each axis during a trial, degrees.
        exposure: Lowest and highest exposure time, as a fraction of the time between frames: motion blur.
        contrast: Lowest and highest contrast of patterns on cloth, rails and floor, 0 to 1.
        clutter: Largest number of shapes drawn onto the cloth.
        unevenness: Largest unevenness of the light, as a fraction of its mean.
        flicker: Largest change of the light with time, as a fraction of its mean.
        noise: Lowest and highest standard deviation of the sensor's noise; 1 is full scale.
        quality: Lowest and highest quality of JPEG compression, 1 to 100; None for no compression.
        masks: If true, store which ball each pixel shows.
        balls: Lowest and highest number of balls; the highest is the number of slots of the state.
        radius: Lowest and highest radius, the same for all balls of a trial, px.
        speed: Lowest and highest speed at the start, px a frame.
        masses: Lowest and highest mass, drawn for every ball, kg.
        restitution: Lowest and highest coefficient of restitution between balls.
        wall_restitution: Lowest and highest coefficient of restitution at walls.
        sliding_deceleration: Lowest and highest deceleration by table friction, px/s².
        wall_margin: Lowest and highest distance of a wall from the border of the picture, px.
    """

    balls: tuple[int, int] = (1, 5)
    radius: tuple[Number, Number] = span((2.5, 6.0), 0, exclusive=True)
    speed: tuple[Number, Number] = span((0.5, 2.0), 0)
    masses: tuple[Number, Number] = span((0.5, 2.0), 0, exclusive=True)
    restitution: tuple[Number, Number] = span((0.8, 0.95), 0, 1)
    wall_restitution: tuple[Number, Number] = span((0.7, 0.9), 0, 1)
    sliding_deceleration: tuple[Number, Number] = span((2.0, 10.0), 0)
    wall_margin: tuple[Number, Number] = span((4.0, 12.0), 0)

    name: ClassVar[str] = "tabletop"
    packages: ClassVar[tuple[str, ...]] = ("numpy", "opencv-python-headless", "physvision", "pyarrow")

    def check(self) -> None:
        """Raise if a value is out of range."""
        super().check()
        self.require_whole_range("balls", 1)
        side, balls, radius = self.size - 2 * self.wall_margin[1], self.balls[1], self.radius[1]
        if side <= 2 * radius or (balls > 1 and balls * math.pi * radius**2 > _MAX_COVER * side**2):
            raise InputError(
                f"size: a table of {side:g} px at the least is too small for {balls} balls of radius {radius:g} px; "
                f"they may cover {_MAX_COVER:.0%} of it. Make it larger, the margin narrower or the balls smaller"
            )

    @property
    def focal(self) -> float:
        """Focal length, which shows a px of the table under an upright camera as a pixel."""
        return _DISTANCE * self.size

    @property
    def geometry(self) -> str:
        """Axes and unit of the world, in words."""
        return "x right, y down, z into the table, px; balls rest on the plane z = 0 with their centers at z = -radius"

    @property
    def fields(self) -> dict[str, Field]:
        """State, camera and properties of every frame."""
        balls = self.balls[1]
        return {
            "q": Field((balls, 3), "px, px, rad", "x, y of the center and 0 for every slot; 0 where there is no ball"),
            "v": Field((balls, 3), "px/s, px/s, rad/s", "rate of q; after an impact at this very moment"),
            "orientation": Field((balls, 4), "1", "quaternion (w, x, y, z) from the ball's frame to the world's"),
            "impacts": Field((balls, 2), "1", "number of impacts of each ball so far, with balls and with walls"),
            "extrinsics": Field((4, 4), "1, px", "pose of the camera, from the world to the camera's frame"),
            "mass": Field((balls,), "kg", "masses of the balls; 1 where there is no ball", per_trial=True),
            "radius": Field((balls,), "px", "radius of the balls", per_trial=True),
            "present": Field((balls,), "1", "1 where a slot holds a ball, 0 where it is empty", per_trial=True),
            "restitution": Field((), "1", "coefficient of restitution between balls", per_trial=True),
            "wall_restitution": Field((), "1", "coefficient of restitution at walls", per_trial=True),
            "sliding_deceleration": Field((), "px/s^2", "deceleration of moving balls by the table", per_trial=True),
            "walls": Field(
                (4,), "px", "x of the left, y of the top, x of the right and y of the bottom wall", per_trial=True
            ),
            **self.mask_fields("ball"),
        }

    def trial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Make one trial, its frames and fields."""
        slots, times = self.balls[1], np.arange(self.frames) / self.fps
        count, radius = int(random.integers(self.balls[0], slots + 1)), random.uniform(*self.radius)
        walls = random_walls(self.size, self.wall_margin, random)
        table = Table(
            radii=np.full(count, radius),
            masses=random.uniform(*self.masses, count),
            box=(walls[2] - walls[0], walls[3] - walls[1]),
            restitution=random.uniform(*self.restitution),
            sliding_deceleration=random.uniform(*self.sliding_deceleration),
            wall_restitution=random.uniform(*self.wall_restitution),
        )
        exposure = random.uniform(*self.exposure) / self.fps
        motion = self._motion(table, times, exposure, random)
        positions = motion.positions + walls[:2]
        looks = self._looks(count, radius, walls, times, random)
        # Moments of an exposure, and last the frame's own time.
        blurred, exact = slice(0, len(MOMENTS)), len(MOMENTS)
        orientations = motion.orientations
        assert orientations is not None
        renderer = TabletopRenderer(looks, self.size, self.size, positions[:, blurred], orientations[:, blurred])
        present = np.arange(slots) < count
        return {
            "frames": renderer.frames(times, random),
            "q": _in_slots(positions[:, exact], slots, 3),
            "v": _in_slots(motion.velocities[:, exact], slots, 3),
            "orientation": _in_slots(orientations[:, exact], slots, 4) + (~present)[:, None] * np.array([1.0, 0, 0, 0]),
            "impacts": _in_slots(motion.impact_counts[:, exact], slots, 2),
            "extrinsics": looks.camera.extrinsics,
            "mass": np.append(table.masses, np.ones(slots - count)),
            "radius": np.full(slots, radius),
            "present": present.astype(float),
            "restitution": np.array(table.restitution),
            "wall_restitution": np.array(table.wall_restitution),
            "sliding_deceleration": np.array(table.sliding_deceleration),
            "walls": walls,
            **({"masks": renderer.masks(positions[:, exact])} if self.masks else {}),
        }

    def _motion(self, table: Table, times: np.ndarray, exposure: float, random: np.random.Generator) -> Motion:
        """Motion at the moments of each frame's exposure and at the frame's time, (frames, moments + 1, balls, …)."""
        count = len(table.radii)
        assert table.box is not None
        start = place_balls(count, float(table.radii[0]), np.array(table.box), random)
        headings = random.uniform(0.0, 2 * np.pi, count)
        speeds = random.uniform(*self.speed, count) * self.fps
        velocities = speeds[:, None] * np.stack([np.cos(headings), np.sin(headings)], 1)
        # The simulation begins half an exposure before the first frame.
        moments = exposure * np.append(MOMENTS, 0.0)
        order = np.argsort(moments, kind="stable")
        requested = (times[:, None] + moments[order] + 0.5 * exposure).ravel()
        motion = simulate(table, start, velocities, requested, random_orientations(count, random))
        inverse_order = np.argsort(order)

        def by_frame(values: np.ndarray) -> np.ndarray:
            return values.reshape(len(times), len(moments), *values.shape[1:])[:, inverse_order]

        assert motion.orientations is not None
        return Motion(
            by_frame(motion.positions),
            by_frame(motion.velocities),
            motion.impacts,
            by_frame(motion.orientations),
            by_frame(motion.impact_counts),
        )

    def _looks(
        self, count: int, radius: float, walls: np.ndarray, times: np.ndarray, random: np.random.Generator
    ) -> TabletopLooks:
        palette = random_palette(count, random)
        target = np.array([0.5 * self.size, 0.5 * self.size, 0.0])
        camera = self.random_camera(target, self.focal, times, random)
        contrast, clutter = random.uniform(*self.contrast), int(random.integers(self.clutter + 1))
        textures = zip(palette.objects, palette.accents, strict=True)
        return TabletopLooks(
            surface=table_surface(self.size, walls, palette, contrast, clutter, random),
            surface_origin=np.full(2, -float(SURFACE_MARGIN)),
            surface_scale=SURFACE_SCALE,
            surface_depth=0.0,
            textures=[random_sphere_texture(*colors, random) for colors in textures],
            radius=radius,
            lighting=self.random_lighting(random),
            sensor=self.random_sensor(random),
            camera=camera,
        )

    def marks(self, values: Mapping[str, np.ndarray]) -> list[OverlayShape]:
        """Circle around every ball, and an arrow to its place in a fifth of a second without impacts."""
        marks: list[OverlayShape] = []
        for position, velocity, radius, present in zip(
            values["q"], values["v"], values["radius"], values["present"], strict=True
        ):
            if present:
                center = np.array([*position[:2], -radius])
                points = np.stack([center, center + 0.2 * np.array([*velocity[:2], 0.0])])
                pixels = project(self.intrinsics, values["extrinsics"], points)
                start, end = (tuple(pixel + 0.5) for pixel in pixels[:, :2])
                marks += [CircleOutline(start, float(radius * self.intrinsics[0, 0] / pixels[0, 2])), Arrow(start, end)]
        return marks


def _in_slots(values: np.ndarray, slots: int, entries: int) -> np.ndarray:
    """Values of the balls in the first slots and entries of an array of zeros, (frames, slots, entries)."""
    filled = np.zeros((len(values), slots, entries))
    filled[:, : values.shape[1], : values.shape[2]] = values
    return filled


def random_walls(size: int, margin: tuple[float, float], random: np.random.Generator) -> Float[np.ndarray, " 4"]:
    """Left, top, right and bottom wall; each lies within `margin` (lowest, highest; px) of the picture's border."""
    inset = random.uniform(*margin, 4)
    return np.array([inset[0], inset[1], size - inset[2], size - inset[3]])


def place_balls(
    count: int, radius: float, box: Float[np.ndarray, " 2"], random: np.random.Generator
) -> Float[np.ndarray, "balls 2"]:
    """Centers of balls that touch neither each other nor the walls of a box, uniform among all such."""
    for _ in range(_MAX_PLACEMENTS):
        centers = random.uniform(radius, box - radius, (count, 2))
        gaps = np.linalg.norm(centers[:, None] - centers, axis=-1)[np.triu_indices(count, 1)]
        if gaps.min(initial=np.inf) > 2.0 * radius:
            return centers
    raise InputError(
        f"radius: {count} balls of radius {radius:.3g} px found no room in a box of {box[0]:.3g} x {box[1]:.3g} px in "
        f"{_MAX_PLACEMENTS} tries; make the picture larger, or the balls fewer or smaller"
    )


def table_surface(
    size: int,
    walls: Float[np.ndarray, " 4"],
    palette: Palette,
    contrast: float,
    clutter: int,
    random: np.random.Generator,
) -> Float[np.ndarray, "rows columns 3"]:
    """Picture of floor, rails and cloth in the table's plane, `SURFACE_MARGIN` px wider than the frame on each side.

    Args:
        size: Side of a frame, px.
        walls: Left, top, right and bottom wall, px.
        palette: Colors of the trial.
        contrast: Contrast of the patterns, 0 to 1.
        clutter: Number of shapes drawn onto the cloth; as many lie outside.
        random: Random generator.
    """
    side = SURFACE_SCALE * (size + 2 * SURFACE_MARGIN)
    scale = SURFACE_SCALE * random.uniform(3.0, 12.0)
    colors = palette.clutter()
    floor = patterned_surface((side, side), palette.surroundings, contrast, scale, random)
    add_clutter(floor, colors, clutter, SURFACE_SCALE * 4.0, random)
    left, top, right, bottom = np.rint(SURFACE_SCALE * (walls + SURFACE_MARGIN)).astype(int).tolist()
    inside = (slice(top, bottom), slice(left, right))
    band = round(SURFACE_SCALE * random.uniform(1.5, 4.0))
    around = tuple(slice(part.start - band, part.stop + band) for part in inside)
    shape = (bottom - top, right - left)
    rails = (shape[0] + 2 * band, shape[1] + 2 * band)
    floor[around] = patterned_surface(rails, palette.border, 0.5 * contrast, scale, random)
    cloth = patterned_surface(shape, palette.surface, contrast, scale, random)
    add_clutter(cloth, colors, clutter, SURFACE_SCALE * 4.0, random)
    floor[inside] = cloth
    return floor
