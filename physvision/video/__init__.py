"""Reading and writing of video, through the FFmpeg that PyAV includes."""

from physvision.video.audio import AudioTrack, read_audio
from physvision.video.conversion import Conversion, resample
from physvision.video.reading import VideoInfo, chunks, list_images, read, read_info, read_timestamps, stream
from physvision.video.regularity import FrameTiming, frame_timing
from physvision.video.scene_frames import SceneStream, TimedFrame, open_scene_stream
from physvision.video.writing import Encoding, VideoWriter, write

__all__ = [
    "AudioTrack",
    "Conversion",
    "Encoding",
    "FrameTiming",
    "SceneStream",
    "TimedFrame",
    "VideoInfo",
    "VideoWriter",
    "chunks",
    "frame_timing",
    "list_images",
    "open_scene_stream",
    "read",
    "read_audio",
    "read_info",
    "read_timestamps",
    "resample",
    "stream",
    "write",
]
