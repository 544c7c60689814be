"""Films: frames drawn and coded by a thread of their own, and the motion of any engine as a camera sees it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from physvision.camera import Camera
from physvision.core import (
    Appearance,
    Box,
    Circle,
    FileError,
    InputError,
    Plane,
    Polygon,
    Rectangle,
    Shape,
    State,
    Trajectory,
    VideoError,
)
from physvision.physics import Engine
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.report.output import OutputFolder
from physvision.video import Encoding, VideoWriter

# As good to the eye as slower settings at this content, at a tenth of the time.
_CODING = Encoding("libx264", "yuv420p", {"crf": "20", "preset": "veryfast"})
# Frames a second beyond which a film shows no more.
_FASTEST = 60.0
# Height and width of a film of an engine, pixels, and the field of view of its camera, radians.
_SIZE, _FIELD = (480, 640), 0.7


class VideoFigure:
    """A film that is written while the next frames are computed."""

    def __init__(self, path: Path, fps: float) -> None:
        """Begin the film at `path`, an MP4 file, which appears when it is closed."""
        self._writer = VideoWriter(path, fps, encoding=_CODING)
        self._thread = ThreadPoolExecutor(1, "render_video")
        self._drawing: Future[None] | None = None
        self._ended = False

    def add(self, frames: Iterable[UInt8[np.ndarray, "rows columns 3"]]) -> None:
        """Take in some frames, which the film's thread draws as it iterates over them.

        Raises:
            FileError: frames given before could not be written; the film is given up.
        """
        self._wait()
        self._drawing = self._thread.submit(self._write, frames)

    def close(self) -> Path | None:
        """Finish the film and put it under its name; None if it was given up before.

        Raises:
            FileError: the last frames could not be written; the film is given up.
        """
        if self._ended:
            return None
        self._wait()
        self._end()
        self._writer.close()
        return self._writer.path

    def abandon(self) -> None:
        """Give up the film, unless it is finished."""
        if not self._ended:
            self._end()
            self._writer.__exit__(RuntimeError, RuntimeError("abandoned"), None)

    def _write(self, frames: Iterable[np.ndarray]) -> None:
        for frame in frames:
            self._writer.add(frame)

    def _end(self) -> None:
        self._ended = True
        self._thread.shutdown()

    def _wait(self) -> None:
        drawing, self._drawing = self._drawing, None
        if drawing is None:
            return
        try:
            drawing.result()
        except VideoError as error:
            self._end()
            raise FileError(f"{error}; make room and run again, or go without a film") from error


@torch.no_grad()
def render_video(
    engine: Engine,
    trajectory: Trajectory,
    path: Path | str,
    *,
    camera: Camera | None = None,
    world: int = 0,
    properties: Overrides = None,
) -> Path:
    """VideoFigure one world of a trajectory in real time.

    Args:
        engine: whose motion it is; one with mechanics.
        trajectory: of a batch of worlds.
        path: an MP4 file, whose folder is made where there is none.
        camera: how it is seen; one that has the whole motion in its picture if not given.
        world: which of the batch.
        properties: shared by all worlds; the engine's own if not given.

    Raises:
        InputError: the engine knows no bodies, or there is no such world.
        FileError, VideoError: the film cannot be written.
    """
    if engine.mechanics is None:
        raise InputError(f"engine: {type(engine).__name__} has no bodies to be filmed; give one with mechanics")
    if not 0 <= world < trajectory.batch:
        raise InputError(f"world: expected a number below {trajectory.batch}, got {world}")
    stride = max(1, round(1 / (_FASTEST * engine.dt)))
    states = State(trajectory.q[world, ::stride], trajectory.v[world, ::stride])
    known = engine.properties if properties is None else engine.checked(properties)
    seen = engine.mechanics.appearance(states, known)
    drawn = (camera or overview(engine.mechanics, seen)).bind(engine)
    with OutputFolder(Path(path).parent), VideoWriter(Path(path), 1 / (stride * engine.dt), encoding=_CODING) as writer:
        for number in range(states.batch):
            frame = drawn(State(states.q[number : number + 1], states.v[number : number + 1]), known)[0]
            writer.add(frame.clamp(0, 1).movedim(0, -1).cpu())
    return Path(path)


def overview(mechanics: MechanicalEngine, seen: Appearance) -> Camera:
    """A camera that has everything that moves in its picture; what could move, or else all there is, if nothing does.

    A world of the plane is seen from above, another one from the side and a little from above.

    Args:
        mechanics: what moves.
        seen: how it looks at some times.
    """
    places, kinds = seen.poses[..., :3, 3].double().cpu(), [each.shape for each in mechanics.geometry]
    reach = torch.tensor([_reach(kind, *size) for kind, size in zip(kinds, seen.sizes[0].tolist(), strict=True)])
    drawn = torch.tensor([not isinstance(kind, Plane) for kind in kinds])
    carried = torch.tensor([each.body is not None for each in mechanics.geometry]) & drawn
    moving = ((places - places[:1]).abs().amax((0, 2)) > 1e-6) & drawn
    chosen = next((each for each in (moving, carried, drawn) if bool(each.any())), None)
    if chosen is None:
        raise InputError("engine: it has no shapes but planes; give a camera")
    room = reach[chosen, None]
    low, high = (places[:, chosen] - room).amin((0, 1)), (places[:, chosen] + room).amax((0, 1))
    (x, y, z), (wide, deep, tall) = ((low + high) / 2).tolist(), ((high - low) / 2).clamp_min(1e-3).tolist()
    height, width = _SIZE
    if all(isinstance(kind, Circle | Polygon) for kind in kinds):
        down = bool(dict(mechanics.properties.items())["gravity"][1] > 0)
        return Camera.table(height, width, scale=0.45 * min(width / wide, height / deep), center=(x, y), y_down=down)
    away = 1.15 * max(tall, wide * height / width) / math.tan(0.5 * _FIELD) + deep
    return Camera.pinhole(height, width, position=(x, y - away, z + 0.2 * away), target=(x, y, z), fov=_FIELD)


def _reach(shape: Shape, first: float, second: float, third: float) -> float:
    """Radius of a ball about a shape's origin that holds the shape of these sizes."""
    if isinstance(shape, Polygon):
        return max(math.hypot(first * x, second * y) for x, y in shape.vertices)
    if isinstance(shape, Box | Rectangle):
        return 0.5 * math.hypot(first, second, third)
    return first + 0.5 * third
