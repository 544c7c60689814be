"""Perception: motion tracking and optical flow."""

from physvision.perception.flow import (
    DenseInverseSearch as DenseInverseSearch,
    PyramidFlow as PyramidFlow,
    load_flow as load_flow,
)
from physvision.perception.motion_tracking import find_tracks as find_tracks
from physvision.perception.onsets import detect_onsets as detect_onsets
from physvision.perception.raft import Raft as Raft
from physvision.perception.settings import PerceptionSettings as PerceptionSettings
from physvision.perception.track import Track as Track, read_tracks as read_tracks
