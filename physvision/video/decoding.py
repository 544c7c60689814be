"""Frames and their time stamps out of a file, through FFmpeg; whatever is wrong with the file is one typed error."""

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

from physvision.core import FileError, VideoError

Color = Literal["auto", "rgb", "gray"]

# What PyAV raises of damaged files: errors of FFmpeg, and of values that it finds in them.
FAULTS = (av.FFmpegError, ValueError, OverflowError, MemoryError, IndexError, EOFError)
# FFmpeg draws any text as a picture of characters, on a screen of its own.
_TEXT = {"tty", "bin", "xbin", "adf", "idf"}
# Of a frame that a person may have meant; what a damaged header asks for is more.
_MOST_PIXELS = 2**28


@contextmanager
def opened(
    path: str | os.PathLike[str], kind: Literal["video", "audio"] = "video"
) -> Iterator[tuple[InputContainer, Any]]:
    """The file at `path` as FFmpeg sees it: the container and its first stream of this kind, None if there is no sound.

    Raises:
        FileError, VideoError: it cannot be read.
    """
    if not Path(path).is_file():
        raise FileError(f"{path}: no such file")
    try:
        # A title in another alphabet's bytes says nothing of the frames.
        container = av.open(os.fspath(path), metadata_errors="replace")
    except FAULTS as error:
        raise VideoError(
            f"{path}: not a video, or one without frames or cut off at its end ({_reason(error)})"
        ) from error
    with container:
        streams = getattr(container.streams, kind)
        if container.format.name in _TEXT:
            raise VideoError(f"{path}: not a video, no picture in this file, it holds text")
        if kind == "video" and not streams:
            kinds = ", ".join(sorted({found.type for found in container.streams})) or "nothing"
            raise VideoError(f"{path}: not a video, no picture in this file, it holds {kinds}")
        stream = cast(Any, streams[0]) if streams else None
        if stream is not None and stream.codec_context is None:
            raise VideoError(f"{path}: no decoder for this coding in the installed FFmpeg")
        if kind == "video" and stream is not None:
            if stream.width * stream.height > _MOST_PIXELS:
                raise VideoError(f"{path}: damaged, it states frames of {stream.width} x {stream.height} pixels")
            fix_threads(stream.codec_context, stream.width, stream.height)
        yield container, stream


def decoded(
    path: str | os.PathLike[str], container: InputContainer, video: VideoStream
) -> Iterator[tuple[float | None, av.VideoFrame]]:
    """The frames in the order in which they are shown, each with its time stamp in seconds, None where it has none."""
    count = 0
    # AVI stamps frames in the order in which they are coded. They are shown in another one where some look ahead, but
    # the times are the same.
    stamps: deque[float] | None = deque() if container.format.name == "avi" else None
    try:
        for packet in container.demux(video):
            if stamps is not None and packet.dts is not None and packet.size:
                stamps.append(float(packet.dts * packet.time_base))
            for frame in packet.decode():
                time = frame.time
                if stamps is not None:
                    time = stamps.popleft() if stamps else None
                yield time, frame
                count += 1
    except FAULTS as error:
        raise VideoError(f"{path}: damaged or cut off after {count} frames ({_reason(error)})") from error


Matrix = tuple[tuple[int, int], tuple[int, int]]


def display_matrix(frame: av.VideoFrame) -> Matrix | None:
    """How the file says that its frames are turned and mirrored: a place (x, y) is shown at (a x + c y, b x + d y).

    Asked of one frame of a file, not of each: what PyAV makes for it and the frame refer to each other, so
    that frames would live until the next collection of garbage.
    """
    displayed = cast(Any, frame.side_data).get(Type.DISPLAYMATRIX)
    if displayed is None:
        return None
    (a, b), (c, d) = np.frombuffer(bytes(displayed), np.int32).reshape(3, 3)[:2, :2].tolist()
    return (a, b), (c, d)


def levels(
    path: str | os.PathLike[str], frame: av.VideoFrame, color: Color, displayed: Matrix | None
) -> UInt8[np.ndarray, "height width channels"]:
    """The frame as it is to be shown: turned and mirrored as `display_matrix` says."""
    gray = color == "gray" or (color == "auto" and frame.format.name.startswith("gray"))
    try:
        pixels = frame.to_ndarray(format="gray" if gray else "rgb24", threads=1)
    except FAULTS as error:
        raise VideoError(f"{path}: a frame of the format {frame.format.name} is damaged ({_reason(error)})") from error
    if gray:
        pixels = pixels[..., None]
    if displayed is None:
        return pixels
    (a, b), (c, d) = displayed
    if abs(a) + abs(d) < abs(b) + abs(c):
        pixels, a, d = pixels.swapaxes(0, 1), c, b
    pixels = pixels[:, ::-1] if a < 0 else pixels
    pixels = pixels[::-1] if d < 0 else pixels
    return np.ascontiguousarray(pixels)


def stated_seconds(container: InputContainer, video: VideoStream) -> float | None:
    """The length that the file states for its picture; None where it does not."""
    if container.format.name == "avi" and video.frames and video.average_rate:
        return float(video.frames / video.average_rate)  # its duration follows from the size of the file
    if video.duration is not None and video.time_base is not None:
        return float(video.duration * video.time_base)
    if "DURATION" in video.metadata:  # Matroska's, hours:minutes:seconds
        try:
            hours, minutes, seconds = video.metadata["DURATION"].split(":")
            return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
        except ValueError:
            return None
    if container.duration is not None and len(container.streams) == 1:
        return container.duration / av.time_base
    return None


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


# Pixels of a picture from which handing frames between threads costs less than it gains.
_LARGE = 512 * 512


def fix_threads(context: VideoCodecContext, width: int, height: int) -> None:
    """Give a coder four threads for large pictures and one for small ones.

    Left alone, FFmpeg takes a thread for every core, each with frames of its own: what a video costs in memory, and
    the very bytes of a file that is written, would then depend on the machine. Colours are converted by one thread
    wherever frames are, since PyAV would start one for every core at every frame: ten times slower for small ones.
    """
    context.thread_type = "AUTO"
    context.thread_count = 4 if width * height >= _LARGE else 1
