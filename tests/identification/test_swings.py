"""Periods of wide swings, and definitions of parameters whose names leave them open."""

import numpy as np
import pytest
import torch
from identification.clip_tracks import tracks_of
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from physvision.core import InputError
from physvision.datasets.clips import draw
from physvision.identification import identify
from physvision.identification.kinds import KINDS
from physvision.identification.kinds.circular import swing_amplitudes, swing_period_ratio
from physvision.identification.model import Evidence
from physvision.identification.view import View
from physvision.perception import Track


def test_period_of_wide_swings_is_an_elliptic_integral():
    amplitudes = np.radians([0.001, 10.0, 90.0, 170.0])
    ratio = swing_period_ratio(torch.from_numpy(amplitudes)).numpy()
    np.testing.assert_allclose(ratio, 2 / np.pi * ellipk(np.sin(amplitudes / 2) ** 2), rtol=1e-12)


@pytest.mark.parametrize(("damping", "drag"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.05), (-1e-9, 0.05), (0.08, 0.03)])
def test_amplitude_in_the_middle_of_a_damped_clip(damping, drag):
    """The averaged equation holds to the second order of the amplitude and of the decay in a swing."""
    restoring, duration = 20.0, 6.0

    def rate(_, state):
        return [state[1], -restoring * np.sin(state[0]) - damping * state[1] - drag * abs(state[1]) * state[1]]

    names = {
        "restoring_coefficient": restoring,
        "angle": -0.3,
        "angular_velocity": 1.5,
        "damping": damping,
        "drag": drag,
    }
    values = {name: torch.tensor([value], dtype=torch.float64) for name, value in names.items()}
    initial, middle = (float(amplitude) for amplitude in swing_amplitudes(values, values["drag"], duration))
    assert initial == pytest.approx(np.arccos(np.cos(0.3) - 1.5**2 / (2 * restoring)))

    def turn(_, state):
        return state[1]

    solution = solve_ivp(rate, (0, duration), [-0.3, 1.5], events=turn, rtol=1e-10, atol=1e-12)
    turns, angles = solution.t_events[0], np.abs(solution.y_events[0][:, 0])
    assert middle == pytest.approx(np.interp(duration / 2, turns, angles), rel=0.01)


def test_a_stopwatch_shows_the_swing_period_and_unused_values_are_named():
    times, random = np.arange(240) / 40, np.random.default_rng(0)
    length, damping = 0.41, 0.05

    def rate(_, state):
        return [state[1], -9.81 / length * np.sin(state[0]) - damping * state[1]]

    def rises(_, state):
        return state[0]

    rises.direction = 1
    solution = solve_ivp(rate, (0, times[-1]), [1.2, 0.0], t_eval=times, events=rises, rtol=1e-10, atol=1e-12)
    arm = np.stack([np.sin(solution.y[0]), np.cos(solution.y[0])], 1)
    positions = 400 * length * arm + random.normal(0, 0.2, (len(times), 2))
    track = Track(times, positions, np.full(len(times), 0.2), np.ones(len(times), bool))
    result = identify([track], "pendulum", {"gravity": 9.81})
    crossings = solution.t_events[0]
    stopwatch = (crossings[-1] - crossings[0]) / (len(crossings) - 1)
    small = 2 * np.pi * np.sqrt(length / 9.81)
    assert stopwatch > 1.03 * small
    # The stopwatch's swings are 0.1 s later than the clip on average, in which the period shrinks by 0.06 %; the
    # averaged decay of a wide swing leaves as much again.
    assert result.parameters["swing_period"].value == pytest.approx(stopwatch, rel=2e-3)
    assert result.parameters["period"].value == pytest.approx(small, rel=1e-3)
    assert result.parameters["amplitude"].value == pytest.approx(1.2, rel=5e-3)
    assert result.parameters["period"].meaning == "of small swings"
    by_length = identify([track], "pendulum", {"length": length})
    for scaled in (result, by_length):
        assert scaled.scale_interval is not None
        low, high = scaled.scale_interval
        assert low < 400 < high < 1.05 * low
        assert scaled.scale == pytest.approx(400, rel=5e-3)
    assert by_length.scale_sources == ("length",)
    assert by_length.parameters["gravity"].value == pytest.approx(9.81, rel=2e-3)
    with pytest.raises(InputError, match="known: mass is given, but the clip shows a pendulum, which cannot use it"):
        identify([track], known_values={"gravity": 9.81, "mass": 0.2})


def test_a_mass_ratio_names_both_masses():
    clip = draw("collision", 1)
    tracks = tracks_of(clip, 1)
    (model,) = KINDS["collision"].candidate_models(Evidence(tracks, View.around(tracks), {}))
    numerator, denominator = model.meanings["mass_ratio"].split(" (slower before the impact) over ")
    assert {numerator, denominator} == {track.name for track in tracks}
    speeds = {
        track.name: np.linalg.norm(np.diff(track.positions[track.observed][:5], axis=0), axis=1).mean()
        for track in tracks
    }
    assert speeds[numerator] < speeds[denominator]


def test_a_known_drag_leaves_the_damping_alone():
    """Drag and damping are hardly distinguished; one of them known, the other is far more certain."""
    times, random = np.arange(200) / 40, np.random.default_rng(2)
    length, damping, drag = 0.41, 0.05, 0.1

    def rate(_, state):
        pull = -9.81 / length * np.sin(state[0])
        return [state[1], pull - damping * state[1] - drag * length * abs(state[1]) * state[1]]

    angle = solve_ivp(rate, (0, times[-1]), [0.6, 0.0], t_eval=times, rtol=1e-10, atol=1e-12).y[0]
    positions = 400 * length * np.stack([np.sin(angle), np.cos(angle)], 1) + random.normal(0, 0.2, (len(times), 2))
    track = Track(times, positions, np.full(len(times), 0.2), np.ones(len(times), bool))
    widths = []
    for priors in ({"gravity": 9.81}, {"gravity": 9.81, "drag": drag}):
        parameters = identify([track], "pendulum", priors).parameters
        assert ("drag" in parameters) == ("drag" not in priors)
        low, high = parameters["damping"].interval_95 or (0.0, 0.0)
        assert low < damping < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 4
    with pytest.raises(InputError, match="needs gravity, length or scale"):
        identify([track], "pendulum", {"drag": drag})
