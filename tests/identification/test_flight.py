"""Where a flight begins that is in view from its first moment on."""

# pyright: reportOperatorIssue=false

from dataclasses import replace

import numpy as np
import pytest
from identification.clip_tracks import tracks_of

from physvision.datasets.clips import Filming, Motion, draw, film
from physvision.identification import identify

HIGH_SPEED = Filming(size=(320, 240), fps=240.0, readout=0.0, fill_fraction=0.7)


def shot(seed):
    """A throw whose flight is in view from its first moment on, and nothing before."""
    thrown = draw("projectile", seed, HIGH_SPEED).motion

    def poses(times):
        return thrown.poses(times + thrown.release)

    motion = Motion("projectile", thrown.truth, thrown.known, thrown.duration - thrown.release, poses, thrown.bodies)
    return film(motion, HIGH_SPEED, seed)


def launched(clip, track):
    result = identify([track], "projectile", clip.known, size=clip.filming.size)
    speed, angle = (result.parameters[name].value for name in ("speed", "angle"))
    return speed / clip.truth["speed"], np.degrees(angle - clip.truth["angle"])


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.extended), 3])
def test_what_is_seen_aside_of_its_path_at_first_flies_already(seed):
    clip = shot(seed)
    (track,) = tracks_of(clip, seed)
    aside = 0.4 * track.radius * np.array([0.8, -0.6]) * (np.arange(len(track)) < 9)[:, None]
    sigma = np.where(np.arange(len(track)) < 9, 0.3 * track.radius, track.sigma)
    speed, angle = launched(clip, replace(track, positions=track.positions + aside, sigma=sigma))
    assert abs(speed - 1) < 0.03
    assert abs(angle) < 1.5


@pytest.mark.extended
def test_a_release_is_found_where_drag_and_rows_bend_the_path():
    """Read row by row within 19 ms, and slowed: no parabola goes through the whole flight."""
    clip = draw("projectile", 120)
    (track,) = tracks_of(clip, 120)
    speed, angle = launched(clip, track)
    assert abs(speed - 1) < 0.02
    assert abs(angle) < 1


@pytest.mark.parametrize("beforehand", [pytest.param(0.035, marks=pytest.mark.extended), -0.04])
def test_a_release_that_is_not_seen_is_neither_the_first_sample_nor_long_before(beforehand):
    """What is seen beside its path at first is still held; what is seen on it was let go before, hidden by the hand."""
    clip = draw("projectile", 9)
    (track,) = tracks_of(clip, 9)
    observed = clip.timestamps > clip.motion.release - beforehand
    speed, angle = launched(clip, replace(track, observed=observed, sigma=np.where(observed, track.sigma, np.inf)))
    assert abs(speed - 1) < 0.05
    assert abs(angle) < 4


def test_drag_between_the_release_and_the_first_sample_counts():
    """Where a hand holds it at first, the path that it flies along is followed back to the release, with its drag."""
    thrown = draw("projectile", 1)
    (track,) = tracks_of(thrown, 1)
    result = identify([track], "projectile", thrown.known, size=thrown.filming.size)
    values = result.fit.problem.unknowns.values(result.fit.z[None])
    moment = float(values["release_time"])
    step = result.fit.problem.engine.dt
    states = result.fit.problem.rollout(result.fit.z[None], int(moment / step) + 2)
    speeds = states.v[0].norm(dim=1).detach().numpy()
    at_release = np.interp(moment, step * np.arange(len(speeds)), speeds) / result.scale
    assert moment > 2 * step
    assert abs(result.parameters["speed"].value / at_release - 1) < 1e-3


@pytest.mark.extended
def test_what_a_hand_holds_still_does_not_fly_up_before_it_falls():
    """A palm pulls at what is seen of a ball that leaves it: beside the path of all, it does not fly yet."""
    dropped = draw("fall", 216)
    (track,) = tracks_of(dropped, 216)
    since = track.times - dropped.motion.release
    pulled = track.positions + np.array([0.0, 0.8]) * ((since > 0.01) & (since < 0.1))[:, None]
    known_values = {"scale": dropped.options["scale"]}
    result = identify([replace(track, positions=pulled)], "fall", known_values, size=dropped.filming.size)
    assert "offset" not in result.fit.problem.unknowns.values(result.fit.z[None])
    assert abs(result.parameters["acceleration"].value / 9.81 - 1) < 0.03


def test_what_flies_when_the_clip_begins_has_the_speed_of_its_first_sight():
    clip = shot(0)
    (track,) = tracks_of(clip, 0)
    late = track.window(24, len(track))
    result = identify([late], "projectile", clip.known, size=clip.filming.size)
    assert any("flies already when it is first seen" in warning for warning in result.warnings)
    assert result.parameters["speed"].meaning == "when first seen"
    step = 1e-4
    before, after = clip.motion.poses(clip.times[24] + np.array([-step, step]))[:, 0, :2]
    low, high = result.parameters["speed"].interval_95 or (np.nan, np.nan)
    assert low < np.linalg.norm(after - before) / (2 * step) < high


@pytest.mark.extended
def test_an_invisible_release_is_named_with_the_time_that_it_is_taken_for():
    """What appears in flight in the middle of the picture may have been released earlier than a hand could hide it."""
    clip = shot(0)
    (track,) = tracks_of(clip, 0)
    observed = np.arange(len(track)) >= 24
    late = replace(track, observed=observed, sigma=np.where(observed, track.sigma, np.inf))
    result = identify([late], "projectile", clip.known, size=clip.filming.size)
    assert any("Its release is not visible" in warning for warning in result.warnings)
    assert "before it is first seen" in result.parameters["angle"].meaning


def test_a_flight_goes_on_behind_a_post():
    """Beside the post the ball is hidden in part and beside its path, as its sigma says; the flight began before it."""
    clip = draw("projectile", 20)
    (track,) = tracks_of(clip, 20)
    flying = np.flatnonzero(clip.times > clip.motion.release)
    first = flying[len(flying) // 3]
    positions, sigma = track.positions.copy(), track.sigma.copy()
    hidden = np.isin(np.arange(len(track)), np.arange(first + 1, first + 12))
    aside = [first, first + 12]
    positions[aside] += 0.25 * track.radius
    sigma[aside] = 0.25 * track.radius
    sigma[hidden] = np.inf
    speed, angle = launched(clip, replace(track, positions=positions, sigma=sigma, observed=track.observed & ~hidden))
    assert abs(speed - 1) < 0.03
    assert abs(angle) < 1.5
