"""Videos of reports: frames rendered and encoded in a thread, and the motion of any engine."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from physvision import core
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.rendering import film_frames
from physvision.report.output import OutputFolder
from physvision.video import Encoding, VideoWriter

# Visually as good as slower presets for this content, at a tenth of the time.
_ENCODING = Encoding("libx264", "yuv420p", {"crf": "20", "preset": "veryfast"})
MAX_FPS = 60.0
VIDEO_SIZE = (480, 640)  # height and width of an engine's video, px


class VideoFigure:
    """Video that is encoded while the next frames are computed."""

    def __init__(self, path: Path, fps: float) -> None:
        """Start an MP4 file, which appears under its name when it is closed."""
        self._writer = VideoWriter(path, fps, encoding=_ENCODING)
        self._thread = ThreadPoolExecutor(1, "video")
        self._pending: Future[None] | None = None
        self._finished = False

    def __enter__(self) -> VideoFigure:
        return self

    def __exit__(self, kind, error, traceback) -> None:
        self.abort() if error is not None else self.close()

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
    world: int = 0,
    properties: Overrides = None,
) -> Path:
    """Render one world of a trajectory as a video in real time, by a camera that follows what moves.

    Args:
        engine: Engine of the motion, with mechanics.
        trajectory: Trajectory of a batch of worlds.
        path: Path of an MP4 file, whose folder is created if needed.
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
    if not engine.mechanics.geometry and not engine.mechanics.visuals.shapes:
        raise core.InputError(f"engine: {type(engine).__name__} has no shapes to render")
    dt = stride * engine.dt
    with (
        OutputFolder(Path(path).parent),
        VideoWriter(Path(path), 1 / dt, encoding=_ENCODING) as writer,
    ):
        for frame in film_frames(engine, states, dt, VIDEO_SIZE, values):
            writer.add(frame)
    return Path(path)
