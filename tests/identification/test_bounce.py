"""Balls that keep less of their speed in hard impacts than in soft ones."""

import numpy as np
import pytest

from physvision.identification import identify, impacts
from physvision.identification.kind_settings import BounceSettings
from physvision.identification.kinds import bounce
from physvision.identification.model import Evidence
from physvision.identification.view import View
from physvision.perception import Track

WEIGHT, FLOOR = 1800.0, 300.0  # px/s², px


def bouncing_heights(restitution, count=6, fps=60, seed=0):
    """Times and heights, y down, of a ball that falls from rest and keeps `share(speed)` of its speed each time."""
    impact, speed = 0.55, WEIGHT * 0.55
    moments, speeds, expected = [0.0], [0.0], []
    for _ in range(count):
        expected.append(restitution(speed))
        speed *= expected[-1]
        moments.append(impact)
        speeds.append(speed)
        impact += 2 * speed / WEIGHT
    times = np.arange(0, impact, 1 / fps)
    flight = np.searchsorted(moments, times, "right") - 1
    since = times - np.array(moments)[flight]
    up = np.array(speeds)[flight] * since - WEIGHT / 2 * since**2
    down = FLOOR - up - np.where(flight == 0, WEIGHT / 2 * 0.55**2, 0.0)
    return times, down + np.random.default_rng(seed).normal(0, 0.2, len(times)), expected


def softer_when_hard(speed):
    return 0.6 + 0.15 * np.log(990 / speed)


def test_what_each_impact_keeps():
    times, down, expected = bouncing_heights(softer_when_hard)
    hits = impacts.find_bounces(times, down, 0.2, BounceSettings())
    restitutions = bounce.impact_restitutions(times, down, hits, FLOOR, BounceSettings.min_flight_samples)
    assert len(restitutions) >= 4
    # Of flights of twenty samples, with 0.2 px of noise, which are led on to the floor by two samples at either end.
    np.testing.assert_allclose(restitutions[:4, 1], expected[:4], atol=0.02)


def test_impacts_that_keep_less_when_hard_may_differ():
    """Their restitution scatters by less than that of a ball that spins, but it falls with the speed."""
    times, down, expected = bouncing_heights(lambda speed: 0.7 + 0.05 * np.log(990 / speed), count=6)
    assert np.std(expected) < BounceSettings.max_restitution_scatter
    positions = np.stack([100 + 40 * times, down], 1)
    track = Track(times, positions, np.full(len(times), 0.2), np.ones(len(times), bool), radius=9.0)
    models = bounce.candidate_models(Evidence([track], View(320, 400), {}))
    assert any("impacts differ" in note for model in models for note in model.notes)


def test_what_was_tracked_before_the_ball_does_not_hide_its_fall():
    """Half a second of a shadow that hardly moves, longer than any flight, before a second of bounces."""
    times, down, _ = bouncing_heights(lambda speed: 0.75)
    step = 1 / 60
    before = np.arange(40) * step
    trembling = 250 + np.random.default_rng(1).normal(0, 4.0, 40)
    times, down = np.concatenate([before, times + before[-1] + step]), np.concatenate([trembling, down])
    hits = impacts.find_bounces(times, down, 0.2, BounceSettings())
    guess = impacts.guess_bounces(times, np.stack([100 + 40 * times, down], 1), hits)
    assert guess is not None
    assert guess.gravity == pytest.approx(WEIGHT, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("restitution", "warned"), [(softer_when_hard, True), (lambda speed: 0.75, False)])
def test_that_hard_impacts_keep_less_is_said(restitution, warned):
    times, down, _ = bouncing_heights(restitution)
    positions = np.stack([100 + 40 * times, down], 1)
    track = Track(times, positions, np.full(len(times), 0.2), np.ones(len(times), bool), radius=9.0)
    restitutions = identify([track], "bounce", {"gravity": 9.81}, size=(320, 400))
    assert any("in the hardest impact" in note for note in restitutions.warnings) == warned


@pytest.mark.extended
def test_a_ball_whose_impacts_differ_is_a_bounce():
    """Its horizontal speed jumps in each impact, as a spinning ball's does, and its restitution varies by 0.04."""
    random = np.random.default_rng(0)
    times, down, expected = bouncing_heights(lambda speed: 0.8 + 0.04 * random.standard_normal(), fps=30)
    hits = np.array(impacts.find_bounces(times, down, 0.2, BounceSettings()))
    speeds = 150 + 80 * random.standard_normal(len(hits) + 1)
    across = 100 + np.cumsum(speeds[np.searchsorted(hits, np.arange(len(times)))]) / 30
    positions = np.stack([across, down], 1) + random.normal(0, 0.3, (len(times), 2))
    track = Track(times, positions, np.full(len(times), 0.3), np.ones(len(times), bool), radius=9.0)
    result = identify([track], "bounce", {"gravity": 9.81}, size=(640, 400))
    low, high = result.intervals["restitution"]
    assert low < np.mean(expected) < high
    assert result.fit.noise < 1.5
    assert any("impacts differ" in note for note in result.warnings)


def test_a_ball_that_rolls_off_a_table_and_then_bounces():
    """It rolls for longer than it falls, on a table whose edge hides a part of it."""
    times, down, _ = bouncing_heights(lambda speed: 0.55, fps=30)
    rolling = np.arange(24) / 30
    times = np.concatenate([rolling, rolling[-1] + 1 / 30 + times])
    heights = np.concatenate([np.full(24, down[0]), down])
    random, sigma = np.random.default_rng(2), np.where(np.arange(len(times)) < 24, 1.7, 0.3)
    positions = np.stack([20 + 230 * times, heights], 1) + random.normal(0, 0.3, (len(times), 2))
    track = Track(times, positions, sigma, np.ones(len(times), bool), radius=8.0)
    models = bounce.candidate_models(Evidence([track], View(640, 480), {}))
    assert abs(models[0].first - 24) <= 4
    gravity = next(unknown for unknown in models[0].unknowns if unknown.name == "gravity")
    assert float(gravity.start) == pytest.approx(WEIGHT, rel=0.05)
