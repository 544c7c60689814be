"""Hypotheses that cannot be searched to an end are left out, and others stand."""

from dataclasses import replace

import numpy as np
import pytest
from identification.clip_tracks import tracks_of
from identification.test_signatures import track

from physvision.datasets.clips import Filming, draw
from physvision.identification import candidates
from physvision.identification.fitting import fit_model
from physvision.identification.kinds import KINDS, flight
from physvision.identification.model import Evidence, UnsuitableError
from physvision.identification.view import View


def test_a_search_that_runs_to_where_nothing_has_a_derivative_counts_for_nothing():
    clip = draw("fall", 3, Filming(size=(320, 240), fps=60.0, readout=0.0))
    evidence = Evidence(tracks_of(clip), View(320, 240), {})
    (model,) = flight.fall_models(evidence)[:1]

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
