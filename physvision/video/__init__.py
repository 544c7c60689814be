"""Reading and writing of video, through the FFmpeg that PyAV includes."""

from physvision.video.audio import AudioTrack as AudioTrack, read_audio as read_audio
from physvision.video.conversion import Conversion as Conversion, resample as resample
from physvision.video.reading import (
    VideoInfo as VideoInfo,
    chunks as chunks,
    list_images as list_images,
    read as read,
    read_info as read_info,
    read_timestamps as read_timestamps,
    stream as stream,
)
from physvision.video.scene_frames import (
    SceneStream as SceneStream,
    TimedFrame as TimedFrame,
    open_scene_stream as open_scene_stream,
)
from physvision.video.writing import Encoding as Encoding, VideoWriter as VideoWriter, write as write
