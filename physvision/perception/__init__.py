"""What moves in frames, and how: colour masks, identities over time, optical flow, and what an encoder is given."""

from physvision.perception.track import Track, read_tracks, write_tracks

__all__ = ["Track", "read_tracks", "write_tracks"]
