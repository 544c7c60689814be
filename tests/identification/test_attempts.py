"""Hypotheses that cannot be searched to an end are left out, and others stand."""

from dataclasses import replace

import pytest
from identification.drawn import tracks_of

from physvision.datasets.clips import Filming, draw
from physvision.identification import attempts
from physvision.identification.fitting import fit
from physvision.identification.kinds import flight
from physvision.identification.model import Case, UnsuitableError
from physvision.identification.view import View


def test_a_search_that_runs_to_where_nothing_has_a_derivative_counts_for_nothing():
    clip = draw("fall", 3, Filming(size=(320, 240), fps=60.0, readout=0.0))
    case = Case(tracks_of(clip), View(320, 240), {})
    (model,) = flight.fall(case)[:1]

    def steep(seen):
        places = model.places(seen)
        return places + (places - places.detach()).abs().sqrt()  # nothing, with endless slopes

    broken = replace(model, places=steep)
    with pytest.raises(UnsuitableError, match="no such motion comes near the track"):
        fit(case, broken)
    found = attempts._best(case, [broken, model])[1]
    assert found.noise == pytest.approx(fit(case, model).noise, rel=0.05)
    with pytest.raises(UnsuitableError):
        attempts._best(case, [broken])
