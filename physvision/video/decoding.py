"""Decoding of video files through FFmpeg: frames and timestamps; every fault of a file is one typed error."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import av
import numpy as np
from av.container import InputContainer
from av.sidedata.sidedata import Type
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream
from jaxtyping import UInt8

from physvision.core import FileError, StrPath, TruncatedVideoError, VideoError

Color = Literal["auto", "rgb", "gray"]
Matrix = tuple[tuple[int, int], tuple[int, int]]

# Errors that PyAV raises for damaged files: FFmpeg's, and those of values in the files.
DECODING_ERRORS = (av.FFmpegError, ValueError, OverflowError, MemoryError, IndexError, EOFError)
# FFmpeg renders any text as an image of characters.
_TEXT_FORMATS = {"tty", "bin", "xbin", "adf", "idf"}
# Lists of other files, patterns of their names, addresses and scripts: a clip is read from its own file alone.
_REFERRING_FORMATS = {"concat", "dash", "hls", "image2", "imf", "rtp", "rtsp", "sap", "sdp", "vobsub"}
_REFERRING_FORMATS |= {"avisynth", "vapoursynth"}
_FORMATS = ",".join(sorted(av.formats_available - _REFERRING_FORMATS))
MAX_FRAME_PIXELS = 2**26  # twice those of an 8K video; a kilobyte can state more than fit in memory
MIN_THREADED_PIXELS = 512 * 512  # smaller frames are coded faster by one thread


@contextmanager
def open_container(path: StrPath, kind: Literal["video", "audio"] = "video") -> Iterator[tuple[InputContainer, Any]]:
    """Open a file; yield the container and its first stream of this kind, None if it has no audio.

    Raises:
        FileError: There is no such file.
        VideoError: The file cannot be decoded.
    """
    if not Path(path).is_file():
        raise FileError(f"{path}: no such file")
    try:
        # Metadata in another encoding does not affect the frames.
        # An absolute path is never an address, as the file `concat:a` would be.
        options = {"format_whitelist": _FORMATS}
        container = av.open(os.path.abspath(path), metadata_errors="replace", container_options=options)  # noqa: PTH100
    except DECODING_ERRORS as error:
        raise VideoError(f"{path}: not a video, or without frames, or cut off at its end ({_reason(error)})") from error
    with container:
        streams = getattr(container.streams, kind)
        if container.format.name in _TEXT_FORMATS:
            raise VideoError(f"{path}: not a video, no picture in this file, it holds text")
        if kind == "video" and not streams:
            kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
            raise VideoError(f"{path}: not a video, no picture in this file, it holds {kinds}")
        stream = cast(Any, streams[0]) if streams else None
        if stream is not None and stream.codec_context is None:
            raise VideoError(f"{path}: no decoder for this coding in the installed FFmpeg")
        if kind == "video" and stream is not None:
            check_pixels(path, stream.width, stream.height)
            set_thread_count(stream.codec_context, stream.width, stream.height)
        yield container, stream


def check_pixels(path: StrPath, width: int, height: int) -> None:
    """Raise for a frame that is larger than any camera's."""
    if width * height > MAX_FRAME_PIXELS:
        text = f"{path}: damaged, or too large: it states frames of {width} x {height} pixels"
        raise VideoError(f"{text}, expected at most {MAX_FRAME_PIXELS:,}")


def decode_frames(
    path: StrPath, container: InputContainer, stream: VideoStream
) -> Iterator[tuple[float | None, av.VideoFrame]]:
    """Yield the frames in display order with their timestamps, s, None where there is none."""
    count = 0
    # AVI stamps frames in coding order. Display order differs where frames look ahead, but the times are the same.
    timestamps: deque[float] | None = deque() if container.format.name == "avi" else None
    try:
        for packet in container.demux(stream):
            if timestamps is not None and packet.dts is not None and packet.size:
                timestamps.append(float(packet.dts * packet.time_base))
            for frame in packet.decode():
                time = frame.time
                if timestamps is not None:
                    time = timestamps.popleft() if timestamps else None
                yield time, frame
                count += 1
    except DECODING_ERRORS as error:
        kind = TruncatedVideoError if count else VideoError
        raise kind(f"{path}: damaged or cut off after {count} frames ({_reason(error)})") from error


def display_matrix(frame: av.VideoFrame) -> Matrix | None:
    """Rotation and reflection that the file states: (x, y) is displayed at (a x + c y, b x + d y).

    It is read from one frame of a file only: PyAV's object and the frame refer to each other, so frames would live
    until the next garbage collection.
    """
    matrix = cast(Any, frame.side_data).get(Type.DISPLAYMATRIX)
    if matrix is None:
        return None
    (a, b), (c, d) = np.frombuffer(bytes(matrix), np.int32).reshape(3, 3)[:2, :2].tolist()
    return (a, b), (c, d)


def to_levels(
    path: StrPath, frame: av.VideoFrame, color: Color, matrix: Matrix | None
) -> UInt8[np.ndarray, "height width channels"]:
    """Convert a frame to levels, rotated and reflected by its display matrix."""
    is_gray = color == "gray" or (color == "auto" and frame.format.name.startswith("gray"))
    try:
        pixels = frame.to_ndarray(format="gray" if is_gray else "rgb24", threads=1)
    except DECODING_ERRORS as error:
        raise VideoError(f"{path}: a frame of the format {frame.format.name} is damaged ({_reason(error)})") from error
    if is_gray:
        pixels = pixels[..., None]
    if matrix is None:
        return pixels
    (a, b), (c, d) = matrix
    if abs(a) + abs(d) < abs(b) + abs(c):
        pixels, a, d = pixels.swapaxes(0, 1), c, b
    pixels = pixels[:, ::-1] if a < 0 else pixels
    pixels = pixels[::-1] if d < 0 else pixels
    return np.ascontiguousarray(pixels)


def stated_duration(container: InputContainer, stream: VideoStream) -> float | None:
    """Duration of the video that the file states, s; None where it states none."""
    if container.format.name == "avi" and stream.frames and stream.average_rate:
        return float(stream.frames / stream.average_rate)  # FFmpeg derives its duration from the file size
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    if "DURATION" in stream.metadata:  # Matroska's, hours:minutes:seconds
        try:
            hours, minutes, seconds = stream.metadata["DURATION"].split(":")
            return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
        except ValueError:
            return None
    if container.duration is not None and len(container.streams) == 1:
        return container.duration / av.time_base
    return None


def set_thread_count(context: VideoCodecContext, width: int, height: int) -> None:
    """Use four threads for large frames and one for small ones.

    FFmpeg's default is a thread per core, each with its own frames: memory, and the bytes of a written file, would
    depend on the machine. Colors are converted by one thread everywhere, since PyAV would start one per core for every
    frame, which is ten times slower for small frames.
    """
    context.thread_type = "AUTO"
    context.thread_count = 4 if width * height >= MIN_THREADED_PIXELS else 1


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
