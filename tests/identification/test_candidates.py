"""Hypotheses that cannot be searched to an end are left out, and others stand."""

from dataclasses import replace

import numpy as np
import pytest
from identification.clip_tracks import tracks_of
from identification.test_signatures import track

from physvision.datasets.clips import Filming, draw
from physvision.identification import candidates
from physvision.identification.diagnostics import Holdout
from physvision.identification.fitting import fit_model, max_noise
from physvision.identification.kinds import KINDS, flight
from physvision.identification.model import Evidence, UnsuitableError
from physvision.identification.view import View


def test_a_search_that_runs_to_where_nothing_has_a_derivative_counts_for_nothing():
    clip = draw("fall", 3, Filming(size=(320, 240), fps=60.0, readout=0.0))
    evidence = Evidence(tracks_of(clip), View(320, 240), {})
    (model,) = flight.candidate_models(evidence, "fall")[:1]

    def steep(sampled):
        positions = model.observe(sampled)
        return positions + (positions - positions.detach()).abs().sqrt()  # nothing, with endless slopes

    broken = replace(model, observe=steep)
    with pytest.raises(UnsuitableError, match="no motion of this kind comes near the track"):
        fit_model(evidence, broken)
    result = candidates.best_fit(evidence, [broken, model])
    assert result.noise == pytest.approx(fit_model(evidence, model).noise, rel=0.05)
    with pytest.raises(UnsuitableError):
        candidates.best_fit(evidence, [broken])


def test_laws_of_one_object_are_not_tried_where_a_law_explains_both():
    """Each of two pucks that push off from each other slides along a line."""

    def slide_models(evidence):
        raise AssertionError("slides are fitted")

    times = np.arange(40) / 30
    paths = [np.stack([200 + side * (10 + 60 * times), np.full(40, 100.0)], 1) for side in (-1, 1)]
    tracks = [track(times, path, 0.1, seed, 10.0, f"puck {seed}") for seed, path in enumerate(paths)]
    kinds = {"slide": replace(KINDS["slide"], candidate_models=slide_models), "explosion": KINDS["explosion"]}
    result = candidates.fit_candidates(Evidence(tracks, View(400, 200), {}), kinds)
    assert list(result.fits) == ["explosion"]
    assert result.rejected == {"slide": "it explains fewer than 2 of the objects"}


def test_laws_of_one_object_are_tried_where_that_of_both_does_not_predict():
    """Two pucks push off from each other; one of them strikes something at the end, the other slides on."""
    times = np.arange(60) / 30
    paths = [np.stack([200 + side * (10 + 60 * times), np.full(60, 100.0)], 1) for side in (-1, 1)]
    paths[0][48:, 1] += 60 * (times[48:] - times[48])
    tracks = [track(times, path, 0.1, seed, 10.0, f"puck {seed}") for seed, path in enumerate(paths)]
    kinds = {name: KINDS[name] for name in ("slide", "explosion")}
    result = candidates.reject_unpredicted(candidates.fit_candidates(Evidence(tracks, View(400, 200), {}), kinds))
    assert list(result.fits) == ["slide"]
    assert "last third" in result.rejected["explosion"]


def test_noise_excuses_no_miss_of_half_an_object():
    """A second of a track that scatters by 5 px, as of a reflection: a pendulum missed it by 8 px, and was named."""
    times = np.arange(44) / 25
    path = np.stack([60 + 250 * times, 150 + 60 * np.sin(3 * times)], 1)
    evidence = Evidence([track(times, path, 5.0, radius=16.0)], View(640, 360), {})
    assert max_noise(evidence) == pytest.approx(0.02 * evidence.extent)
    small = Evidence([track(times, path / 10, 0.5, radius=16.0)], View(640, 360), {})
    assert 2.9 < max_noise(small) < 3.1


def test_a_law_is_sensitive_to_its_start_and_not_to_what_nothing_determines(monkeypatch):
    """An impact magnifies errors of a state; that of a mass ratio of nothing, 1e45 extents large, excuses no miss."""
    clip = draw("collision", 3, Filming(size=(320, 240), fps=60.0, readout=0.0))
    evidence = Evidence(tracks_of(clip), View(320, 240), {})
    fit = candidates.best_fit(evidence, KINDS["collision"].candidate_models(evidence))
    missed = Holdout(0.3 * evidence.extent, 0.3, np.zeros((0, 4)))
    monkeypatch.setattr(candidates, "evaluate_holdout", lambda fit: missed)
    monkeypatch.setattr(candidates, "expected_holdout_error", lambda fit: 10.0 * fit.evidence.extent)
    assert candidates.prediction_failure(fit, check_determined=True) is None
    monkeypatch.setattr(candidates, "expected_holdout_error", lambda fit: 1e45 * fit.evidence.extent)
    assert "do not determine it" in str(candidates.prediction_failure(fit, check_determined=True))


def test_a_law_that_misses_the_track_does_not_excuse_its_miss_of_the_future(monkeypatch):
    """A toy car that is steered: a parabola misses it by 3 px, where its track errs by 0.2 px."""
    times = np.arange(75) / 25
    path = np.stack([200 + 40 * np.sin(1.6 * times), 150 + 14 * times**2 - 9 * np.sin(3.3 * times)], 1)
    evidence = Evidence([track(times, path, 0.2, radius=12.0)], View(640, 360), {})
    fit = candidates.best_fit(evidence, KINDS["projectile"].candidate_models(evidence))
    assert fit.noise > 1
    missed = Holdout(0.3 * evidence.extent, 0.3, np.zeros((0, 2)))
    monkeypatch.setattr(candidates, "evaluate_holdout", lambda fit: missed)
    assert "is missed by" in str(candidates.prediction_failure(fit, check_determined=False))
