"""A ball that is thrown is named, and not the hand or the plunger that moves beside it."""

import numpy as np
import pytest
from identification.test_signatures import track

from physvision.identification.candidates import fit_candidates, kind_scores
from physvision.identification.kinds import KINDS, collision
from physvision.identification.model import Evidence
from physvision.identification.scoring import kind_odds
from physvision.identification.signatures import window_contradiction
from physvision.identification.view import View

SLOWER = 8  # 240 frames a second, written as 30


def launch(angle=0.9, speed=560.0, release=0.12, count=150):
    """Times of slow motion, the path of a ball, its direction and the time since its release."""
    times = np.arange(count) / 240
    flight = np.maximum(times - release, 0)[:, None]
    direction = np.array([np.cos(angle), -np.sin(angle)])
    path = np.array([50.0, 190.0]) + speed * flight * direction + 1000 * flight**2 * [0, 1]
    return SLOWER * times, path, direction, times - release


def follow_through(angle):
    """Path of the ball, and of a hand that swings with it, follows through and stops."""
    times, path, direction, elapsed = launch(angle)
    phase = np.clip((elapsed + 0.12) / 0.24, 0, 1)
    hand = 40 * (phase - np.sin(2 * np.pi * phase) / (2 * np.pi))[:, None] * direction
    ball = path[0] + hand - hand[elapsed.searchsorted(0)]
    return times, np.where(elapsed[:, None] < 0, ball, path), path[0] - 15 * direction + hand


def strike(angle):
    """Path of a ball that rests until a plunger strikes it, and of the plunger."""
    times, path, direction, elapsed = launch(angle)
    return times, path, path[0] + (350 * np.minimum(elapsed, 0) - 19)[:, None] * direction


@pytest.mark.extended
def test_a_thrown_ball_leads_beside_the_hand_that_throws_it():
    """A hand slows down as on a slide; both laws hold, each of its object, and the ball's explains far more."""
    times, ball, hand = follow_through(0.9)
    tracks = [track(times, hand, 0.3, 1, 14.0, "hand"), track(times, ball, 0.2, radius=5.0, name="ball")]
    kinds = {name: KINDS[name] for name in ("slide", "projectile")}
    candidates = fit_candidates(Evidence(tracks, View(320, 240), {}), kinds)
    assert candidates.fits["projectile"].evidence.tracks[0].name == "ball"
    assert all(fit.evidence.tracks[0].name == "ball" for fit in candidates.fits.values())
    assert next(iter(kind_odds(kind_scores(candidates)))) == "projectile"


def test_what_flies_off_on_a_curve_was_not_struck_on_a_table():
    times, ball, launcher = strike(0.6)
    tracks = [track(times, ball, 0.2, radius=5.0, name="ball"), track(times, launcher, 0.3, 1, 14.0, "launcher")]
    evidence = Evidence(tracks, View(320, 240), {})
    (model,) = collision.candidate_models(evidence)
    assert "the path of ball is curved" in (window_contradiction(evidence, model) or "")
