"""Drawn clips obey the laws that their truth states, and show things where they say they are."""

from itertools import islice

import numpy as np
import pytest
from scipy.integrate import trapezoid

from physvision import video
from physvision.datasets.clips import KINDS, Filming, Line, draw
from physvision.datasets.clips.drawing import _line_points
from physvision.datasets.clips.integration import solve

STILL = Filming(fps=10, noise=0, flicker=0, quality=1, exposure=0.01)


def test_solutions_are_exact_to_their_order():
    solution, _ = solve(lambda y: np.array([y[1], -9 * y[0]]), np.array([1.0, 0.0]), 4.0)
    times = np.linspace(0, 4, 77)
    # The error of a step is (ωh)⁵ / 120 of the motion, and steps add up.
    np.testing.assert_allclose(solution(times)[:, 0], np.cos(3 * times), atol=4000 * 3e-3**5 / 120 + 1e-12)


def test_bounces_come_when_they_must():
    solution, events = solve(
        lambda y: np.array([y[1], -10.0]), np.array([5.0, 0.0]), 2.9, lambda y: y[0], lambda y: y * [1, -0.5]
    )
    np.testing.assert_allclose(events, [1, 2, 2.5, 2.75, 2.875], atol=1e-9)
    assert solution(np.array([1.5]))[0, 0] == pytest.approx(1.25, abs=1e-9)


