"""Hypotheses that cannot be searched to an end are left out, and others stand."""

from dataclasses import replace

import pytest
from identification.clip_tracks import tracks_of

from physvision.datasets.clips import Filming, draw
from physvision.identification import candidates
from physvision.identification.fitting import fit_model
from physvision.identification.kinds import flight
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
