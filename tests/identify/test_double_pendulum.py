"""A double pendulum from a table of lengths, its outer arm in a plane behind that of the inner one."""

import numpy as np
import pytest

from physvision.datasets.clips import Filming, draw
from physvision.identify import identify
from physvision.perception import Track

NOISE = 5e-4  # m


@pytest.mark.slow
def test_a_table_in_metres_of_arms_in_two_planes():
    clip = draw("double_pendulum", 1, Filming(fps=60.0))
    random = np.random.default_rng(0)
    poses = clip.motion.poses(clip.times)[..., :2] * [1, -1]
    pivot = np.array(clip.motion.must_see[0]) * [1, -1] if clip.motion.must_see else np.zeros(2)
    poses[:, 1] = pivot + 0.98 * (poses[:, 1] - pivot) + [0.004, -0.002]
    poses = poses[:90] + random.normal(0, NOISE, (90, 2, 2))
    tracks = [
        Track(clip.stamps[:90], poses[:, body], np.full(90, NOISE), np.ones(90, bool), name=f"{body}", unit="m")
        for body in range(2)
    ]
    found = identify(tracks, "double_pendulum")
    assert found.fit.noise < 1.5 * NOISE
    for name in ("length_1", "length_2"):
        low, high = found.parameters[name].interval_95
        assert low - (high - low) / 2 < clip.truth[name] < high + (high - low) / 2
    assert abs(found.parameters["gravity"].value / 9.81 - 1) < 0.02
    assert {"damping_1", "damping_2"} <= found.parameters.keys()
