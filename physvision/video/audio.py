"""The sound track of a video."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from jaxtyping import Float

from physvision.core import VideoError
from physvision.video.decoding import FAULTS, opened


@dataclass(frozen=True)
class AudioTrack:
    """A sound track.

    Attributes:
        samples: from −1 to 1, one column a channel.
        rate: samples a second.
        start: when the first sample is heard, s, on the clock of the video's frames: 0 is the first frame.
    """

    samples: Float[np.ndarray, "samples channels"]
    rate: int
    start: float

    @property
    def times(self) -> Float[np.ndarray, " samples"]:
        """When each sample is heard, s since the first frame."""
        return self.start + np.arange(len(self.samples)) / self.rate


def read_audio(path: str | os.PathLike[str]) -> AudioTrack | None:
    """The first sound track of the file at `path`, None if it has none.

    Raises:
        FileError, VideoError: it cannot be read.
    """
    if Path(path).is_dir():
        return None
    with opened(path, "audio") as (container, track):
        if track is None:
            return None
        parts, start, rate = [], None, track.rate
        try:
            first = _first_stamp(container)
            container.seek(0)
            resampler = av.AudioResampler(format="fltp")
            for frame in container.decode(track):
                start = frame.time if start is None else start
                parts.extend(part.to_ndarray() for part in resampler.resample(frame))
            parts.extend(part.to_ndarray() for part in resampler.resample(None))
        except FAULTS as error:
            raise VideoError(f"{path}: its sound is damaged after {len(parts)} blocks ({error})") from error
    return AudioTrack(np.concatenate(parts, 1).T, rate, (start or 0.0) - first) if parts else None


def _first_stamp(container: InputContainer) -> float:
    """The stamp of the first frame of the picture, s; 0 where there is no picture."""
    frame = next(container.decode(video=0), None) if container.streams.video else None
    return 0.0 if frame is None or frame.time is None else frame.time
