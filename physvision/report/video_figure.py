"""Videos of reports: frames rendered and encoded in a thread, and the motion of any engine as a camera sees it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from physvision import core
from physvision.camera import Camera
from physvision.physics import Engine
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.report.output import OutputFolder
from physvision.video import Encoding, VideoWriter

# Visually as good as slower presets for this content, at a tenth of the time.
_ENCODING = Encoding("libx264", "yuv420p", {"crf": "20", "preset": "veryfast"})
MAX_FPS = 60.0
VIDEO_SIZE = (480, 640)  # height and width of an engine's video, px
FIELD_OF_VIEW = 0.7  # vertical, rad


class VideoFigure:
    """Video that is encoded while the next frames are computed."""

    def __init__(self, path: Path, fps: float) -> None:
        """Start an MP4 file, which appears under its name when it is closed."""
        self._writer = VideoWriter(path, fps, encoding=_ENCODING)
        self._thread = ThreadPoolExecutor(1, "video")
        self._pending: Future[None] | None = None
        self._finished = False

    def add(self, frames: Iterable[UInt8[np.ndarray, "rows columns 3"]]) -> None:
        """Add frames, over which the thread iterates.

        Raises:
            FileError: Earlier frames could not be written; the video is discarded.
        """
        self._wait()
        self._pending = self._thread.submit(self._write, frames)

    def close(self) -> Path | None:
        """Finish the video and give it its name; None if it was discarded.

        Raises:
            FileError: The last frames could not be written; the video is discarded.
        """
        if self._finished:
            return None
        self._wait()
        self._shut_down()
        self._writer.close()
        return self._writer.path

    def abort(self) -> None:
        """Discard the video, unless it is finished."""
        if not self._finished:
            self._shut_down()
            self._writer.abort()

    def _write(self, frames: Iterable[np.ndarray]) -> None:
        for frame in frames:
            self._writer.add(frame)

    def _shut_down(self) -> None:
        self._finished = True
        self._thread.shutdown()

    def _wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            pending.result()
        except core.VideoError as error:
            self._shut_down()
            raise core.FileError(f"{error}; make room and run again, or go without a video") from error


@torch.no_grad()
def render_video(
    engine: Engine,
    trajectory: core.Trajectory,
    path: Path | str,
    *,
    camera: Camera | None = None,
    world: int = 0,
    properties: Overrides = None,
) -> Path:
    """Render one world of a trajectory as a video in real time.

    Args:
        engine: Engine of the motion, with mechanics.
        trajectory: Trajectory of a batch of worlds.
        path: Path of an MP4 file, whose folder is created if needed.
        camera: Camera; one that shows the whole motion if None.
        world: Index of the world.
        properties: Properties that all worlds share; the engine's own if None.

    Raises:
        InputError: The engine has no bodies, or there is no such world.
        FileError: The folder cannot be written to.
        VideoError: The video cannot be encoded.
    """
    if engine.mechanics is None:
        raise core.InputError(f"engine: {type(engine).__name__} has no bodies to render; give one with mechanics")
    if not 0 <= world < trajectory.batch:
        raise core.InputError(f"world: expected a number below {trajectory.batch}, got {world}")
    stride = max(1, round(1 / (MAX_FPS * engine.dt)))
    states = core.State(trajectory.q[world, ::stride], trajectory.v[world, ::stride])
    values = engine.properties if properties is None else engine.checked(properties)
    appearance = engine.mechanics.appearance(states, values)
    render = (camera or overview(engine.mechanics, appearance)).bind(engine)
    with (
        OutputFolder(Path(path).parent),
        VideoWriter(Path(path), 1 / (stride * engine.dt), encoding=_ENCODING) as writer,
    ):
        for number in range(states.batch):
            frame = render(core.State(states.q[number : number + 1], states.v[number : number + 1]), values)[0]
            writer.add(frame.clamp(0, 1).movedim(0, -1).cpu())
    return Path(path)


def overview(mechanics: MechanicalEngine, appearance: core.Appearance) -> Camera:
    """Place a camera that shows everything that moves, else everything movable, else all shapes.

    A planar world is viewed from above, a spatial one from the side and slightly from above.

    Args:
        mechanics: Engine of the motion.
        appearance: Poses and sizes of the shapes at some times.
    """
    positions, shapes = appearance.poses[..., :3, 3].double().cpu(), [item.shape for item in mechanics.geometry]
    sizes = appearance.sizes[0].tolist()
    radius = torch.tensor([_bounding_radius(shape, *size) for shape, size in zip(shapes, sizes, strict=True)])
    bounded = torch.tensor([not isinstance(shape, core.Plane) for shape in shapes])
    movable = torch.tensor([item.body is not None for item in mechanics.geometry]) & bounded
    moving = ((positions - positions[:1]).abs().amax((0, 2)) > 1e-6) & bounded
    visible = next((mask for mask in (moving, movable, bounded) if bool(mask.any())), None)
    if visible is None:
        raise core.InputError("engine: it has no shapes but planes; give a camera")
    margin = radius[visible, None]
    low, high = (positions[:, visible] - margin).amin((0, 1)), (positions[:, visible] + margin).amax((0, 1))
    (x, y, z), (half_x, half_y, half_z) = ((low + high) / 2).tolist(), ((high - low) / 2).clamp_min(1e-3).tolist()
    height, width = VIDEO_SIZE
    if all(isinstance(shape, core.Circle | core.Polygon) for shape in shapes):
        y_down = bool(dict(mechanics.properties.items())["gravity"][1] > 0)
        scale = 0.45 * min(width / half_x, height / half_y)
        return Camera.table(height, width, scale=scale, center=(x, y), y_down=y_down)
    distance = 1.15 * max(half_z, half_x * height / width) / math.tan(0.5 * FIELD_OF_VIEW) + half_y
    position = (x, y - distance, z + 0.2 * distance)
    return Camera.pinhole(height, width, position=position, target=(x, y, z), fov=FIELD_OF_VIEW)


def _bounding_radius(shape: core.Shape, first: float, second: float, third: float) -> float:
    """Radius of the sphere about a shape's origin that contains the shape of these sizes."""
    if isinstance(shape, core.Polygon):
        return max(math.hypot(first * x, second * y) for x, y in shape.vertices)
    if isinstance(shape, core.Box | core.Rectangle):
        return 0.5 * math.hypot(first, second, third)
    return first + 0.5 * third
