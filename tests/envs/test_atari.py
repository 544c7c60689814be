"""Atari's games as frames and actions."""

import numpy as np
import pytest

from physvision.core import InputError

pytest.importorskip("ale_py")
pytest.importorskip("gymnasium")

from physvision.envs.atari import AtariEnv


def test_a_game_is_the_same_from_the_same_seed_and_refuses_what_is_no_key():
    env = AtariEnv("Breakout")
    runs = []
    for _ in range(2):
        frame = env.reset(3, noop_frames=4)
        assert frame.lives == 5
        assert not frame.done
        runs.append([env.step(key).image for key in ("FIRE", "LEFT", "LEFT", "NOOP", "NOOP", "NOOP")])
    np.testing.assert_array_equal(*runs)
    # The paddle has moved to the left.
    assert np.flatnonzero(runs[0][-1][190, 8:152, 0] == 200)[0] < np.flatnonzero(runs[0][0][190, 8:152, 0] == 200)[0]
    with pytest.raises(InputError, match="expected one of NOOP, FIRE, RIGHT, LEFT, got 'UP'"):
        env.step("UP")
