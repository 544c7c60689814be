"""Scenes by name: each loads, and starts as it is meant to stand."""

import pytest
import torch

from physvision.core import FileError
from physvision.physics.articulated import scenes


@pytest.mark.parametrize("name", scenes.names())
def test_a_scene_starts_without_overlap(name):
    engine = scenes.load(name, dt=1e-3)
    status = engine.rollout(engine.initial_state(dtype=torch.float64), 2).status
    assert bool(status.converged.all())
    assert float(status.overlap.max()) < 1e-6


def test_a_scene_that_is_not_there_is_named():
    with pytest.raises(FileError, match=r"'rocket'.*ball"):
        scenes.load("rocket")


def test_the_racecar_weighs_what_the_paper_says():
    assert float(scenes.load("racecar").properties.mass.sum()) == pytest.approx(5.89, abs=1e-9)


def test_the_ball_bounces_to_a_quarter_of_its_height():
    engine = scenes.load("ball", dt=1e-3)
    start = engine.initial_state(dtype=torch.float64)
    start.q[:, 2] += 1.0
    height = engine.rollout(start, 1000).q[0, 460:, 2].max() - 0.5
    # It is highest at most half a step from a sampled moment.
    assert float(height) == pytest.approx(0.25, abs=9.81 * 5e-4**2)
