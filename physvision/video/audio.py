"""Audio track of a video file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from jaxtyping import Float

from physvision.core import StrPath, VideoError
from physvision.video.decoding import DECODING_ERRORS, open_container


@dataclass(frozen=True)
class AudioTrack:
    """Samples of an audio track.

    Attributes:
        samples: Amplitudes from −1 to 1, one column per channel.
        sample_rate: Samples per second.
        start: Time of the first sample since the first frame of the video, s.
    """

    samples: Float[np.ndarray, "samples channels"]
    sample_rate: int
    start: float

    @property
    def times(self) -> Float[np.ndarray, " samples"]:
        """Time of each sample since the first frame, s."""
        return self.start + np.arange(len(self.samples)) / self.sample_rate


def read_audio(path: StrPath) -> AudioTrack | None:
    """Read the first audio track of a file; None if it has none.

    Raises:
        FileError: There is no such file.
        VideoError: The file cannot be decoded.
    """
    if Path(path).is_dir():
        return None
    with open_container(path, "audio") as (container, stream):
        if stream is None:
            return None
        blocks, start, sample_rate = [], None, stream.rate
        try:
            offset = _first_frame_time(container)
            container.seek(0)
            resampler = av.AudioResampler(format="fltp")
            for frame in container.decode(stream):
                start = frame.time if start is None else start
                blocks.extend(block.to_ndarray() for block in resampler.resample(frame))
            blocks.extend(block.to_ndarray() for block in resampler.resample(None))
        except DECODING_ERRORS as error:
            raise VideoError(f"{path}: its audio is damaged after {len(blocks)} blocks ({error})") from error
    return AudioTrack(np.concatenate(blocks, 1).T, sample_rate, (start or 0.0) - offset) if blocks else None


def _first_frame_time(container: InputContainer) -> float:
    """Timestamp of the first video frame, s; 0 without video."""
    frame = next(container.decode(video=0), None) if container.streams.video else None
    return 0.0 if frame is None or frame.time is None else frame.time
