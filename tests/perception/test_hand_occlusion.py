"""What is told of a thing before it is seen clearly: whether a hand holds it."""

import numpy as np

from physvision.perception.hand_occlusion import HandTracker
from physvision.perception.refinement import Detection

SIZE, FIRST, RADIUS = (80, 120), 12, 4.0
WALL = np.full((*SIZE, 3), 90, np.uint8)
THRESHOLD = np.full(SIZE, 12.0)
TRACKER = HandTracker(WALL.astype(np.float32), THRESHOLD)
ROWS, COLUMNS = np.mgrid[: SIZE[0], : SIZE[1]] + 0.5


def filmed(hand):
    """Frames in which a ball flies from the frame FIRST on, and what is seen of it; a hand brings it there or not."""
    frames, detections = {}, []
    for number in range(30):
        frame, place = WALL.copy(), np.array([30.0 + 3 * (number - FIRST), 40.0])
        if hand and number < FIRST:
            frame[np.hypot(COLUMNS - place[0] + 8, ROWS - place[1]) < 2 * RADIUS] = 150
        there = number >= FIRST
        if there:
            frame[np.hypot(COLUMNS - place[0], ROWS - place[1]) < RADIUS] = 230
        frames[number] = frame
        detections.append(Detection(place, np.pi * RADIUS**2, 0.0, 1.0, 0.05) if there else None)
    return frames, detections


def test_a_ball_that_comes_out_of_what_stands_still_emerges():
    frames, detections = filmed(hand=False)
    assert set(TRACKER.required_frames(detections)) <= set(frames)
    assert TRACKER.is_static_before(frames, detections)


def test_a_ball_that_a_hand_brings_does_not():
    frames, detections = filmed(hand=True)
    assert not TRACKER.is_static_before(frames, detections)


def test_nothing_is_told_of_a_ball_that_is_there_from_the_first_frame_on():
    frames, detections = filmed(hand=False)
    later = {number - FIRST: frame for number, frame in frames.items() if number >= FIRST}
    assert not TRACKER.is_static_before(later, detections[FIRST:])
