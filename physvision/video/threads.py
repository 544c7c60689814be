"""How many threads FFmpeg codes a video with: by the size of its picture alone, never by the machine."""

from __future__ import annotations

from av.video.codeccontext import VideoCodecContext

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
