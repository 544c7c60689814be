"""A disc that a hand spins before friction slows it down, and two pucks that push off from each other."""

import numpy as np
import pytest
from identification.clip_tracks import tracks_of
from identification.test_signatures import track

from physvision.core import InputError
from physvision.datasets.clips import Body, Filming, Motion, film
from physvision.identification import identify


def spun(push, dry, viscous, duration=2.5, rate=40):
    """Mark on a disc, pixels, and times: its rate grows smoothly to 20 rad/s while a hand spins it."""
    step = 1e-3
    fine = np.arange(0, duration, step)
    speed = np.empty_like(fine)
    for index, time in enumerate(fine):
        pushed = 20 * np.sin(np.pi / 2 * min(time / push, 1.0)) ** 2
        speed[index] = pushed if time < push else speed[index - 1] - step * (dry + viscous * speed[index - 1])
    angle = np.cumsum(speed) * step
    times = np.arange(0, duration - 1 / rate, 1 / rate)
    angle = np.interp(times, fine, angle)
    return times, np.stack([160 + 70 * np.cos(angle), 120 + 70 * np.sin(angle)], 1)


@pytest.mark.parametrize(("dry", "viscous"), [pytest.param(4.0, 0.0, marks=pytest.mark.extended), (2.0, 0.15)])
def test_the_time_in_which_a_hand_spins_a_disc_is_left_out(dry, viscous):
    times, positions = spun(0.8, dry, viscous)
    result = identify([track(times, positions, 0.2, radius=6.0)], "circular", size=(320, 240))
    assert any("spun" in warning for warning in result.warnings)
    begin = result.fit.start_time
    assert 0.6 < begin < 1.2
    rate = 20 * np.exp(-viscous * (begin - 0.8)) - (begin - 0.8) * dry
    assert result.parameters["angular_speed"].value == pytest.approx(rate, rel=0.02)
    assert result.parameters["angular_acceleration"].value == pytest.approx(-dry, rel=0.1)


def test_a_steady_rotation_is_used_whole():
    times = np.arange(90) / 30
    positions = np.stack([160 + 70 * np.cos(5 * times), 120 + 70 * np.sin(5 * times)], 1)
    result = identify([track(times, positions, 0.2, radius=6.0)], "circular", size=(320, 240))
    assert not any("spun" in warning for warning in result.warnings)
    assert result.parameters["period"].value == pytest.approx(2 * np.pi / 5, rel=2e-3)


def burst(ratio, deceleration, start=0.05, rest=0.5):
    """Two discs, the second `ratio` times as heavy as the first, at rest until they fly apart."""
    speeds, unit = np.array([0.5, -0.5 / ratio]), np.array([np.cos(0.3), np.sin(0.3)])

    def poses(times):
        time = np.minimum(np.maximum(times - rest, 0.0)[:, None], np.abs(speeds) / deceleration)
        along = np.sign(speeds) * (start + np.abs(speeds) * time - deceleration * time**2 / 2)
        return np.concatenate([along[..., None] * unit, np.zeros((len(times), 2, 1))], 2)

    bodies = (Body("disc", (0.1, 0.1), (0.8, 0.1, 0.1)), Body("disc", (0.1, 0.1), (0.1, 0.2, 0.8)))
    return film(Motion("collision", {}, {}, 1.6, poses, bodies, from_above=True), Filming(fps=30.0))


@pytest.mark.extended
def test_two_pucks_that_burst_apart_are_an_explosion():
    result = identify(tracks_of(burst(1.0, 0.05)), size=(640, 360))
    assert result.motion == "explosion"


@pytest.mark.parametrize(("ratio", "deceleration"), [pytest.param(1.0, 0.05, marks=pytest.mark.extended), (1.8, 0.2)])
def test_friction_since_the_push_does_not_bias_the_mass_ratio(ratio, deceleration):
    result = identify(tracks_of(burst(ratio, deceleration)), "explosion", size=(640, 360))
    low, high = result.parameters["mass_ratio"].interval_95 or (np.nan, np.nan)
    assert low < ratio < high
    assert high - low < 0.1 * ratio


def test_what_was_never_together_is_no_explosion():
    with pytest.raises(InputError, match="from where they touched"):
        identify(tracks_of(burst(1.3, 0.05, start=0.3)), "explosion", size=(640, 360))
