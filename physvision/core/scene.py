"""Scene description: the video that a model expects and the meaning of its states, stored in the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from physvision.core.checks import check_color, check_count, check_positive
from physvision.core.errors import InputError

# Coordinate that no scene has, in its unit.
_MAX_COORDINATE = 1e9


@dataclass(frozen=True)
class Pinhole:
    """Pinhole camera through which frames were taken; up is +z.

    Attributes:
        position: Center of projection, m.
        target: Point in the middle of the picture, m.
        focal: Focal length, in pixels of the frame that the model takes.
    """

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    focal: float

    def __post_init__(self) -> None:
        check_positive("focal", self.focal)
        if not all(abs(coordinate) <= _MAX_COORDINATE for coordinate in (*self.position, *self.target)):
            raise InputError(f"view: expected finite coordinates, got {self.position} and {self.target}")


@dataclass(frozen=True)
class SceneObject:
    """One moving object of a scene.

    Attributes:
        name: Name shown to people.
        body: Row of the body in `engine.poses(state)`.
        points: Points in the frame of the body, joined by a line in overlays; a single point is drawn as a ring.
        radius: Radius of the ring, in units of the world; None if there are several points.
        color: Color in the picture (red, green, blue), 0 to 1; equal values for gray. Videos are checked against it if
            all objects have a color.
    """

    name: str
    body: int
    points: Sequence[tuple[float, float, float]] = ((0.0, 0.0, 0.0),)
    radius: float | None = None
    color: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple(map(tuple, self.points)))
        check_count("body", self.body, 0)
        if self.radius is not None:
            check_positive("radius", self.radius)
        if self.color is not None:
            check_color("color", self.color)
        if not all(abs(coordinate) <= _MAX_COORDINATE for point in self.points for coordinate in point):
            raise InputError(f"points: expected finite coordinates of a scene, got {self.points}")


@dataclass(frozen=True)
class Scene:
    """Video that a model expects, and names and units of its states and parameters.

    Attributes:
        title: Content of the video, in a few words.
        appearance: Required look of the video, in one sentence.
        size: Width and height of a frame, pixels.
        color: "gray" (one channel) or "rgb" (three).
        fps: Frame rate, frames a second; one step of the engine is one frame.
        frames_in: Number of consecutive frames that the encoder takes.
        coordinates: Names and units of the coordinates of an object, in the order of the engine's positions; "rad",
            "m", or "px" for pixels of a frame of `size` from its upper left corner, y down.
        objects: Moving objects, in the order of the engine's positions.
        parameters: Names and units of learned parameters and of relevant properties of the engine.
        view: Camera of the scene; None if a unit of the world is a pixel and y points down.
        min_reprojection_score: Fraction of the frames' variance that the rendered state explains in nearly all videos
            of the model's domain (see `physvision.prediction.appearance_check`).
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
        """Number of channels of a frame."""
        return 1 if self.color == "gray" else 3

    @property
    def positions(self) -> int:
        """Number of position coordinates of all objects together."""
        return len(self.objects) * len(self.coordinates)
