"""What moves in frames, and how: colour masks, identities over time, optical flow, and what an encoder is given."""

from physvision.perception.disturbance import Disturbance
from physvision.perception.finding import find_tracks
from physvision.perception.flow import DenseInverseSearch, PyramidFlow
from physvision.perception.flow_files import load_flow
from physvision.perception.onsets import onsets
from physvision.perception.track import Track, read_tracks, write_tracks

__all__ = [
    "DenseInverseSearch",
    "Disturbance",
    "PyramidFlow",
    "Track",
    "find_tracks",
    "load_flow",
    "onsets",
    "read_tracks",
    "write_tracks",
]
