"""Video in and out, through the FFmpeg that PyAV carries."""

from physvision.video.conversion import Conversion, resample
from physvision.video.pictures import pictures_of
from physvision.video.reading import Description, chunks, describe, read, stamps, stream
from physvision.video.regularity import Timing, timing
from physvision.video.scene_frames import SceneStream, TimedFrame, scene_stream
from physvision.video.sound_track import Sound, sound
from physvision.video.writing import Coding, Writer, write

__all__ = [
    "Coding",
    "Conversion",
    "Description",
    "SceneStream",
    "Sound",
    "TimedFrame",
    "Timing",
    "Writer",
    "chunks",
    "describe",
    "pictures_of",
    "read",
    "resample",
    "scene_stream",
    "sound",
    "stamps",
    "stream",
    "timing",
    "write",
]
