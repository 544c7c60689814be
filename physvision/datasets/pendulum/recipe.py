"""Recipe of the data set `pendulum`: the compound pendulum, seen from the side."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import mujoco
import numpy as np

from physvision.core import InputError
from physvision.datasets.pendulum.drawing import RayDrawing
from physvision.datasets.pendulum.model import Links, build
from physvision.datasets.recipe import Field, FrameFormat, Number, Recipe, check_number, integer, real
from physvision.video.overlay import OverlayShape, Polyline

# The camera stands this many lengths of the stretched pendulum away, and sees this much more than its circle.
_DISTANCE, _MARGIN = 4.0, 1.1


@dataclass(frozen=True)
class PendulumRecipe(Recipe):
    """An n-link compound pendulum, simulated and drawn in gray by MuJoCo.

    Attributes:
        trials: Number of trials; a tenth each is for validation and test.
        frames: Number of frames of a trial.
        seed: Seed of all random choices.
        lengths: Lengths of the links, m; their number is the number of links.
        masses: Masses of the links, kg; 1 each if not given.
        damping: Damping of every hinge, or of each in turn; N m s/rad.
        gravity: Gravitational acceleration, m/s².
        dt: Time between frames, s.
        size: Side of the picture, pixels.
        radius: Radius of the links in the picture, m.
        angle: Largest angle of each hinge at the start, rad.
        speed: Largest speed of each hinge at the start, rad/s.
        noise: Standard deviation of the noise of every pixel; 1 is full scale.
        substeps: Number of steps of the fourth-order Runge–Kutta method from frame to frame.
        samples: Number of rays across a pixel at an edge.
    """

    trials: int = integer(100, 1)
    frames: int = integer(200, 1)
    lengths: tuple[Number, ...] = (3.0, 3.0, 3.0)
    masses: tuple[Number, ...] | None = None
    damping: Number | tuple[Number, ...] = 0.0
    gravity: Number = real(9.81, 0)
    dt: Number = real(0.05, 0, exclusive=True)
    size: int = integer(100, 2)
    radius: Number = real(0.35, 0, exclusive=True)
    angle: Number = real(math.pi / 2, 0)
    speed: Number = real(1.0, 0)
    noise: Number = real(0.0, 0)
    substeps: int = integer(20, 1)
    samples: int = integer(4, 1)

    name: ClassVar[str] = "pendulum"
    packages: ClassVar[tuple[str, ...]] = ("mujoco", "numpy", "physvision", "pyarrow")

    def check(self) -> None:
        """Raise if a value is out of range."""
        super().check()
        if len(self.lengths) == 0:
            raise InputError("lengths: expected one or more links, got none")
        if self.masses is not None and len(self.masses) != len(self.lengths):
            raise InputError(f"masses: expected one for each of {len(self.lengths)} links, got {len(self.masses)}")
        if isinstance(self.damping, tuple | list):
            if len(self.damping) != len(self.lengths):
                raise InputError(
                    f"damping: expected one for each of {len(self.lengths)} hinges, got {len(self.damping)}"
                )
            for index, value in enumerate(self.damping):
                check_number(f"damping[{index}]", value, 0)
        else:
            check_number("damping", self.damping, 0)
        for name, values in (("lengths", self.lengths), ("masses", self.masses or ())):
            for index, value in enumerate(values):
                check_number(f"{name}[{index}]", value, 0, exclusive=True)

    @property
    def links(self) -> Links:
        """Rods of the pendulum, with their masses and damping."""
        lengths = tuple(map(float, self.lengths))
        masses = tuple(map(float, self.masses)) if self.masses is not None else (1.0,) * len(lengths)
        per_hinge = self.damping if isinstance(self.damping, tuple | list) else (self.damping,) * len(lengths)
        damping = tuple(map(float, per_hinge))
        return Links(lengths, masses, damping, float(self.radius), float(self.gravity))

    @property
    def view(self) -> tuple[float, float]:
        """Distance of the camera from the plane of motion, m, and its angle of view, rad."""
        reach = sum(map(float, self.lengths)) + float(self.radius)
        return _DISTANCE * reach, 2.0 * math.atan(_MARGIN / _DISTANCE)

    @property
    def frame_format(self) -> FrameFormat:
        """Size and rate of the frames."""
        distance, angle = self.view
        focal = 0.5 * self.size / math.tan(0.5 * angle)
        geometry = (
            f"pinhole at (0, {-distance:.9g}, 0) m looking along +y, z up, focal length {focal:.9g} px: (x, y, z) m is "
            f"seen at column {self.size / 2:g} + f x / (y + {distance:.9g}), "
            f"row {self.size / 2:g} - f z / (y + {distance:.9g}); "
            "the pixel of row i and column j covers j to j + 1 and i to i + 1"
        )
        return FrameFormat(self.size, self.size, 1, 1.0 / self.dt, geometry)

    @property
    def fields(self) -> dict[str, Field]:
        """State and properties of every frame."""
        links = len(self.lengths)
        return {
            "q": Field((links,), "rad", "angle of each hinge about y against the link before; 0 hangs down"),
            "v": Field((links,), "rad/s", "rate of q"),
            "length": Field((links,), "m", "lengths of the links", per_trial=True),
            "mass": Field((links,), "kg", "masses of the links, evenly along them", per_trial=True),
            "joint_damping": Field((links,), "N m s/rad", "damping of the hinges", per_trial=True),
            "gravity": Field((), "m/s^2", "gravity, downwards", per_trial=True),
        }

    def trial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Make one trial, its frames and fields."""
        links = self.links
        count = len(links.lengths)
        model = build(links, float(self.dt) / self.substeps, *self.view)
        data = mujoco.MjData(model)
        data.qpos[:] = random.uniform(-self.angle, self.angle, count)
        data.qvel[:] = random.uniform(-self.speed, self.speed, count)
        levels = np.linspace(1.0, 0.4, count)
        drawing = RayDrawing(model, "side", (self.size, self.size), levels, self.samples)
        frames = np.empty((self.frames, self.size, self.size, 1), np.uint8)
        q, v = np.empty((self.frames, count)), np.empty((self.frames, count))
        for frame in range(self.frames):
            if frame:
                mujoco.mj_step(model, data, self.substeps)
            mujoco.mj_kinematics(model, data)
            q[frame], v[frame] = data.qpos, data.qvel
            frames[frame] = drawing.draw(data)
        if self.noise > 0.0:
            noise = random.standard_normal(frames.shape, dtype=np.float32) * np.float32(255.0 * self.noise)
            frames = np.rint(np.clip(frames + noise, 0.0, 255.0)).astype(np.uint8)
        return {
            "frames": frames,
            "q": q,
            "v": v,
            "length": np.array(links.lengths),
            "mass": np.array(links.masses),
            "joint_damping": np.array(links.damping),
            "gravity": np.array(links.gravity),
        }

    def marks(self, values: Mapping[str, np.ndarray]) -> list[OverlayShape]:
        """Middle lines of the links, with a dot at each hinge and at the end."""
        distance, angle = self.view
        focal = 0.5 * self.size / math.tan(0.5 * angle)
        turned = np.cumsum(values["q"])
        # A positive turn about y moves what hangs along −z towards −x.
        steps = -values["length"][:, None] * np.stack([np.sin(turned), np.cos(turned)], axis=1)
        x, z = np.vstack([np.zeros((1, 2)), np.cumsum(steps, axis=0)]).T
        points = np.stack([0.5 * self.size + focal * x / distance, 0.5 * self.size - focal * z / distance], axis=1)
        return [Polyline(tuple(map(tuple, points)))]
