"""Perception: motion tracking, color segmentation, optical flow, and object crops for encoders."""

from physvision.perception.flow import DenseInverseSearch, PyramidFlow, load_flow
from physvision.perception.frame_corruption import FrameCorruption
from physvision.perception.motion_tracking import find_tracks
from physvision.perception.onsets import detect_onsets
from physvision.perception.settings import PerceptionSettings
from physvision.perception.track import Track, read_tracks

__all__ = [
    "DenseInverseSearch",
    "FrameCorruption",
    "PerceptionSettings",
    "PyramidFlow",
    "Track",
    "detect_onsets",
    "find_tracks",
    "load_flow",
    "read_tracks",
]
