"""Pieces of one thing are put together in the order in which they follow each other."""

import numpy as np

from physvision.perception.tracklets import Blob, TrackletBuilder

BALL, WALL = np.array([220.0, 60.0, 20.0]), np.array([40.0, 40.0, 40.0])


def test_what_swings_in_few_frames_stays_one():
    """A bob of 9 pixels that leaves each turn faster than it came there: eight frames a second, a swing of 1.57 s."""
    linker, times = TrackletBuilder(100.0), np.arange(39) / 8
    angles = 0.7 * np.cos(4 * times + 0.4)
    for frame, (time, angle) in enumerate(zip(times, angles, strict=True)):
        place = np.array([240.0, 30.0]) + 184 * np.array([np.sin(angle), np.cos(angle)])
        linker.add(frame, time, [Blob(place, 254.0, BALL, 180.0, False, False, BALL - WALL)])
    assert [tracklet.frames for tracklet in linker.tracklets()] == [list(range(39))]
