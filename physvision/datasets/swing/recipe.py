"""Recipe of the data set `swing`: a pendulum of textured links."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import mujoco
import numpy as np
from scipy.interpolate import CubicHermiteSpline

from physvision.core import InputError
from physvision.datasets.filmed_recipe import FilmedRecipe
from physvision.datasets.pendulum.model import Links, build
from physvision.datasets.recipe import Field, Number, integer, real, span
from physvision.datasets.rendering import MOMENTS, Palette, hsv_color, patterned_surface, random_palette
from physvision.datasets.rendering.cameras import project
from physvision.datasets.rendering.surfaces import add_clutter
from physvision.datasets.swing.rendering import SwingLooks, SwingRenderer, link_points
from physvision.video.overlay import OverlayShape, Polyline

# Distance of the camera from the plane of motion, and half the visible height, in lengths of the longest pendulum.
_DISTANCE, _VISIBLE = 4.0, 1.08
# Distance of the wall behind, in the same lengths.
_WALL = 0.15
# Pixels of the wall's picture per pixel of a frame, and its side in sides of a frame.
_SURFACE_SCALE, _SURFACE_SIDE = 3, 2.0
# Pixels across a link's texture.
_TEXTURE_ROWS = 12


@dataclass(frozen=True)
class SwingRecipe(FilmedRecipe):
    """Pendulum of textured links with visible hinges in front of a cluttered wall, filmed by a moving camera.

    The motion is MuJoCo's, by Runge–Kutta steps of fourth order. Every trial has its own lengths, masses, damping,
    looks and camera. All ranges are drawn from uniformly.

    Attributes:
        trials: Number of trials; a tenth each is for validation and test.
        frames: Number of frames of a trial.
        seed: Seed of all random choices.
        size: Side of the picture, pixels.
        fps: Frames per second.
        tilt: Largest tilt of the camera against the normal of the plane of motion, degrees.
        roll: Largest rotation of the camera about its line of sight, degrees.
        shake: Standard deviation of the camera's rotation about each axis during a trial, degrees.
        exposure: Lowest and highest exposure time, as a fraction of the time between frames: motion blur.
        contrast: Lowest and highest contrast of the wall's pattern, 0 to 1.
        clutter: Largest number of shapes drawn onto the wall.
        unevenness: Largest unevenness of the light, as a fraction of its mean.
        flicker: Largest change of the light with time, as a fraction of its mean.
        noise: Lowest and highest standard deviation of the sensor's noise; 1 is full scale.
        quality: Lowest and highest quality of JPEG compression, 1 to 100; None for no compression.
        masks: If true, store which link each pixel shows.
        links: Number of links, 1 to 3.
        lengths: Lowest and highest length, drawn for every link, m.
        masses: Lowest and highest mass, evenly along the link, drawn for every link; kg.
        damping: Lowest and highest damping, drawn for every hinge; N m s/rad.
        gravity: Gravitational acceleration, m/s².
        angle: Largest angle of each hinge at the start, rad.
        speed: Largest speed of each hinge at the start, rad/s.
        half_width: Lowest and highest half width of the links, m.
        substeps: Number of Runge–Kutta steps from frame to frame, even.
    """

    links: int = integer(2, 1)
    lengths: tuple[Number, Number] = span((0.6, 1.0), 0, exclusive=True)
    masses: tuple[Number, Number] = span((0.5, 2.0), 0, exclusive=True)
    damping: tuple[Number, Number] = span((0.0, 0.1), 0)
    gravity: Number = real(9.81, 0)
    angle: Number = real(1.5, 0)
    speed: Number = real(2.0, 0)
    half_width: tuple[Number, Number] = span((0.1, 0.18), 0, exclusive=True)
    substeps: int = integer(20, 2)

    name: ClassVar[str] = "swing"
    packages: ClassVar[tuple[str, ...]] = ("mujoco", "numpy", "opencv-python-headless", "physvision", "pyarrow")

    def check(self) -> None:
        """Raise if a value is out of range."""
        super().check()
        if self.links > 3:
            raise InputError(f"links: expected 1 to 3, got {self.links}")
        if self.substeps % 2:
            raise InputError(f"substeps: expected an even number, got {self.substeps}")

    @property
    def reach(self) -> float:
        """Length of the longest pendulum, m."""
        return float(self.links * self.lengths[1] + self.half_width[1])

    @property
    def focal(self) -> float:
        """Focal length of the camera, pixels."""
        return 0.5 * self.size * _DISTANCE / _VISIBLE

    @property
    def geometry(self) -> str:
        """Axes and unit of the world, in words."""
        plane = "the links move in the plane z = 0 and the first hinge is at the origin"
        return f"x right, y down, z away from the camera, m; {plane}"

    @property
    def fields(self) -> dict[str, Field]:
        """State, camera and properties of every frame."""
        links = self.links
        return {
            "q": Field((links,), "rad", "angle of each hinge about z against the link before; 0 hangs down"),
            "v": Field((links,), "rad/s", "rate of q"),
            "extrinsics": Field((4, 4), "1, m", "pose of the camera, from the world to the camera's frame"),
            "length": Field((links,), "m", "lengths of the links", per_trial=True),
            "mass": Field((links,), "kg", "masses of the links, evenly along them", per_trial=True),
            "joint_damping": Field((links,), "N m s/rad", "damping of the hinges", per_trial=True),
            "gravity": Field((), "m/s^2", "gravitational acceleration, downwards", per_trial=True),
            "half_width": Field((), "m", "half width of the links", per_trial=True),
            **self.mask_fields("link"),
        }

    def trial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Make one trial, its frames and fields."""
        times = np.arange(self.frames) / self.fps
        lengths, masses, damping = (
            random.uniform(*limits, self.links) for limits in (self.lengths, self.masses, self.damping)
        )
        half_width = random.uniform(*self.half_width)
        links = Links(
            lengths=tuple(lengths.tolist()),
            masses=tuple(masses.tolist()),
            damping=tuple(damping.tolist()),
            radius=half_width,
            gravity=float(self.gravity),
        )
        q, v = self._motion(links, random)
        looks = self._looks(lengths, half_width, times, random)
        moments = times[:, None] + random.uniform(*self.exposure) / self.fps * MOMENTS
        renderer = SwingRenderer(looks, self.size, self.size, link_points(self._interpolate(q, v, moments), lengths))
        exact = slice(self.substeps // 2, None, self.substeps)
        return {
            "frames": renderer.frames(times, random),
            "q": q[exact],
            "v": v[exact],
            "extrinsics": looks.camera.extrinsics,
            "length": lengths,
            "mass": masses,
            "joint_damping": damping,
            "gravity": np.array(float(self.gravity)),
            "half_width": np.array(half_width),
            **({"masks": renderer.masks(link_points(q[exact], lengths))} if self.masks else {}),
        }

    def _motion(self, links: Links, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Angles and rates at all substeps, from half a frame before the first frame to half a frame after the last."""
        model = build(links, 1.0 / (self.fps * self.substeps), 1.0, 1.0)
        data = mujoco.MjData(model)
        data.qpos[:] = random.uniform(-self.angle, self.angle, self.links)
        data.qvel[:] = random.uniform(-self.speed, self.speed, self.links)
        q, v = np.empty((2, self.frames * self.substeps + 1, self.links))
        for step in range(len(q)):
            if step:
                mujoco.mj_step(model, data)
            q[step], v[step] = data.qpos, data.qvel
        # The last substep is after the last exposure; states of frames are at every `substeps` from the middle on.
        return q[:-1], v[:-1]

    def _interpolate(self, q: np.ndarray, v: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Angles at times between substeps, by cubic Hermite interpolation; time 0 is that of the first frame."""
        substeps = (np.arange(len(q)) - self.substeps // 2) / (self.fps * self.substeps)
        return CubicHermiteSpline(substeps, q, v)(times)

    def _looks(
        self, lengths: np.ndarray, half_width: float, times: np.ndarray, random: np.random.Generator
    ) -> SwingLooks:
        palette = random_palette(self.links, random)
        distance = _DISTANCE * self.reach
        scale = _SURFACE_SCALE * self.focal / distance
        side = int(_SURFACE_SCALE * _SURFACE_SIDE * self.size)
        pattern = _SURFACE_SCALE * random.uniform(4.0, 16.0)
        surface = patterned_surface((side, side), palette.surface, random.uniform(*self.contrast), pattern, random)
        # The picture of the wall is four times as large as what is visible of it.
        clutter = 4 * int(random.integers(self.clutter + 1))
        add_clutter(surface, palette.clutter(), clutter, _SURFACE_SCALE * 4.0, random)
        return SwingLooks(
            surface=surface,
            surface_origin=np.full(2, -0.5 * side / scale),
            surface_scale=scale,
            surface_depth=_WALL * self.reach,
            lighting=self.random_lighting(random),
            sensor=self.random_sensor(random),
            camera=self.random_camera(np.zeros(3), distance, times, random),
            textures=[_link_texture(link, length / half_width, palette, random) for link, length in enumerate(lengths)],
            hinges=np.stack([hsv_color(*random.uniform((0, 0, 0.3), (1, 0.6, 1))) for _ in lengths]),
            half_width=half_width,
        )

    def marks(self, values: Mapping[str, np.ndarray]) -> list[OverlayShape]:
        """Middle line of the links, with a dot at each hinge and at the end."""
        flat = link_points(values["q"], values["length"])
        points = np.concatenate([flat, np.zeros((len(flat), 1))], 1)
        pixels = project(self.intrinsics, values["extrinsics"], points)[:, :2] + 0.5
        return [Polyline(tuple((float(column), float(row)) for column, row in pixels))]


def _link_texture(link: int, slenderness: float, palette: Palette, random: np.random.Generator) -> np.ndarray:
    """Picture of a link: a pattern of its color, with bands of its accent across or along in two of three cases."""
    shape = (_TEXTURE_ROWS, max(int(0.5 * _TEXTURE_ROWS * slenderness), _TEXTURE_ROWS))
    texture = patterned_surface(shape, palette.objects[link], random.uniform(0.2, 0.8), random.uniform(4, 12), random)
    rows, columns = np.indices(shape)
    kind, period, phase = random.integers(3), random.uniform(1.0, 3.0) * _TEXTURE_ROWS, random.uniform(0, 2 * math.pi)
    if kind == 1:
        texture[np.sin(2 * math.pi * columns / period + phase) > 0.3] = palette.accents[link]
    elif kind == 2:
        texture[np.abs(rows + 0.5 - 0.5 * _TEXTURE_ROWS) < 0.2 * _TEXTURE_ROWS] = palette.accents[link]
    return texture
