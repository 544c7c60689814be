"""What a model was trained to see, and what its numbers mean: kept in the checkpoint, beside what rebuilds the model.

A configuration writes it as plain values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from physvision.core.checks import check_count, check_positive
from physvision.core.errors import InputError


@dataclass(frozen=True)
class Pinhole:
    """The pinhole that frames were seen through; `up` is +z.

    Attributes:
        position: of the pinhole, m.
        target: what is in the middle of the picture, m.
        focal: pixels of the picture that the model takes.
    """

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    focal: float


@dataclass(frozen=True)
class SceneObject:
    """One thing that moves.

    Attributes:
        name: for people.
        body: its row of `engine.poses(state)`.
        points: of the body's own frame, joined by a line when the object is drawn over a frame; one point for a ring.
        radius: of the ring, in units of the world; None where there are several points.
        color: red, green, blue, 0 to 1, that it has in the picture, equal ones for gray; what is seen is compared with
            it where all objects have one.
    """

    name: str
    body: int
    points: Sequence[tuple[float, float, float]] = ((0.0, 0.0, 0.0),)
    radius: float | None = None
    color: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple(map(tuple, self.points)))


@dataclass(frozen=True)
class Scene:
    """What a model expects of a video, and what its states and parameters are.

    Attributes:
        title: what is seen, in a few words.
        appearance: how a video must look, in one sentence.
        size: width and height of a frame, pixels.
        color: "gray" (one channel) or "rgb" (three).
        fps: frames a second; the engine's step is one frame.
        frames_in: consecutive frames that the encoder takes.
        coordinates: of each object, in the order of the engine's positions: name and unit ("rad", "m", or "px" for
            pixels of a frame of `size`, from its upper left corner, y down).
        objects: what moves, in the order of the engine's positions.
        parameters: names of learned parameters or of the engine's properties that matter, and their units.
        view: the camera; None if a unit of the world is a pixel and y points down.
        min_reprojection_score: Fraction of the frames' variance that the rendered state explains in nearly all videos
            of the model's domain (see `physvision.prediction.reprojection`).
    """

    title: str
    appearance: str
    size: tuple[int, int]
    color: Literal["gray", "rgb"]
    fps: float
    frames_in: int
    coordinates: Mapping[str, str]
    objects: Sequence[SceneObject]
    parameters: Mapping[str, str]
    view: Pinhole | None = None
    min_reprojection_score: float = 0.5

    def __post_init__(self) -> None:
        for name, side in zip(("width", "height"), self.size, strict=True):
            check_count(name, side)
        object.__setattr__(self, "objects", tuple(self.objects))
        check_positive("fps", self.fps)
        check_count("frames_in", self.frames_in)
        if not self.objects or not self.coordinates:
            raise InputError("scene: expected at least one object and one coordinate")
        unknown = set(self.coordinates.values()) - {"rad", "m", "px"}
        if unknown:
            raise InputError(f"coordinates: expected the units rad, m or px, got {', '.join(sorted(unknown))}")

    @property
    def channels(self) -> int:
        """Of a frame."""
        return 1 if self.color == "gray" else 3

    @property
    def positions(self) -> int:
        """How many numbers the positions of all objects are."""
        return len(self.objects) * len(self.coordinates)
