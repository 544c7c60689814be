"""Each kind of motion is identified from the places that a drawn clip would show, camera and noise included."""

# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from identification.clip_tracks import NOISE, tracks_of

from physvision.core import InputError
from physvision.datasets.clips import DETERMINED_PARAMETERS, draw
from physvision.identification import IdentificationSettings, identify
from physvision.identification.diagnostics import expected_holdout_error
from physvision.identification.settings import SelectionSettings
from physvision.perception import Track


@cache
def identify_drawn(kind, seed, **options):
    clip = draw(kind, seed, duplicated=0.0)
    known_values = {**clip.known, **{name: value for name, value in clip.options.items() if name == "scale"}}
    options.setdefault("motion", kind)
    return clip, identify(tracks_of(clip, seed), known_values=known_values, size=clip.filming.size, **options)


# What a short, quick flight and a table's friction leave open; scales that differ by half a percent over the picture.
TOLERANCE = {"projectile": 0.04, "fall": 0.05, "collision": 0.03, "slide": 0.02, "roll": 0.02}


QUICK = ("pendulum", "projectile", "fall", "spring", "slide", "roll", "circular")


@pytest.mark.parametrize(
    "kind",
    [*QUICK, *(pytest.param(kind, marks=pytest.mark.slow) for kind in DETERMINED_PARAMETERS if kind not in QUICK)],
)
def test_leading_parameters_are_found_and_lie_in_their_intervals(kind):
    clip, result = identify_drawn(kind, 1)
    for name in DETERMINED_PARAMETERS[kind]:
        value, truth = result.parameters[name].value, clip.truth[name]
        assert abs(value / truth - 1) < TOLERANCE.get(kind, 0.01), name
        low, high = result.parameters[name].interval_95
        width = high - low
        # Once more as wide: one interval in twenty misses.
        assert low - width / 2 < truth < high + width / 2, name


@pytest.mark.extended
def test_a_readout_at_its_bound_does_not_hold_the_search_back():
    # A swing of 131°, filmed with hardly any rolling shutter: searches stopped 0.2 % short of the period.
    clip, result = identify_drawn("pendulum", 4)
    assert abs(result.parameters["period"].value / clip.truth["period"] - 1) < 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pendulum", "spring", "circular", "bounce"])
def test_the_right_kind_is_named(kind):
    _, result = identify_drawn(kind, 2, motion=None)
    assert result.motion == kind
    assert not result.indistinguishable


def test_a_mass_that_sways_on_its_spring_is_still_one():
    clip = draw("spring", 1, duplicated=0.0)
    (track,) = tracks_of(clip, 1)
    along = np.linalg.svd(track.positions - track.positions.mean(0), full_matrices=False)[2][0]
    sway = 0.04 * track.extent * np.sin(3.1 * track.times)
    swaying = replace(track, positions=track.positions + sway[:, None] * along[::-1] * (1, -1))
    result = identify([swaying], "spring", clip.known, size=clip.filming.size)
    assert abs(result.parameters["period"].value / clip.truth["period"] - 1) < 2e-3


@pytest.mark.extended
def test_kinds_that_predict_the_same_are_named_together():
    _, result = identify_drawn("roll", 1, motion=None)
    assert {result.motion, *result.indistinguishable} == {"roll", "slide"}
    assert "turns" in next(iter(result.indistinguishable.values()))


def test_what_is_not_identifiable_is_said_with_the_reason():
    clip = draw("pendulum", 1, duplicated=0.0)
    result = identify(tracks_of(clip), "pendulum", size=clip.filming.size)
    assert not result.parameters["length"].identifiable
    assert "gravity" in result.parameters["length"].reason
    assert "mass" in result.parameters["mass"].reason
    assert abs(result.parameters["period"].value / clip.truth["period"] - 1) < 0.01


def test_the_last_third_is_predicted_and_the_engine_goes_on():
    clip, result = identify_drawn("pendulum", 1)
    assert result.holdout.relative_error < 0.01
    engine, motion = result.engine, result.trajectory
    assert result.unit == "m"
    again = engine.rollout(motion.state(0), motion.steps)
    torch.testing.assert_close(again.q, motion.q)
    assert abs(float(engine.properties.length) / clip.truth["length"] - 1) < 0.03
    assert result.positions(np.array([-1.0, 0.5])).shape == (2, 2)


def test_the_error_that_is_to_be_expected_of_a_prediction():
    _, result = identify_drawn("fall", 1)
    expected = expected_holdout_error(result.fit)
    assert result.holdout.error < 3 * expected
    # What was known beforehand of drag and of the camera leaves a few pixels open, not more.
    assert expected < 0.05 * result.holdout.error / result.holdout.relative_error


def test_where_things_are_said_to_be_seen_counts_when_their_rows_are_read():
    _, result = identify_drawn("fall", 1)
    fit = result.fit
    positions = fit.positions(result.evidence.times)[fit.model.first : fit.model.end]
    fitted = fit.problem.predictions(fit.z[None]).detach()[0]
    observed = torch.isfinite(fit.problem.observed)
    # Of what is fitted the row is that in which it was seen, a pixel of noise beside where it is said to be.
    torch.testing.assert_close(positions[observed], fitted[observed], atol=0.05, rtol=0)


def test_slow_motion_that_nobody_told_is_noticed():
    clip = draw("projectile", 1, duplicated=0.0)
    slow = [Track(8 * t.times, t.positions, t.sigma, t.observed, radius=t.radius) for t in tracks_of(clip)]
    result = identify(slow, "projectile", {"gravity": 9.81}, size=clip.filming.size)
    assert any("--fps" in warning for warning in result.warnings)


@pytest.mark.extended
def test_what_follows_no_law_is_refused_with_what_was_seen():
    random = np.random.default_rng(0)
    times = np.arange(60) / 30
    positions = np.cumsum(random.normal(0, 15, (60, 2)), 0) + 300
    track = Track(times, positions, np.full(60, 0.2), np.ones(60, bool))
    with pytest.raises(InputError, match="no kind of motion explains the tracks"):
        identify([track], "pendulum")


def test_settings_say_which_fits_are_acceptable():
    clip = draw("circular", 1, duplicated=0.0)
    strict = IdentificationSettings(selection=SelectionSettings(max_error=0.0, max_error_ratio=0.1))
    with pytest.raises(InputError, match="its best fit has a residual of"):
        identify(tracks_of(clip, 1), "circular", size=clip.filming.size, settings=strict)


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="motion: expected one of pendulum"):
        identify([], "swing")


@pytest.mark.extended
def test_what_a_pendulum_hangs_on_gives_way():
    """A drift of half a pixel a second is told from the swing, so the last third is predicted."""
    clip = draw("pendulum", 3)
    (track,) = tracks_of(clip)
    drift = np.array([0.4, -0.5])
    moved = replace(track, positions=track.positions + drift * clip.times[:, None])
    result = identify([moved], "pendulum", clip.known, size=clip.filming.size)
    assert any("evenly" in note for note in result.warnings)
    assert result.fit.noise < 1.2 * NOISE
    fitted_drift = result.fit.values["drift"][0].numpy()
    np.testing.assert_allclose(fitted_drift, drift, atol=0.1)
    assert abs(result.parameters["length"].value / clip.truth["length"] - 1) < 0.01
