"""A drawn clip: a motion, how it was filmed, and the file that comes of it with everything that spoils real ones."""

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
from physvision.datasets.clips.drawing import Exposure, Painter, Projection, view
from physvision.datasets.clips.flights import bounce, fall, projectile
from physvision.datasets.clips.motion import Motion
from physvision.datasets.clips.surfaces import collision, roll, slide
from physvision.datasets.clips.swings import circular, double_pendulum, pendulum, spring

KINDS = {
    make.__name__: make
    for make in (pendulum, double_pendulum, projectile, bounce, spring, slide, roll, collision, circular, fall)
}
# The parameters that a clip of each kind is made for; the others are hard to tell from one clip.
LEADING = {
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
_MEASURED = 1e-3  # of a scale: how exactly people measure two points of a picture
_FAST = ("double_pendulum", "collision", "bounce", "projectile", "fall")


@dataclass(frozen=True)
class Filming:
    """How a motion was filmed.

    Attributes:
        size: width and height, pixels.
        fps: frames a second that were taken.
        stamped: frames a second that the file claims; None for the true rate.
        open: share of a frame's time during which the shutter is open.
        readout: seconds from the first row to the last.
        noise: standard deviation of each pixel, levels of 255.
        flicker: standard deviation of the brightness from frame to frame, of 1.
        quality: H.264's constant rate factor; 18 is good, 30 is poor.
        shake: standard deviation of the camera's shift, pixels.
        roll: of the camera, rad; `yaw` and `pitch` are against the plane's normal.
        yaw: rad.
        pitch: rad.
        share: of the picture that the motion fills.
        dropped: share of frames that are missing, their stamps too.
        doubled: share of frames that show the one before again.
        quarters: quarter turns that the file's rotation flag asks a player for.
        repeat: times that each frame is shown, as a recording of a screen does.
    """

    size: tuple[int, int] = (640, 360)
    fps: float = 30.0
    stamped: float | None = None
    open: float = 0.3
    readout: float = 0.0
    noise: float = 2.0
    flicker: float = 0.0
    quality: int = 23
    shake: float = 0.0
    roll: float = 0.0
    yaw: float = 0.0
    pitch: float = 0.0
    share: float = 0.75
    dropped: float = 0.0
    doubled: float = 0.0
    quarters: int = 0
    repeat: int = 1

    @classmethod
    def at_random(cls, random: np.random.Generator, fast: bool = False, tall: bool = False) -> Filming:
        """As people film: by hand or not, in good light or not.

        Args:
            random: what chooses.
            fast: with 50 frames a second or more.
            tall: what is filmed is higher than wide, so that the phone may be held upright.
        """
        sizes = ((640, 360), (640, 480), (480, 360), (360, 640))
        taken = cls(
            size=sizes[random.integers(4 if tall else 3)],
            fps=float(random.choice([50, 60, 120] if fast else [25, 30, 30, 50, 60])),
            open=random.uniform(0.1, 0.5),
            readout=random.uniform(0, 0.02) * (random.random() < 0.7),
            noise=random.uniform(0.5, 5),
            flicker=random.uniform(0, 0.01) * (random.random() < 0.5),
            quality=int(random.integers(18, 30)),
            shake=random.uniform(0, 1) * (random.random() < 0.4),
            roll=np.radians(random.uniform(-1.5, 1.5)),
            yaw=np.radians(random.uniform(-2, 2)),
            pitch=np.radians(random.uniform(-2, 2)),
            share=random.uniform(0.55, 0.85),
            dropped=random.uniform(0, 0.04) * (random.random() < 0.3),
            doubled=random.uniform(0, 0.04) * (random.random() < 0.3),
        )
        # Slow motion, and the like, is written with a usual rate.
        return replace(taken, stamped=30.0) if random.random() < 0.1 else taken


@dataclass(frozen=True)
class DrawnClip:
    """A clip that is drawn when it is written.

    Attributes:
        motion: what it shows.
        filming: how.
        view: the camera's place.
        times: true seconds of every frame that is in the file, the middle of its first row's exposure.
        stamps: seconds that the file says.
        shows: number of the frame whose picture it shows; not its own where it is doubled.
        seed: what made it.
        options: what somebody who filmed it would tell besides `motion.known`: the scale as measured, pixels a metre,
            and the rate.
    """

    motion: Motion
    filming: Filming
    view: Projection
    times: np.ndarray
    stamps: np.ndarray
    shows: np.ndarray
    seed: int
    options: dict[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Of the motion."""
        return self.motion.kind

    @property
    def truth(self) -> dict[str, float]:
        """Parameters, SI units."""
        return dict(self.motion.truth)

    @property
    def known(self) -> dict[str, float]:
        """Parameters that are told."""
        return dict(self.motion.known)

    def places(self) -> np.ndarray:
        """Where each body's middle is seen in each frame, (times, bodies, 2), pixels, without shake."""
        taken = self.times[self.shows]
        rows = np.zeros((len(taken), len(self.motion.bodies)))
        height = self.filming.size[1]
        places = np.zeros((*rows.shape, 2))
        for _ in range(4):  # the row that sees a body depends on where it is then
            for body in range(rows.shape[1]):
                moments = taken + self.filming.readout * rows[:, body] / height
                places[:, body] = self.view.project(self.motion.poses(moments)[:, body, :2])
            rows = np.clip(places[..., 1], 0, height)
        return places

    def frames(self) -> Iterator[np.ndarray]:
        """The frames, levels of 0 to 255, before they are compressed."""
        random = np.random.default_rng([self.seed, 1, list(KINDS).index(self.kind)])
        filming = self.filming
        exposure = Exposure(filming.open / filming.fps, filming.readout)
        painter = Painter(self.motion, self.view, filming.size, exposure, random)
        bank = random.normal(0, 1, (filming.size[1] + 64, filming.size[0] + 64, 3)).astype(np.float32)
        shakes = _shakes(random, len(self.times), filming.shake)
        picture = np.zeros(0)
        for index, time in enumerate(self.times):
            if self.shows[index] == index:
                picture = painter.frame(time - exposure.open / 2, shakes[index])
                picture = picture * (1 + filming.flicker * random.normal())
                y, x = random.integers(0, 64, 2)
                noise = bank[y : y + filming.size[1], x : x + filming.size[0]] * random.choice([-1, 1])
                picture = np.clip(picture + filming.noise * noise, 0, 255).astype(np.uint8)
            yield picture

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write it as H.264 and return the path; the same bytes each time."""
        # x264's tree of macroblocks reads memory that nobody has filled, so that single frames would differ.
        options = {"crf": str(self.filming.quality), "preset": "veryfast", "x264-params": "mbtree=0"}
        coding = video.Encoding("libx264", "yuv420p", options)
        with video.VideoWriter(path, None, encoding=coding) as writer:
            for stamp, frame in zip(self.stamps, self.frames(), strict=True):
                writer.add(np.rot90(frame, self.filming.quarters), float(stamp))
        if self.filming.quarters:
            _flag_rotation(Path(path), self.filming.quarters)
        return Path(path)


def draw(kind: str, seed: int = 0, filming: Filming | None = None, **changes: Any) -> DrawnClip:
    """A clip of one of `KINDS`, its parameters drawn at random from `seed`.

    Args:
        kind: of motion.
        seed: of everything.
        filming: how it is filmed; at random if not given.
        changes: values of `Filming` to change.
    """
    if kind not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    random = np.random.default_rng([seed, list(KINDS).index(kind)])
    motion = KINDS[kind](random)
    span = np.ptp(motion.poses(np.linspace(0, motion.duration, 100))[..., :2].reshape(-1, 2), axis=0)
    filming = filming or Filming.at_random(random, kind in _FAST, bool(span[1] > 1.2 * span[0]))
    return film(motion, replace(filming, **changes), seed)


def film(motion: Motion, filming: Filming, seed: int = 0) -> DrawnClip:
    """The clip of a motion, filmed as told."""
    random = np.random.default_rng([seed, 2, list(KINDS).index(motion.kind)])
    sample = motion.poses(np.linspace(motion.begin, motion.duration, 400))[..., :2]
    reach = max(max(body.size) for body in motion.bodies) / 2
    points = np.concatenate([sample.reshape(-1, 2), np.array(motion.must_see).reshape(-1, 2)])
    points = np.concatenate([points - reach, points + reach])
    seen, scale = view(points, *filming.size, filming.share, filming.roll, filming.yaw, filming.pitch)
    taken = np.arange(int(motion.duration * filming.fps)) / filming.fps
    kept = np.concatenate([[True], random.random(len(taken) - 1) >= filming.dropped])
    times = np.repeat(taken[kept], filming.repeat)
    shows = np.arange(len(times)) // filming.repeat * filming.repeat
    again = np.flatnonzero(random.random(len(times)) < filming.doubled)
    for index in again[again > 0]:
        shows[index] = shows[index - 1]
    shown = times if filming.repeat == 1 else np.arange(len(times)) / (filming.fps * filming.repeat)
    stamps = shown * (1.0 if filming.stamped is None else filming.fps / filming.stamped)
    options = {"fps": filming.fps} if filming.stamped not in (None, filming.fps) else {}
    if motion.kind in ("circular", "fall", "slide", "roll"):
        options["scale"] = scale * (1 + _MEASURED * random.normal())
    return DrawnClip(motion, filming, seen, times, stamps, shows, seed, options)


def _shakes(random: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    """Shifts of a hand-held camera, (frames, 2), pixels: slow and quick ones together."""
    steps = random.normal(0, 1, (count + 40, 2))
    slow = np.stack([np.convolve(column, np.hanning(40), "same") for column in steps.T], 1)[20 : 20 + count]
    slow /= max(slow.std(), 1e-9)
    return deviation * (0.9 * slow + 0.4 * random.normal(0, 1, (count, 2)))


def _flag_rotation(path: Path, quarters: int) -> None:
    """Have players turn the picture clockwise: the matrix of an MP4's track header."""
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters % 4]
    matrix = struct.pack(">9i", cos << 16, sin << 16, 0, -sin << 16, cos << 16, 0, 0, 0, 1 << 30)
    content = bytearray(path.read_bytes())
    start = content.index(b"tkhd") + 44
    content[start : start + 36] = matrix
    path.write_bytes(content)
