"""The event-driven billiards against closed forms and laws of mechanics, all to 1e-9."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from physvision.core import DataError
from physvision.datasets.billiards import Table, simulate, simulation

EXACT = {"rtol": 0, "atol": 1e-9}
TIMES = np.linspace(0.0, 10.0, 301)


def table(balls, box=None, masses=None, **options):
    return Table(np.full(balls, 2.0), np.ones(balls) if masses is None else np.asarray(masses, float), box, **options)


def energy(motion, masses):
    return 0.5 * (np.asarray(masses)[:, None] * motion.velocities**2).sum((1, 2))


def momentum(motion, masses):
    return (np.asarray(masses)[:, None] * motion.velocities).sum(1)


@pytest.mark.parametrize("restitution", [1.0, 0.7, 0.0])
def test_one_bounce_off_each_wall(restitution):
    box = (40.0, 30.0)
    for axis, sign in ((0, 1), (0, -1), (1, 1), (1, -1)):
        start, speed = np.array([20.0, 15.0]), 7.0
        velocity = np.zeros(2)
        velocity[axis] = sign * speed
        velocity[1 - axis] = 0.3
        reach = (box[axis] - 2.0 - start[axis]) if sign > 0 else start[axis] - 2.0
        hit = reach / speed
        times = np.linspace(0.0, 1.9 * hit, 50)
        motion = simulate(table(1, box, restitution=restitution), start[None], velocity[None], times)
        expected = start + times[:, None] * velocity
        after = times > hit
        expected[after, axis] = start[axis] + sign * (reach - restitution * speed * (times[after] - hit))
        np.testing.assert_allclose(motion.positions[:, 0], expected, **EXACT)
        speeds = np.where(after, -restitution, 1.0) * sign * speed
        np.testing.assert_allclose(motion.velocities[:, 0, axis], speeds, **EXACT)


@pytest.mark.parametrize(("masses", "restitution"), [((1, 1), 1.0), ((1, 3), 1.0), ((2, 1), 0.6), ((1, 1), 0.0)])
def test_one_head_on_impact(masses, restitution):
    speeds, (m1, m2) = (3.0, -1.0), masses
    hit = (30.0 - 10.0 - 4.0) / (speeds[0] - speeds[1])
    common = (m1 * speeds[0] + m2 * speeds[1]) / (m1 + m2)
    v1 = common - m2 * restitution * (speeds[0] - speeds[1]) / (m1 + m2)
    v2 = common + m1 * restitution * (speeds[0] - speeds[1]) / (m1 + m2)
    start = np.array([[10.0, 5.0], [30.0, 5.0]])
    velocities = np.array([[speeds[0], 0.0], [speeds[1], 0.0]])
    motion = simulate(table(2, masses=masses, restitution=restitution), start, velocities, TIMES)
    after = np.maximum(TIMES - hit, 0.0)
    for ball, (before_speed, after_speed) in enumerate(zip(speeds, (v1, v2), strict=True)):
        expected = start[ball, 0] + before_speed * np.minimum(TIMES, hit) + after_speed * after
        np.testing.assert_allclose(motion.positions[:, ball, 0], expected, **EXACT)
    np.testing.assert_allclose(motion.positions[..., 1], 5.0, **EXACT)
    assert motion.impacts == 1


@pytest.mark.parametrize("offset", [0.0, 1.0, -2.5, 3.9])
@pytest.mark.parametrize("restitution", [1.0, 0.5])
def test_one_oblique_impact(offset, restitution):
    """A ball meets one at rest off its center: what counts is the speed along the line of centers."""
    speed = 4.0
    start = np.array([[0.0, 0.0], [12.0, offset]])
    hit = (12.0 - np.sqrt(16.0 - offset**2)) / speed
    normal = np.array([np.sqrt(16.0 - offset**2), offset]) / 4.0
    given_speed = 0.5 * (1.0 + restitution) * speed * normal[0]
    v1, v2 = np.array([speed, 0.0]) - given_speed * normal, given_speed * normal
    motion = simulate(table(2, restitution=restitution), start, np.array([[speed, 0.0], [0.0, 0.0]]), TIMES)
    after = np.maximum(TIMES - hit, 0.0)[:, None]
    before = np.minimum(TIMES, hit)[:, None]
    np.testing.assert_allclose(motion.positions[:, 0], start[0] + before * [speed, 0.0] + after * v1, **EXACT)
    np.testing.assert_allclose(motion.positions[:, 1], start[1] + after * v2, **EXACT)
    if restitution == 1.0:
        assert abs(v1 @ v2) < 1e-12  # equal balls part at a right angle


def test_a_ball_rolls_to_rest():
    friction, speed = 1.5, 6.0
    heading = np.array([0.6, 0.8])
    motion = simulate(table(1, sliding_deceleration=friction), np.zeros((1, 2)), speed * heading[None], TIMES)
    rolled = np.minimum(TIMES, speed / friction)
    way = speed * rolled - 0.5 * friction * rolled**2
    np.testing.assert_allclose(motion.positions[:, 0], way[:, None] * heading, **EXACT)
    np.testing.assert_allclose(np.linalg.norm(motion.velocities[:, 0], axis=1), speed - friction * rolled, **EXACT)


def test_a_rolling_ball_that_slows_down_hits_another():
    """Both on one line: gap = u t − ½ a t², where the second ball rests and the first one slows down at a."""
    friction, speed, gap = 0.8, 5.0, 9.0
    hit = (speed - np.sqrt(speed**2 - 2 * friction * gap)) / friction
    left = speed - friction * hit
    start = np.array([[0.0, 0.0], [gap + 4.0, 0.0]])
    motion = simulate(table(2, sliding_deceleration=friction), start, np.array([[speed, 0.0], [0.0, 0.0]]), TIMES)
    rolled = np.clip(TIMES - hit, 0.0, left / friction)
    second = start[1, 0] + left * rolled - 0.5 * friction * rolled**2
    np.testing.assert_allclose(motion.positions[:, 1, 0], second, **EXACT)
    # The first ball is left with the least rebound of two balls that could lean on each other, a thousandth a second.
    until = hit >= TIMES
    np.testing.assert_allclose(
        motion.positions[until, 0, 0], speed * TIMES[until] - 0.5 * friction * TIMES[until] ** 2, **EXACT
    )


def test_balls_that_slow_down_alike_come_to_rest_together_and_stay():
    start = np.array([[0.0, 0.0], [0.0, 9.0], [50.0, 0.0]])
    velocities = np.array([[7.0, 3.0], [7.0, 3.0], [0.0, 0.0]])
    motion = simulate(table(3, sliding_deceleration=2.5), start, velocities, TIMES)
    speed = np.linalg.norm(velocities[0])
    expected = start[:2] + velocities[:2] / speed * speed**2 / 5.0
    after = motion.positions[speed / 2.5 < TIMES][:, :2]
    np.testing.assert_allclose(after, np.broadcast_to(expected, after.shape), **EXACT)
    assert not motion.velocities[-1].any()


@pytest.mark.parametrize("restitution", [0.0, 1e-200, 1e-153, 1e-50, 1e-8])
def test_balls_that_crawl_along_a_wall_do_not_pass_through_each_other(restitution):
    """Their accelerations differ by less than numbers can square."""
    start = np.array([[25.2, 36.7], [22.9, 14.8], [26.8, 6.1]])
    velocities = np.array([[-14.7, -7.0], [39.8, 0.33], [36.2, 7.66]])
    options = {"restitution": restitution, "sliding_deceleration": 1.0}
    motion = simulate(table(3, (40.0, 40.0), [2.9, 2.6, 1.6], **options), start, velocities, TIMES)
    gaps = np.linalg.norm(motion.positions - np.roll(motion.positions, 1, 1), axis=2)
    assert gaps.min() >= 4.0 - 1e-9


def test_a_miss_by_a_hair_and_a_hit_by_a_hair():
    for offset, impacts in ((4.0 + 1e-9, 0), (4.0 - 1e-9, 1)):
        start = np.array([[0.0, 0.0], [12.0, offset]])
        motion = simulate(table(2), start, np.array([[4.0, 0.0], [0.0, 0.0]]), TIMES)
        assert motion.impacts == impacts


@st.composite
def scenes(draw, box=True):
    balls = draw(st.integers(1, 6))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cells = random.permutation(16)[:balls]
    start = np.stack([cells % 4, cells // 4], 1) * 10.0 + random.uniform(2.5, 7.5, (balls, 2))
    velocities = random.uniform(-40.0, 40.0, (balls, 2))
    masses = random.uniform(0.5, 4.0, balls)
    return start, velocities, masses, (40.0, 40.0) if box else None


@settings(max_examples=30, deadline=None)
@given(scenes())
def test_energy_is_kept_and_balls_stay_apart_and_inside(scene):
    start, velocities, masses, box = scene
    motion = simulate(table(len(start), box, masses), start, velocities, TIMES)
    energies = energy(motion, masses)
    np.testing.assert_allclose(energies, energies[0], rtol=1e-9)
    assert motion.positions.min() >= 2.0 - 1e-9
    assert motion.positions.max() <= 38.0 + 1e-9
    for first in range(len(start)):
        for second in range(first):
            gaps = np.linalg.norm(motion.positions[:, first] - motion.positions[:, second], axis=1)
            assert gaps.min() >= 4.0 - 1e-9


@settings(max_examples=30, deadline=None)
@given(scenes(box=False), st.floats(0.0, 1.0))
def test_momentum_is_kept_in_free_space(scene, restitution):
    start, velocities, masses, _ = scene
    velocities = 0.1 * velocities - 0.2 * (start - start.mean(0))  # towards each other
    motion = simulate(table(len(start), None, masses, restitution=restitution), start, velocities, TIMES)
    momenta = momentum(motion, masses)
    np.testing.assert_allclose(
        momenta, np.broadcast_to(momenta[0], momenta.shape), atol=1e-9 * np.abs(velocities).max()
    )
    assert (np.diff(energy(motion, masses)) <= 1e-9 * energy(motion, masses)[0]).all()


@settings(max_examples=4, deadline=None)
@given(scenes(), st.floats(0.0, 1.0), st.floats(2.0, 20.0))
def test_rolling_balls_lose_energy_stay_apart_and_come_to_rest(scene, restitution, friction):
    start, velocities, masses, box = scene
    options = {"restitution": restitution, "sliding_deceleration": friction}
    until = np.linspace(0.0, 60.0 / friction + 1.0, 200)
    motion = simulate(table(len(start), box, masses, **options), start, velocities, until)
    # Balls that lean on each other part at 1e-3 a second: up to m (1e-3)² / 8 an impact is added.
    added = 1e-6 * masses.max() * (motion.impacts + 1)
    assert (np.diff(energy(motion, masses)) <= added).all()
    assert np.abs(motion.velocities[-1]).max() <= 60.0
    for first in range(len(start)):
        for second in range(first):
            gaps = np.linalg.norm(motion.positions[:, first] - motion.positions[:, second], axis=1)
            assert gaps.min() >= 4.0 - 1e-7


def test_elastic_motion_runs_backwards_to_where_it_began():
    random = np.random.default_rng(5)
    start = np.array([[8.0, 8.0], [30.0, 10.0], [18.0, 30.0]])
    velocities = random.uniform(-15, 15, (3, 2))
    forth = simulate(table(3, (40.0, 40.0)), start, velocities, np.array([0.0, 8.0]))
    back = simulate(table(3, (40.0, 40.0)), forth.positions[-1], -forth.velocities[-1], np.array([0.0, 8.0]))
    assert forth.impacts >= 5
    np.testing.assert_allclose(back.positions[-1], start, **EXACT)


def test_states_do_not_depend_on_which_times_are_asked():
    start = np.array([[8.0, 8.0], [30.0, 10.0], [18.0, 30.0]])
    velocities = np.array([[9.0, 14.0], [-11.0, 7.0], [3.0, -16.0]])
    dense = simulate(table(3, (40.0, 40.0)), start, velocities, TIMES)
    sparse = simulate(table(3, (40.0, 40.0)), start, velocities, TIMES[::50])
    np.testing.assert_array_equal(dense.positions[::50], sparse.positions)


def test_endless_impacts_raise_instead_of_hanging(monkeypatch):
    monkeypatch.setattr(simulation, "_MAX_IMPACTS", 10)
    with pytest.raises(DataError, match=r"more than 10 impacts by .* s: the balls collapse"):
        simulate(table(1, (5.0, 5.0)), np.full((1, 2), 2.5), np.array([[9.0, 7.0]]), TIMES)
