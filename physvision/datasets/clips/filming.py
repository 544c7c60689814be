"""Drawn clips: a motion, the way it is filmed, and a file with the defects of real clips."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from physvision import video
from physvision.core import InputError
from physvision.datasets.clips.drawing import Exposure, Painter, Projection, fit_view
from physvision.datasets.clips.flights import bounce, fall, projectile
from physvision.datasets.clips.motion import Motion
from physvision.datasets.clips.surfaces import collision, roll, slide
from physvision.datasets.clips.swings import circular, double_pendulum, pendulum, spring

KINDS = {
    make.__name__: make
    for make in (pendulum, double_pendulum, projectile, bounce, spring, slide, roll, collision, circular, fall)
}
# Parameters that a clip of each kind of motion determines well.
DETERMINED_PARAMETERS = {
    "pendulum": ("length",),
    "double_pendulum": ("length_1", "length_2"),
    "projectile": ("speed", "angle"),
    "bounce": ("restitution",),
    "spring": ("stiffness", "period"),
    "slide": ("acceleration",),
    "roll": ("acceleration",),
    "collision": ("mass_ratio", "restitution"),
    "circular": ("period", "radius"),
    "fall": ("acceleration",),
}
# Relative standard deviation of a scale that is measured between two points of a picture.
_SCALE_ERROR = 1e-3
_POST_LEVEL = 95.0  # of 255
# Kinds of motion that need a high frame rate.
_FAST = ("double_pendulum", "collision", "bounce", "projectile", "fall")


@dataclass(frozen=True)
class Filming:
    """Camera and file options of a drawn clip.

    Attributes:
        size: Width and height, pixels.
        fps: True frame rate, frames per second.
        stated_fps: Frame rate that the file claims; None for the true rate.
        exposure: Fraction of the time between frames during which the shutter is open.
        readout: Time from the first row to the last, s.
        noise: Standard deviation of each pixel, levels of 255.
        flicker: Standard deviation of the brightness from frame to frame, of 1.
        quality: Constant rate factor of H.264; 18 is good, 30 is poor.
        shake: Standard deviation of the camera's shift, pixels.
        roll: Rotation of the camera about its line of sight, rad.
        yaw: Rotation of the camera to the side against the normal of the plane, rad.
        pitch: Rotation of the camera up or down against the normal of the plane, rad.
        fill_fraction: Fraction of the picture that the motion fills.
        dropped: Fraction of frames that are missing, with their time stamps.
        duplicated: Fraction of frames that repeat the previous one.
        quarter_turns: Quarter turns in the rotation flag of the file.
        repeat: Number of times that each frame is shown, as in a recording of a screen.
        brightness: Factor of the light; below one, the noise of the camera stays as it is.
        post: Width of a post in front of the motion, relative to the longer side of the motion; 0 for none. It stands
            in the scene, so that it shakes with it in the picture.
    """

    size: tuple[int, int] = (640, 360)
    fps: float = 30.0
    stated_fps: float | None = None
    exposure: float = 0.3
    readout: float = 0.0
    noise: float = 2.0
    flicker: float = 0.0
    quality: int = 23
    shake: float = 0.0
    roll: float = 0.0
    yaw: float = 0.0
    pitch: float = 0.0
    fill_fraction: float = 0.75
    dropped: float = 0.0
    duplicated: float = 0.0
    quarter_turns: int = 0
    repeat: int = 1
    brightness: float = 1.0
    post: float = 0.0

    @classmethod
    def at_random(cls, random: np.random.Generator, fast: bool, tall: bool) -> Filming:
        """Random options as people film: by hand or not, in good light or not.

        Args:
            random: Random generator.
            fast: If true, take 50 frames a second or more.
            tall: If true, the motion is higher than wide, so that the phone may be held upright.
        """
        sizes = ((640, 360), (640, 480), (480, 360), (360, 640))
        filming = cls(
            size=sizes[random.integers(4 if tall else 3)],
            fps=float(random.choice([50, 60, 120] if fast else [25, 30, 30, 50, 60])),
            exposure=random.uniform(0.1, 0.5),
            readout=random.uniform(0, 0.02) * (random.random() < 0.7),
            noise=random.uniform(0.5, 5),
            flicker=random.uniform(0, 0.01) * (random.random() < 0.5),
            quality=int(random.integers(18, 30)),
            shake=random.uniform(0, 1) * (random.random() < 0.4),
            roll=np.radians(random.uniform(-1.5, 1.5)),
            yaw=np.radians(random.uniform(-2, 2)),
            pitch=np.radians(random.uniform(-2, 2)),
            fill_fraction=random.uniform(0.55, 0.85),
            dropped=random.uniform(0, 0.04) * (random.random() < 0.3),
            duplicated=random.uniform(0, 0.04) * (random.random() < 0.3),
        )
        # Slow-motion files often state 30 frames a second, not the rate of the capture.
        return replace(filming, stated_fps=30.0) if random.random() < 0.1 else filming


@dataclass(frozen=True)
class DrawnClip:
    """Clip that is drawn when it is written.

    Attributes:
        motion: Motion that the clip shows.
        filming: Camera and file options.
        view: Projection of the plane of motion.
        times: True time of every frame in the file, the middle of the exposure of its first row, s.
        timestamps: Timestamps of the frames in the file, s.
        shown_frames: Index of the frame whose picture each frame shows; not its own index where it is a duplicate.
        seed: Seed of the clip.
        options: Options for `identify` that the person who films would state besides `motion.known`: the measured
            scale, pixels per meter, and the frame rate.
    """

    motion: Motion
    filming: Filming
    view: Projection
    times: np.ndarray
    timestamps: np.ndarray
    shown_frames: np.ndarray
    seed: int
    options: dict[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Name of the kind of motion."""
        return self.motion.kind

    @property
    def truth(self) -> dict[str, float]:
        """True values of the parameters, SI units."""
        return dict(self.motion.truth)

    @property
    def known(self) -> dict[str, float]:
        """Parameters that the person who films would state."""
        return dict(self.motion.known)

    def positions(self) -> np.ndarray:
        """Pixels of the center of each body in each frame, (times, bodies, 2), without shake."""
        times, height = self.times[self.shown_frames], self.filming.size[1]
        pixels = np.zeros((len(times), len(self.motion.bodies), 2))
        for _ in range(4):  # fixed-point iteration: a body's row decides when it is read out, and so where it is
            rows = np.clip(pixels[..., 1], 0, height)
            for body in range(rows.shape[1]):
                readout_times = times + self.filming.readout * rows[:, body] / height
                pixels[:, body] = self.view.project(self.motion.poses(readout_times)[:, body, :2])
        return pixels

    def frames(self) -> Iterator[np.ndarray]:
        """Yield the frames, levels of 0 to 255, before compression."""
        random = np.random.default_rng([self.seed, 1, list(KINDS).index(self.kind)])
        filming = self.filming
        exposure = Exposure(filming.exposure / filming.fps, filming.readout)
        painter = Painter(self.motion, self.view, filming.size, exposure, random)
        # Each frame's noise is a random crop of one larger field.
        noise_field = random.normal(0, 1, (filming.size[1] + 64, filming.size[0] + 64, 3)).astype(np.float32)
        shakes = _shakes(random, len(self.times), filming.shake)
        picture, (axis, begin, end) = np.zeros(0), self._post()
        for index, time in enumerate(self.times):
            if self.shown_frames[index] == index:
                picture = painter.frame(time - exposure.duration / 2, shakes[index])
                if end > begin:
                    edges = np.arange(picture.shape[1 - axis] + 1) - shakes[index][axis]
                    post = np.diff(edges.clip(begin, end)).astype(np.float32)
                    post = post[None, :, None] if axis == 0 else post[:, None, None]
                    picture += post * (_POST_LEVEL - picture)
                picture = picture * (filming.brightness * (1 + filming.flicker * random.normal()))
                y, x = random.integers(0, 64, 2)
                noise = noise_field[y : y + filming.size[1], x : x + filming.size[0]] * random.choice([-1, 1])
                picture = np.clip(picture + filming.noise * noise, 0, 255).astype(np.uint8)
            yield picture

    def _post(self) -> tuple[int, int, int]:
        """Return the axis that the post hides a part of, and its edges, beside the middle of the longer side."""
        path = self.positions().reshape(-1, 2)
        low, span = path.min(0), np.ptp(path, axis=0)
        axis = int(span.argmax())
        width = self.filming.post * span[axis]
        begin = round(float(low[axis] + 0.6 * span[axis] - width / 2))
        return axis, begin, begin + round(width)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the clip as H.264 and return the path; the bytes are the same each time."""
        # x264's tree of macroblocks reads memory that nobody has filled, so that single frames would differ.
        options = {"crf": str(self.filming.quality), "preset": "veryfast", "x264-params": "mbtree=0"}
        coding = video.Encoding("libx264", "yuv420p", options)
        with video.VideoWriter(path, None, encoding=coding) as writer:
            for stamp, frame in zip(self.timestamps, self.frames(), strict=True):
                writer.add(np.rot90(frame, self.filming.quarter_turns), float(stamp))
        if self.filming.quarter_turns:
            _flag_rotation(Path(path), self.filming.quarter_turns)
        return Path(path)


def draw(kind: str, seed: int = 0, filming: Filming | None = None, **changes: Any) -> DrawnClip:
    """Clip of one of `KINDS` with random parameters.

    Args:
        kind: Kind of motion.
        seed: Seed of all random choices.
        filming: Camera and file options; random if not given.
        changes: Values of `Filming` to change.
    """
    if kind not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    random = np.random.default_rng([seed, list(KINDS).index(kind)])
    motion = KINDS[kind](random)
    span = np.ptp(motion.poses(np.linspace(0, motion.duration, 100))[..., :2].reshape(-1, 2), axis=0)
    filming = filming or Filming.at_random(random, kind in _FAST, bool(span[1] > 1.2 * span[0]))
    return film(motion, replace(filming, **changes), seed)


def film(motion: Motion, filming: Filming, seed: int = 0) -> DrawnClip:
    """Clip of a motion, filmed with the given options."""
    random = np.random.default_rng([seed, 2, list(KINDS).index(motion.kind)])
    path = motion.poses(np.linspace(motion.release, motion.duration, 400))[..., :2]
    margin = max(max(body.size) for body in motion.bodies) / 2
    points = np.concatenate([path.reshape(-1, 2), np.array(motion.visible_points).reshape(-1, 2)])
    points = np.concatenate([points - margin, points + margin])
    view = fit_view(points, *filming.size, filming.fill_fraction, filming.roll, filming.yaw, filming.pitch)
    capture_times = np.arange(int(motion.duration * filming.fps)) / filming.fps
    retained = np.concatenate([[True], random.random(len(capture_times) - 1) >= filming.dropped])
    times = np.repeat(capture_times[retained], filming.repeat)
    shown_frames = np.arange(len(times)) // filming.repeat * filming.repeat
    duplicates = np.flatnonzero(random.random(len(times)) < filming.duplicated)
    for index in duplicates[duplicates > 0]:
        shown_frames[index] = shown_frames[index - 1]
    playback_times = times if filming.repeat == 1 else np.arange(len(times)) / (filming.fps * filming.repeat)
    timestamps = playback_times * (1.0 if filming.stated_fps is None else filming.fps / filming.stated_fps)
    options = {"fps": filming.fps} if filming.stated_fps not in (None, filming.fps) else {}
    if motion.kind in ("circular", "fall", "slide", "roll"):
        options["scale"] = view.scale * (1 + _SCALE_ERROR * random.normal())
    return DrawnClip(motion, filming, view, times, timestamps, shown_frames, seed, options)


def _shakes(random: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    """Shifts of a hand-held camera, slow and quick ones together, (frames, 2), pixels."""
    steps = random.normal(0, 1, (count + 40, 2))
    slow = np.stack([np.convolve(column, np.hanning(40), "same") for column in steps.T], 1)[20 : 20 + count]
    slow /= max(slow.std(), 1e-9)
    return deviation * (0.9 * slow + 0.4 * random.normal(0, 1, (count, 2)))


def _flag_rotation(path: Path, quarter_turns: int) -> None:
    """Set the rotation matrix in the track header of an MP4, so that players turn the picture clockwise."""
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter_turns % 4]
    matrix = struct.pack(">9i", cos << 16, sin << 16, 0, -sin << 16, cos << 16, 0, 0, 0, 1 << 30)
    content = bytearray(path.read_bytes())
    start = content.index(b"tkhd") + 44
    content[start : start + 36] = matrix
    path.write_bytes(content)