def _accelerations(motion, times, step=1e-3):
    before, now, after = (motion.poses(times + away)[..., :2] for away in (-step, 0.0, step))
    return (before - 2 * now + after) / step**2, (after - before) / (2 * step), now


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["projectile", "fall"])
def test_what_flies_falls(kind, seed):
    motion = draw(kind, seed).motion
    times = np.linspace(motion.release + 0.05, motion.duration - 0.05, 9)
    acceleration, velocity, _ = _accelerations(motion, times)
    drag = motion.truth["drag"] * np.linalg.norm(velocity, axis=-1, keepdims=True) * velocity
    np.testing.assert_allclose(acceleration + drag, np.broadcast_to([0, -9.81], drag.shape), atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_springs_pull_by_their_stiffness(seed):
    motion = draw("spring", seed).motion
    times = np.linspace(0.05, motion.duration - 0.05, 50)
    acceleration, velocity, place = (values.sum((1, 2)) for values in _accelerations(motion, times))
    fitted = np.linalg.lstsq(np.stack([place, velocity, np.ones(50)], 1), acceleration, rcond=None)[0]
    truth = motion.truth
    np.testing.assert_allclose(-fitted[:2], [truth["stiffness"] / truth["mass"], truth["damping"]], rtol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_pendulums_keep_their_length_and_lose_energy_to_drag(seed):
    motion = draw("pendulum", seed).motion
    times = np.linspace(0.01, motion.duration - 0.01, 3000)
    _, velocity, place = _accelerations(motion, times)
    reach = np.linalg.norm(place[:, 0], axis=1)
    np.testing.assert_allclose(reach, reach[0], rtol=1e-9)
    scale = motion.truth["length"] / reach[0]  # the equivalent length of a rod that swings is not its middle's distance
    speed = scale * np.linalg.norm(velocity[:, 0], axis=1)
    energy = speed**2 / 2 + 9.81 * scale * place[:, 0, 1]
    lost = trapezoid(motion.truth["damping"] * speed**2 + motion.truth["drag"] * speed**3, times)
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_collisions_keep_momentum(seed):
    motion = draw("collision", seed).motion
    times = np.linspace(0.002, motion.duration - 0.002, 2000)
    _, velocity, place = _accelerations(motion, times, 1e-5)
    gap = np.linalg.norm(place[:, 0] - place[:, 1], axis=1)
    hit = int(gap.argmin())
    before, after = velocity[hit - 3], velocity[hit + 3]
    masses = np.array([1, motion.truth["mass_ratio"]])[:, None]
    np.testing.assert_allclose((masses * before).sum(0), (masses * after).sum(0), atol=5e-3)
    normal = (place[hit, 1] - place[hit, 0]) / gap[hit]
    closing, opening = ((v[0] - v[1]) @ normal for v in (before, after))
    assert -opening / closing == pytest.approx(motion.truth["restitution"], abs=2e-2)


@pytest.mark.parametrize("kind", list(KINDS))
def test_things_are_drawn_where_they_are_said_to_be(kind):
    """Where a frame differs from the background alone, in the color of the thing, its middle is."""
    clip = draw(kind, 3, STILL)
    body = clip.motion.bodies[0]
    pick = int(np.searchsorted(clip.times, (clip.motion.release + clip.motion.duration) / 2))
    frame = next(islice(clip.frames(), pick, None)).astype(float)
    # Halves of a mark are darker by up to a quarter.
    near = np.linalg.norm(frame - 255 * np.array(body.color) * (1 - body.mark / 2), axis=-1) < 20 + 200 * body.mark
    rows, columns = np.nonzero(near)
    place = clip.positions()[pick, 0]
    reach = max(body.size) * clip.view.scale
    around = np.hypot(columns + 0.5 - place[0], rows + 0.5 - place[1]) < 0.55 * reach
    middle = np.array([columns[around].mean(), rows[around].mean()]) + 0.5
    assert np.linalg.norm(middle - place) < 0.15 * reach


def test_the_same_seed_draws_the_same_frames():
    first, second = (next(draw("bounce", 5).frames()) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_dropped_doubled_and_repeated_frames_and_wrong_rates(tmp_path):
    clip = draw("fall", 2, Filming(fps=60, size=(320, 240), dropped=0.2, duplicated=0.1))
    assert len(clip.times) < clip.motion.duration * 60 - 3
    assert (clip.shown_frames != np.arange(len(clip.shown_frames))).sum() > 1
    np.testing.assert_array_equal(clip.times, clip.timestamps)
    slow = draw("fall", 2, Filming(fps=120, stated_fps=30, size=(320, 240)))
    assert slow.timestamps[-1] == pytest.approx(4 * slow.times[-1])
    assert slow.options["fps"] == 120
    turned = draw("fall", 2, Filming(size=(240, 320), quarter_turns=1))
    path = turned.write(tmp_path / "turned.mp4")
    observed = video.read(path)
    assert (observed.width, observed.height) == (240, 320)
    shown = next(turned.frames())
    assert np.abs(observed.frames[0].numpy().astype(int) - shown).mean() < 6
    np.testing.assert_allclose(observed.times, turned.timestamps, atol=1e-4)


def test_a_camera_that_is_turned_sees_the_farther_side_smaller():
    def spans(yaw):
        project = draw("circular", 1, Filming(size=(320, 240), yaw=yaw)).view.project
        return [float(np.ptp(project(np.array([[x, -0.1], [x, 0.1]]))[:, 1])) for x in (-0.2, 0.2)]

    assert spans(0.0)[0] == pytest.approx(spans(0.0)[1])
    # From 2.5 picture widths away a point at x is nearer or farther by x sin(yaw).
    scale = draw("circular", 1, Filming(size=(320, 240))).view.scale
    depths = [1 + np.sin(0.3) * x * scale / (2.5 * 320) for x in (-0.2, 0.2)]
    left, right = spans(0.3)
    assert left / right == pytest.approx(depths[1] / depths[0], rel=0.01)
    assert left > right


def test_a_spring_is_a_zigzag_with_so_many_coils():
    start, end = np.zeros((1, 2)), np.array([[2.0, 0.0]])
    straight = _line_points(start, end, Line((0.0, 0.0), 0, 0.05, (0, 0, 0)))
    np.testing.assert_array_equal(straight, np.stack([start, end]))
    knots = _line_points(start, end, Line((0.0, 0.0), 0, 0.05, (0, 0, 0), coils=4))[:, 0]
    np.testing.assert_allclose(knots[[0, -1]], [[0, 0], [2, 0]])
    np.testing.assert_allclose(np.abs(knots[1:-1, 1]), 0.15)
    assert (np.diff(np.sign(knots[1:-1, 1])) != 0).sum() == 2 * 4 - 1


def test_hands_hold_what_is_thrown_or_dropped_and_tables_are_seen_from_above():
    motions = {kind: draw(kind).motion for kind in KINDS}
    assert {kind for kind, motion in motions.items() if motion.held_body == 0} == {"projectile", "fall"}
    assert all((motion.release > 0) == (motion.held_body is not None) for motion in motions.values())
    assert {kind for kind, motion in motions.items() if motion.from_above} == {"collision", "circular"}


def test_posts_hide_what_moves_behind_them_and_low_light_darkens():
    plain, posted, dark = (draw("spring", 3, noise=0.0, flicker=0.0, shake=0.0, duplicated=0.0, **options)
                           for options in ({}, {"post": 0.2}, {"brightness": 0.25}))  # fmt: skip
    pictures = [next(clip.frames()).astype(float) for clip in (plain, posted, dark)]
    hidden = (pictures[1] == 95.0).all(2)
    path = plain.positions()[:, 0]
    axis = int(np.ptp(path, axis=0).argmax())
    lines = np.flatnonzero(hidden.all(axis))
    assert len(lines) == pytest.approx(0.2 * np.ptp(path[:, axis]), abs=1)
    assert path[:, axis].min() < lines.min()
    assert lines.max() < path[:, axis].max()
    np.testing.assert_array_equal(pictures[0][~hidden], pictures[1][~hidden])
    shaken = draw("spring", 3, noise=0.0, flicker=0.0, shake=6.0, duplicated=0.0, post=0.2)
    edges = [np.flatnonzero((frame == 95).all((axis, 2)))[[0, -1]] for frame in shaken.frames()]
    assert np.ptp(edges, axis=0).min() > 10  # a post stands in the scene
    assert pictures[2].mean() / pictures[0].mean() == pytest.approx(0.25, abs=0.01)
