"""Fits of an engine's motion to tracks: exact ones are met, intervals hold, and nothing known leaves the prior."""

import pytest
import torch

from physvision.core import Coordinates, InputError, State
from physvision.models import swing, swing_leaves
from physvision.models.track_fit import MotionTracks, TrackFit, TrackFitSettings

ANGLES = Coordinates(2, (0, 1))
PRIORS = {"length": (0.8, 0.02), "mass": (1.25, 0.43), "joint_damping": (0.05, 0.02)}


def motions(count, noise, seed=0):
    """Tracks of random chains with properties of the prior, with their true values."""
    torch.manual_seed(seed)
    true = {
        name: (mean + std * torch.randn(count, 2).clamp(-1.5, 1.5)).double() for name, (mean, std) in PRIORS.items()
    }
    start = State(3.0 * torch.rand(count, 2).double() - 1.5, 4.0 * torch.rand(count, 2).double() - 2.0)
    path = swing().rollout(start, 29, properties=swing_leaves(true))
    return path, true, path.q + noise * torch.randn_like(path.q)


def priors(count):
    means, stds = ({name: torch.full((count, 2), pair[k]) for name, pair in PRIORS.items()} for k in (0, 1))
    return means, stds


@pytest.mark.parametrize("absolute", [False, True])
def test_exact_tracks_give_state_and_properties(absolute):
    path, true, q = motions(8, 0.0)
    times = tuple(range(30))
    positions = q.cumsum(-1) if absolute else q
    tracks = MotionTracks(positions, torch.full_like(q, 1e-3), times, 30, absolute=absolute)
    fitted = TrackFit(swing(), ANGLES, swing_leaves)(tracks, priors(8), 25)
    torch.testing.assert_close(fitted.state.q, ANGLES.unwind(path.q[:, -1]), atol=2e-3, rtol=0)
    torch.testing.assert_close(fitted.state.v, path.v[:, -1], atol=0.02, rtol=0)
    ratio = [values["mass"][:, 1] / values["mass"][:, 0] for values in (fitted.properties, true)]
    torch.testing.assert_close(*ratio, atol=0.0, rtol=0.1)


def test_intervals_hold_and_state_is_better_than_the_slope_of_three_frames():
    noise = 0.03
    path, true, q = motions(60, noise)
    tracks = MotionTracks(q, torch.full_like(q, noise), tuple(range(30)), 30)
    fitted = TrackFit(swing(), ANGLES, swing_leaves)(tracks, priors(60), 20)
    error = fitted.state.v - path.v[:, -1]
    inside = (error.abs() < 1.96 * fitted.state_std.v).double().mean()
    # 120 correlated draws of 95 %: a binomial's deviation is 2 %.
    assert 0.87 < float(inside) <= 1.0
    slope = (q[:, -1] - q[:, -3]) * 15.0
    assert float(error.abs().median()) < 0.4 * float((slope - path.v[:, -1]).abs().median())
    wrong = (fitted.properties["mass"] - true["mass"]).abs() > 1.96 * fitted.property_std["mass"]
    assert float(wrong.double().mean()) < 0.12


def test_tracks_that_say_nothing_leave_the_prior():
    _, _, q = motions(4, 0.0)
    tracks = MotionTracks(q[:, :4], torch.full_like(q[:, :4], 1e3), (0, 1, 2, 3), 4)
    fitted = TrackFit(swing(), ANGLES, swing_leaves)(tracks, priors(4))
    for name, (mean, std) in PRIORS.items():
        assert fitted.properties[name].flatten().tolist() == pytest.approx([mean] * 8, rel=0.01)
        assert fitted.property_std[name].flatten().tolist() == pytest.approx([std] * 8, rel=0.02)


def test_a_velocity_and_gaps_are_used():
    path, _, q = motions(6, 0.0)
    times = (0, 7, 14, 21, 27, 28, 29)
    part = q[:, list(times)] + 0.05 * torch.randn(6, 7, 2).double()
    plain = MotionTracks(part, torch.full_like(part, 0.05), times, 30)
    measured = MotionTracks(part, plain.std, times, 30, path.v[:, -1], torch.full_like(path.v[:, -1], 0.03))
    fit = TrackFit(swing(), ANGLES, swing_leaves)
    errors = [(fit(tracks, priors(6), 25).state.v - path.v[:, -1]).abs().median() for tracks in (plain, measured)]
    assert errors[1] < 0.5 * errors[0]


def test_intervals_hold_where_errors_last():
    noise, constant, correlation, worlds = 0.03, 0.4, 0.8, 60
    path, _, _ = motions(worlds, noise)
    error = torch.randn(worlds, 30, 2).double()
    for frame in range(1, 30):
        error[:, frame] = correlation * error[:, frame - 1] + (1.0 - correlation**2) ** 0.5 * error[:, frame]
    error = (1.0 - constant) ** 0.5 * error + constant**0.5 * torch.randn(worlds, 1, 2).double()
    tracks = MotionTracks(path.q + noise * error, torch.full_like(path.q, noise), tuple(range(30)), 30)
    inside = []
    for settings in (TrackFitSettings(), TrackFitSettings(constant_error=constant, correlation=correlation)):
        fitted = TrackFit(swing(), ANGLES, swing_leaves, settings)(tracks, priors(worlds), 20)
        apart = ANGLES.unwind(fitted.state.q - path.q[:, -1]).abs()
        inside.append(float((apart < 1.96 * fitted.state_std.q).double().mean()))
    # Of 120 draws 95 % are inside, give or take 2 %.
    assert inside[0] < 0.8
    assert 0.88 < inside[1] < 0.995


def test_one_frame_is_refused():
    _, _, q = motions(2, 0.0)
    tracks = MotionTracks(q[:, :1], torch.ones(2, 1, 2), (0,), 1)
    with pytest.raises(InputError, match="two frames or more"):
        TrackFit(swing(), ANGLES, swing_leaves)(tracks, priors(2))


def test_of_several_ways_to_all_frames_the_cheapest_motion_of_each_world_counts():
    _, _, q = motions(12, 0.02)
    tracks = MotionTracks(q, torch.full_like(q, 0.02), tuple(range(30)), 30)
    ways = [(), (4,), (6, 9)]
    alone = [
        TrackFit(swing(), ANGLES, swing_leaves, TrackFitSettings(iterations=1, growths=(way,)))(tracks, priors(12))
        for way in ways
    ]
    together = TrackFit(swing(), ANGLES, swing_leaves, TrackFitSettings(iterations=1, growths=tuple(ways)))(
        tracks, priors(12)
    )
    costs = torch.stack([fitted.cost for fitted in alone])
    assert len(costs.argmin(0).unique()) > 1
    torch.testing.assert_close(together.cost, costs.min(0).values)
    states = torch.stack([fitted.state.q for fitted in alone])
    torch.testing.assert_close(together.state.q, states[costs.argmin(0), torch.arange(12)])
