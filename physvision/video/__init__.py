"""Video in and out, through the FFmpeg that PyAV carries."""

from physvision.video.fitting import Fit, resample
from physvision.video.reading import Description, chunks, describe, read, stream
from physvision.video.writing import Coding, Writer, write

__all__ = ["Coding", "Description", "Fit", "Writer", "chunks", "describe", "read", "resample", "stream", "write"]
