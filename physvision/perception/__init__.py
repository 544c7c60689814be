"""Perception: motion tracking, color segmentation, optical flow, and object crops for encoders."""

from physvision.perception.flow import (
    DenseInverseSearch as DenseInverseSearch,
    PyramidFlow as PyramidFlow,
    load_flow as load_flow,
)
from physvision.perception.frame_corruption import FrameCorruption as FrameCorruption
from physvision.perception.motion_tracking import find_tracks as find_tracks
from physvision.perception.onsets import detect_onsets as detect_onsets
from physvision.perception.settings import PerceptionSettings as PerceptionSettings
from physvision.perception.track import Track as Track, read_tracks as read_tracks
