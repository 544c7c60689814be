"""What moves in frames, and how: colour masks, identities over time, optical flow, and what an encoder is given."""

from physvision.perception.finding import find_tracks
from physvision.perception.track import Track, read_tracks, write_tracks

__all__ = ["Track", "find_tracks", "read_tracks", "write_tracks"]
