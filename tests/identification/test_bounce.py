"""Balls that keep less of their speed in hard impacts than in soft ones."""

import numpy as np
import pytest

from physvision.identification import identify, impacts
from physvision.identification.kinds import bounce
from physvision.perception import Track

WEIGHT, FLOOR = 1800.0, 300.0  # px/s², px


def bounced(share, count=6, fps=60, seed=0):
    """Times and heights, y down, of a ball that falls from rest and keeps `share(speed)` of its speed each time."""
    impact, speed = 0.55, WEIGHT * 0.55
    moments, speeds, shares = [0.0], [0.0], []
    for _ in range(count):
        shares.append(share(speed))
        speed *= shares[-1]
        moments.append(impact)
        speeds.append(speed)
        impact += 2 * speed / WEIGHT
    times = np.arange(0, impact, 1 / fps)
    flight = np.searchsorted(moments, times, "right") - 1
    since = times - np.array(moments)[flight]
    up = np.array(speeds)[flight] * since - WEIGHT / 2 * since**2
    down = FLOOR - up - np.where(flight == 0, WEIGHT / 2 * 0.55**2, 0.0)
    return times, down + np.random.default_rng(seed).normal(0, 0.2, len(times)), shares


def softer(speed):
    return 0.6 + 0.15 * np.log(990 / speed)


def test_what_each_impact_keeps():
    times, down, shares = bounced(softer)
    hits = impacts.find_bounces(times, down, 0.2)
    found = bounce.impact_restitutions(times, down, hits, FLOOR)
    assert len(found) >= 4
    # Of flights of twenty samples, with 0.2 px of noise, which are led on to the floor by two samples at either end.
    np.testing.assert_allclose(found[:4, 1], shares[:4], atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "said"), [(softer, True), (lambda speed: 0.75, False)])
def test_that_hard_impacts_keep_less_is_said(share, said):
    times, down, _ = bounced(share)
    places = np.stack([100 + 40 * times, down], 1)
    track = Track(times, places, np.full(len(times), 0.2), np.ones(len(times), bool), radius=9.0)
    found = identify([track], "bounce", {"gravity": 9.81}, size=(320, 400))
    assert any("in the hardest impact" in note for note in found.warnings) == said
