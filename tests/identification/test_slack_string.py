"""A bob that is let go with a slack string falls freely at first: that part is left out."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from physvision.identification import identify
from physvision.identification.kind_settings import PendulumSettings
from physvision.identification.kinds.circular import _taut_start
from physvision.perception import Track

LENGTH, GRAVITY, PIVOT = 250.0, 2500.0, np.array([320.0, 60.0])


def swing(angle, rate, times):
    """Positions of a pendulum relative to its pivot, y down."""
    options = {"t_eval": times, "rtol": 1e-9, "atol": 1e-9}
    angles = solve_ivp(
        lambda _, state: [state[1], -GRAVITY / LENGTH * math.sin(state[0]) - 0.1 * state[1]],
        (0, times[-1]), [angle, rate], **options,
    ).y[0]  # fmt: skip
    return LENGTH * np.stack([np.sin(angles), np.cos(angles)], 1)


def slack_release(slack, duration=5.0, fps=30, noise=0.3):
    """Track of a bob that is let go level with its pivot, with a part `slack` of the string's length to spare."""
    times = np.arange(0, duration, 1 / fps)
    side = (1 - slack) * LENGTH
    drop = math.sqrt(LENGTH**2 - side**2)
    taut = math.sqrt(2 * drop / GRAVITY)
    speed, angle = GRAVITY * taut, math.atan2(side, drop)
    falling = times < taut
    fallen = np.stack([np.full(falling.sum(), side), GRAVITY / 2 * times[falling] ** 2], 1)
    # The string takes the part of the velocity along it.
    later = np.concatenate([[0.0], times[~falling] - taut])
    swung = swing(angle, -speed * math.sin(angle) / LENGTH, later)[1:]
    positions = PIVOT + np.concatenate([fallen, swung]) + np.random.default_rng(0).normal(0, noise, (len(times), 2))
    return Track(times, positions, np.full(len(times), noise), np.ones(len(times), bool), radius=10.0), taut


def test_the_start_of_a_taut_string():
    track, taut = slack_release(0.2)
    start = _taut_start(track.positions, 0.3, PendulumSettings())
    assert taut < track.times[start] < taut + 1.2


@pytest.mark.parametrize("amplitude", [0.2, 1.0, 2.5])
def test_a_string_that_is_never_slack(amplitude):
    times = np.arange(0, 5, 1 / 30)
    positions = PIVOT + swing(amplitude, 0.0, times) + np.random.default_rng(0).normal(0, 0.5, (len(times), 2))
    assert _taut_start(positions, 0.5, PendulumSettings()) == 0


@pytest.mark.extended
def test_the_length_of_a_string_that_is_slack_at_first():
    track, _ = slack_release(0.2)
    result = identify([track], "pendulum", {"gravity": 9.81}, size=(640, 480))
    truth = 9.81 * LENGTH / GRAVITY
    low, high = result.intervals["length"]
    assert low <= truth <= high
    assert (high - low) / 2 < 0.02 * truth
    assert any("slack" in note for note in result.warnings)
