"""Shadows and reflections are no things of their own; another thing that happens to move alike is one."""

import numpy as np
import pytest

from physvision.perception.track_selection import select_tracklets
from physvision.perception.tracklets import Blob, Tracklet

WALL = np.array([40.0, 40.0, 40.0])
BALL = np.array([220.0, 60.0, 20.0])


def tracklet(positions, color):
    """A thing of this color before the wall, seen in every frame."""
    contrast = float(np.abs(color - WALL).max())
    blobs = [Blob(np.array(at), 200.0, np.array(color), contrast, False, False, color - WALL) for at in positions]
    return Tracklet(list(range(len(positions))), [frame / 30 for frame in range(len(positions))], blobs)


@pytest.mark.parametrize(
    ("color", "count"),
    [(0.4 * BALL + 0.6 * WALL, 1), (np.array([30.0, 150.0, 40.0]), 2), (np.array([90.0, 30.0, 130.0]), 2)],
    ids=["reflected", "another", "another between"],
)
def test_what_moves_alike_is_a_reflection_only_in_colors_on_the_way_to_what_is_behind(color, count):
    """Both are fainter than the ball, and move along with it as an inner bob does with the outer one."""
    swing = 100 * np.sin(np.arange(60) / 8)
    ball = tracklet(np.stack([300 + swing, np.full(60, 100.0)], 1), BALL)
    second = tracklet(np.stack([300 + 0.6 * swing, np.full(60, 250.0)], 1), color)
    selection, _ = select_tracklets([ball, second], 60, None, "clip", min_objects=2)
    assert len(selection) == count


@pytest.mark.parametrize(("distance", "count"), [(12.0, 1), (16.0, 2)], ids=["parts", "side by side"])
def test_what_moves_along_within_another_body_is_a_part_of_it(distance, count):
    """In low light a body shows as two parts of one color; circles of 200 square pixels that touch are 16 apart."""
    path = np.stack([100 + 4.0 * np.arange(60), np.full(60, 100.0)], 1)
    parts = [tracklet(path, BALL), tracklet(path + np.array([0, distance]), BALL)]
    assert len(select_tracklets(parts, 60, None, "clip")[0]) == count
