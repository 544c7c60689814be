"""Video in and out, through the FFmpeg that PyAV carries."""

from physvision.video.conversion import Conversion, resample
from physvision.video.reading import Description, chunks, describe, read, stream
from physvision.video.scene_frames import SceneStream, TimedFrame, scene_stream
from physvision.video.writing import Coding, Writer, write

__all__ = [
    "Coding",
    "Conversion",
    "Description",
    "SceneStream",
    "TimedFrame",
    "Writer",
    "chunks",
    "describe",
    "read",
    "resample",
    "scene_stream",
    "stream",
    "write",
]
