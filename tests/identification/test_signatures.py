"""Laws that a motion contradicts are not named, however close their fit, and none at all where none holds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from physvision.core import InputError
from physvision.identification import identify
from physvision.perception import Track


def track(times, positions, noise, seed=0, radius=12.0, name="object"):
    """Track in pixels, with white noise and an autocorrelated one."""
    random = np.random.default_rng(seed)
    count = len(times)
    autocorrelated = np.cumsum(random.normal(0, 0.1 * noise, (count, 2)), 0)
    observed = positions + random.normal(0, noise, (count, 2)) + autocorrelated - autocorrelated.mean(0)
    return Track(times, observed, np.full(count, noise), np.ones(count, bool), radius=radius, name=name)


def swing(amplitude, length=500.0, duration=6.0, rate=30):
    """Positions of a pendulum in pixels, y down, and times."""
    times = np.arange(0, duration, 1 / rate)
    options = {"t_eval": times, "rtol": 1e-9, "atol": 1e-9}
    angle = solve_ivp(
        lambda _, s: [s[1], -12 * np.sin(s[0]) - 0.05 * s[1]], (0, duration), [amplitude, 0], **options
    ).y[0]
    return times, 320 + length * np.stack([np.sin(angle), np.cos(angle)], 1)


def test_a_ball_on_a_string_is_no_spring():
    """Its height has twice the frequency of its swing."""
    times, positions = swing(0.35)
    result = identify([track(times, positions, 0.3)], size=(640, 900))
    assert result.motion == "pendulum"
    assert "twice the frequency" in result.rejected["spring"]


@pytest.mark.extended
def test_a_swing_in_few_frames_does_not_turn_suddenly():
    """Eight frames a swing: its height seems to jump from down to up."""
    times, positions = swing(1.2, duration=6.0, rate=8)
    result = identify([track(times, positions, 0.2)], size=(1200, 900))
    assert result.motion == "pendulum"
    assert not any("suddenly" in warning for warning in result.warnings)


def test_a_start_down_a_slope_is_no_spring_of_minutes():
    times = np.arange(0, 1.5, 1 / 30)
    along = 60 * times + 80 * times**2
    result = identify([track(times, np.stack([50 + 0.9 * along, 50 + 0.4 * along], 1), 0.2)], size=(640, 480))
    assert {result.motion, *result.indistinguishable} == {"slide", "roll"}
    assert "spring" in result.rejected


def test_rivals_are_compared_under_one_model_of_the_errors():
    """A constant acceleration, and a bounce that would stick: their residuals are 0.3 and several pixels."""
    times = np.arange(21) / 25
    along = 150 * times + 260 * times**2
    result = identify([track(times, np.stack([20 + along, 110 - 0.01 * along], 1), 0.4, radius=38.0)], size=(400, 300))
    assert result.motion in ("slide", "roll")
    assert result.odds[result.motion] == 1.0
    assert all(odds < 1e-6 for kind, odds in result.odds.items() if kind not in ("slide", "roll"))


@pytest.mark.extended
def test_a_swing_that_knocks_against_a_wall_is_none_of_the_kinds():
    times, positions = swing(0.3, duration=12.0)
    offset = positions[:, 0] - 320
    knocking = np.where(offset > 0, -0.6 * offset, offset) * np.exp(-0.3 * times)
    bow = positions[:, 1] - 820
    noisy = replace(track(times, np.stack([320 + knocking, 820 + bow], 1), 0.3), notes=("The picture is noisy.",))
    with pytest.raises(InputError, match=r"no kind of motion explains the tracks.*The picture is noisy"):
        identify([noisy], size=(640, 900))


@pytest.mark.parametrize("law", ["quadratic", "linear"])
def test_a_ball_that_sinks_reaches_a_steady_speed(law):
    times, (speed, constant) = np.arange(25) / 25, (400.0, 0.15)
    if law == "quadratic":
        depth = speed * constant * np.log(np.cosh(times / constant))
    else:
        depth = speed * (times - constant * (1 - np.exp(-times / constant)))
    positions = np.stack([200 + 0 * times, 30 + depth], 1)
    result = identify([track(times, positions, 0.2, radius=5.0)], known_values={"scale": 400.0}, size=(400, 480))
    assert result.motion == "sink"
    assert result.parameters["terminal_speed"].value == pytest.approx(1.0, rel=0.02)
    assert result.parameters["time_constant"].value == pytest.approx(constant, rel=0.1)
    assert ("Stokes" in " ".join(result.warnings)) == (law == "linear")


def test_a_wheel_that_friction_slows_down():
    times = np.arange(0, 3, 1 / 60)
    angle = 20 * times - 2.5 * times**2
    positions = 200 + 80 * np.stack([np.cos(angle), np.sin(angle)], 1)
    result = identify([track(times, positions, 0.2, radius=6.0)], "circular", size=(400, 400))
    assert result.parameters["angular_speed"].value == pytest.approx(20, rel=1e-3)
    assert result.parameters["angular_acceleration"].value == pytest.approx(-5, rel=5e-3)


def test_what_lands_and_settles_does_not_bounce():
    """A leaf sinks at a speed that is almost steady, lies on the floor, and rises by 2 % of its fall as it settles."""
    times = np.arange(52) / 30
    since = times - 0.72
    speed = np.where(since < 0, 375 + 16 * 0.72, -14)
    heights = 754 + speed * since + 8 * since**2
    leaf = track(times, np.stack([210 - 4 * times, heights], 1), 0.25, radius=10.0)
    with pytest.raises(InputError, match="it lands, and rises by no more than"):
        identify([leaf], size=(640, 900))
