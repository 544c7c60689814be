"""What moves beside something, or as its shadow, shows no law of two objects."""

from dataclasses import replace

import numpy as np
import pytest
from identification.clip_tracks import tracks_of
from identification.test_signatures import track
from scipy.integrate import solve_ivp

from physvision.datasets.clips import Filming, draw
from physvision.identification import candidates
from physvision.identification.kinds import KINDS
from physvision.identification.model import Evidence
from physvision.identification.scoring import image_errors
from physvision.identification.signatures import contradiction
from physvision.identification.view import View


@pytest.fixture(scope="module")
def collision_fit():
    clip = draw("collision", 2, Filming(size=(320, 240), fps=60.0, readout=0.0))
    evidence = Evidence(tracks_of(clip), View(320, 240), {})
    return candidates.best_fit(evidence, KINDS["collision"].candidate_models(evidence))


def pendulum_and_shadow(angles):
    """A bob on a string, and its shadow on the wall behind it, which is larger and farther down."""
    times = np.arange(len(angles)) / 20
    string, nail = 190 * np.stack([np.sin(angles), np.cos(angles)], 1), np.array([320, 40])
    return [
        track(times, nail + string, 0.3, 1, 15.0, "bob"),
        track(times, nail + [28, 14] + 1.08 * string, 0.6, 2, 15.0, "shadow"),
    ]


def swing(length, angle, times):
    solution = solve_ivp(lambda t, y: [y[1], -9.81 / length * np.sin(y[0])], (0, times[-1]), [angle, 0], t_eval=times,
                         rtol=1e-8)  # fmt: skip
    return solution.y[0]


def test_a_law_of_two_objects_must_follow_both(collision_fit):
    """A walker fills the picture, so that a spring beside it was missed by less than a part of the picture."""
    assert candidates.is_acceptable(collision_fit)
    residuals, jacobian = collision_fit.linearization
    residuals = residuals.clone()
    residuals[..., 3] += 30 * collision_fit.problem.weight[:, 3]
    assert not candidates.is_acceptable(replace(collision_fit, linearization=(residuals, jacobian)))


def test_an_impact_changes_the_motion_of_both(collision_fit):
    assert contradiction(collision_fit) is None


def test_a_ball_that_bounces_off_a_wall_strikes_nobody_who_passes():
    times = np.arange(90) / 30
    ball = np.stack([300 - np.where(times < 1.5, 130 * (1.5 - times), 90 * (times - 1.5)), np.full(90, 200.0)], 1)
    passer = np.stack([np.full(90, 328.0), 80 + 95 * times - 9 * times**2], 1)
    tracks = [track(times, ball, 0.2, 1, 13.0, "ball"), track(times, passer, 0.2, 2, 16.0, "passer-by")]
    evidence = Evidence(tracks, View(640, 360), {})
    fit = candidates.best_fit(evidence, KINDS["collision"].candidate_models(evidence))
    assert candidates.is_acceptable(fit)
    assert "passer-by changes as smoothly as without an impact" in str(contradiction(fit))


def test_a_shadow_is_an_image_and_no_second_bob():
    times = np.arange(60) / 20
    bob, shadow = pendulum_and_shadow(swing(0.45, 0.5, times))
    errors = image_errors(bob, shadow)
    assert errors is not None
    assert np.nanstd(errors) < 1
    apart = replace(shadow, positions=[320, 200] - bob.positions)
    assert image_errors(bob, apart) is None  # as of two that push off from each other
    late = image_errors(bob, replace(shadow, positions=np.roll(shadow.positions, 9, axis=0)))
    assert late is None or np.nanstd(late) > 5  # as of a second bob


@pytest.mark.extended
def test_a_pendulum_and_its_shadow_are_a_pendulum():
    evidence = Evidence(pendulum_and_shadow(swing(0.45, 0.5, np.arange(60) / 20)), View(640, 360), {})
    kinds = {name: KINDS[name] for name in ("pendulum", "double_pendulum")}
    scores = candidates.kind_scores(candidates.reject_unpredicted(candidates.fit_candidates(evidence, kinds)))
    assert max(scores, key=lambda name: scores[name]) == "pendulum"
