"""Tracks of very many samples are thinned as far as their motion allows, or cut, and a warning says so."""

import resource
import time

import numpy as np
import pytest

from physvision.identification import identify
from physvision.identification.settings import TrackSettings
from physvision.identification.track_preparation import limit_samples
from physvision.perception import Track

SETTINGS = TrackSettings()


def track(times, positions, noise=0.2, seed=0):
    observed = positions + np.random.default_rng(seed).normal(0, noise, positions.shape)
    return Track(times, observed, np.full(len(times), noise), np.ones(len(times), bool))


@pytest.mark.extended
def test_a_throw_of_60000_rows_is_thinned():
    times = np.linspace(0, 2, 60_000)
    path = np.stack([50 + 200 * times, 400 - 700 * times + 400 * times**2], 1)
    began = time.process_time()
    result = identify([track(times, path)], "projectile", {"gravity": 9.81}, size=(640, 480))
    assert time.process_time() - began < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4e6  # kB; with all that a run of tests loads
    low, high = result.parameters["angle"].interval_95 or (np.nan, np.nan)
    assert low < np.arctan2(700, 200) < high
    assert "every 60th" in " ".join(result.warnings)


def test_swings_that_thinning_would_lose_are_cut():
    times = np.arange(60_000) / 30
    path = 100 * np.stack([np.sin(5 * times), np.cos(4 * times)], 1)
    (cut,), notes = limit_samples([track(times, path)], SETTINGS)
    assert len(cut) == SETTINGS.max_samples
    assert np.diff(cut.times).max() < 2 * np.pi / 5 / 8
    assert "--from and --to" in notes[-1]


def test_impacts_do_not_prevent_thinning():
    times = np.linspace(0, 5, 20_000)
    path = np.stack([20 * times, 300 * np.abs(np.sin(3 * times))], 1)
    (thin,), (note,) = limit_samples([track(times, path)], SETTINGS)
    assert len(thin) == pytest.approx(SETTINGS.max_samples, rel=0.01)
    assert thin.times[-1] > 4.9
    assert "every 20th" in note


def test_both_objects_keep_their_times():
    times = np.linspace(0, 5, 5000)
    paths = [np.stack([20 * times, k * times**2], 1) for k in (3.0, 7.0)]
    thin, _ = limit_samples([track(times, path) for path in paths], SETTINGS)
    assert len(thin) == 2
    np.testing.assert_array_equal(thin[0].times, thin[1].times)
    same, notes = limit_samples([track(times[:900], paths[0][:900])], SETTINGS)
    assert len(same[0]) == 900
    assert not notes
