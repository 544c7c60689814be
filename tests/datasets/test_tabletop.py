"""Laws of the tabletop's motion, and frames, masks and poses against each other and against another camera."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false

import math

import numpy as np
import pytest
import torch

from physvision.camera import Camera, RayCaster
from physvision.core import InputError
from physvision.core.shapes import Sphere
from physvision.datasets import Dataset, LabelSettings, TabletopRecipe, Windows, WindowShape, generate
from physvision.datasets.billiards.rolling import random_orientations, rotation_matrices
from physvision.datasets.billiards.simulation import Table, simulate
from physvision.datasets.rendering import MOMENTS, Sensor
from physvision.datasets.rendering.cameras import project
from physvision.datasets.tabletop.recipe import place_balls
from physvision.datasets.tabletop.rendering import TabletopRenderer

BOX = np.array([50.0, 44.0])
# Frames without anything that hides where the balls are.
PLAIN = {"contrast": (0.0, 0.0), "clutter": 0, "unevenness": 0.0, "flicker": 0.0, "noise": (0.0, 0.0), "quality": None}


def random_table(seed, balls=4, **options):
    """Table with walls, start, velocities and orientations of its balls."""
    random = np.random.default_rng(seed)
    values = {"restitution": 0.9, "wall_restitution": 0.75, "sliding_deceleration": 6.0, **options}
    table = Table(np.full(balls, 3.0), random.uniform(0.5, 2.0, balls), tuple(BOX), **values)
    start = place_balls(balls, 3.0, BOX, random)
    return table, start, random.uniform(-40.0, 40.0, (balls, 2)), random_orientations(balls, random)


def intervals_without_impacts(motion):
    return (np.diff(motion.impact_counts, axis=0) == 0).all((1, 2))


@pytest.mark.parametrize("seed", range(5))
def test_energy_falls_by_the_work_of_friction(seed):
    """Between impacts a ball loses m a s on a path of length s, also where it stops on the way."""
    table, start, velocities, _ = random_table(seed)
    motion = simulate(table, start, velocities, np.linspace(0.0, 6.0, 601))
    energies = 0.5 * table.masses * (motion.velocities**2).sum(-1)
    paths = np.linalg.norm(np.diff(motion.positions, axis=0), axis=-1)
    free = intervals_without_impacts(motion)
    assert free.sum() > 400
    work = table.masses * table.sliding_deceleration * paths
    np.testing.assert_allclose(-np.diff(energies, axis=0)[free], work[free], atol=1e-9)
    assert (np.diff(energies.sum(1)) <= 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_moving_balls_slow_down_uniformly(seed):
    table, start, velocities, _ = random_table(seed)
    motion = simulate(table, start, velocities, np.linspace(0.0, 6.0, 601))
    speeds = np.linalg.norm(motion.velocities, axis=-1)
    moving = intervals_without_impacts(motion)[:, None] & (speeds[1:] > 0)
    np.testing.assert_allclose(np.diff(speeds, axis=0)[moving], -table.sliding_deceleration * 0.01, atol=1e-9)
    # Paths between impacts are straight.
    (x, y), (dx, dy) = (np.moveaxis(a, -1, 0) for a in (motion.velocities[:-1], np.diff(motion.positions, axis=0)))
    crossed = x * dy - y * dx
    np.testing.assert_allclose(crossed[intervals_without_impacts(motion)], 0.0, atol=1e-9)


def states_about(table, start, velocities, high):
    """Motion at both ends of an interval from 0 to `high` that is halved until it holds one impact in a nanosecond."""
    low = 0.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        changed = simulate(table, start, velocities, np.array([middle])).impact_counts.any()
        low, high = (low, middle) if changed else (middle, high)
    return simulate(table, start, velocities, np.array([low, high]))


@pytest.mark.parametrize("seed", range(4))
def test_impacts_keep_momentum_and_have_their_restitution(seed):
    table, start, velocities, _ = random_table(seed)
    times = np.linspace(0.0, 3.0, 301)
    motion = simulate(table, start, velocities, times)
    with_balls = with_walls = 0
    for index in np.flatnonzero(~intervals_without_impacts(motion)):
        states = states_about(table, motion.positions[index], motion.velocities[index], times[1])
        counts = np.diff(states.impact_counts, axis=0)[0]
        before, after = states.velocities
        # Friction changes a velocity by at most a · 1 ns between both states.
        tolerance = 1e-7
        if counts[:, 0].sum() == 2 and counts[:, 1].sum() == 0:
            first, second = np.flatnonzero(counts[:, 0])
            np.testing.assert_allclose(table.masses @ after, table.masses @ before, atol=tolerance)
            normal = states.positions[0, second] - states.positions[0, first]
            normal /= np.linalg.norm(normal)
            approach, rebound = (before[first] - before[second]) @ normal, (after[second] - after[first]) @ normal
            assert rebound == pytest.approx(0.9 * approach, abs=1e-6 * abs(approach) + tolerance)
            with_balls += 1
        elif counts[:, 1].sum() == 1 and counts[:, 0].sum() == 0:
            ball = int(np.flatnonzero(counts[:, 1])[0])
            position = states.positions[0, ball]
            axis = int(np.minimum(np.abs(position - 3.0), np.abs(BOX - 3.0 - position)).argmin())
            assert after[ball, axis] == pytest.approx(-0.75 * before[ball, axis], abs=tolerance)
            assert after[ball, 1 - axis] == pytest.approx(before[ball, 1 - axis], abs=tolerance)
            with_walls += 1
    assert with_balls >= 1
    assert with_walls >= 2


def test_elastic_motion_runs_backwards_with_the_turning_of_its_balls():
    table, start, velocities, orientations = random_table(
        3, restitution=1.0, wall_restitution=1.0, sliding_deceleration=0.0
    )
    until = np.array([0.0, 1.5])
    forth = simulate(table, start, velocities, until, orientations)
    back = simulate(table, forth.positions[-1], -forth.velocities[-1], until, forth.orientations[-1])
    assert forth.impacts >= 4
    np.testing.assert_allclose(back.positions[-1], start, atol=1e-9)
    np.testing.assert_allclose(back.orientations[-1], orientations, atol=1e-9)


def stepped(table, start, velocities, until, dt):
    """The same motion by small steps: impacts are noticed at the end of a step, where balls overlap and approach."""
    p, v = start.copy(), velocities.copy()
    for _ in range(round(until / dt)):
        speed = np.linalg.norm(v, axis=1, keepdims=True)
        slower = v * np.maximum(1.0 - table.sliding_deceleration * dt / np.maximum(speed, 1e-12), 0.0)
        p, v = p + 0.5 * dt * (v + slower), slower
        out = ((p < table.radii[:, None]) & (v < 0)) | ((p > BOX - table.radii[:, None]) & (v > 0))
        v = np.where(out, -table.wall_restitution * v, v)
        for first, second in zip(*np.triu_indices(len(p), 1), strict=True):
            normal = p[second] - p[first]
            distance = math.hypot(*normal)
            approach = (v[first] - v[second]) @ normal / distance
            if distance < 6.0 and approach > 0:
                m = table.masses[first], table.masses[second]
                impulse = (1.0 + table.restitution) * approach * m[0] * m[1] / (m[0] + m[1]) * normal / distance
                v[first] -= impulse / m[0]
                v[second] += impulse / m[1]
    return p


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_steps_converge_to_the_exact_motion(seed):
    """An impact is noticed late by up to a step, so that the error falls in proportion to the step."""
    table, start, velocities, _ = random_table(seed)
    exact = simulate(table, start, velocities, np.array([0.0, 0.8]))
    assert exact.impacts >= 3
    errors = [np.abs(stepped(table, start, velocities, 0.8, dt) - exact.positions[-1]).max() for dt in (1e-3, 5e-5)]
    assert errors[1] < 0.02
    assert errors[1] < 0.25 * errors[0]


def test_balls_roll_without_slipping():
    """The point of contact is at rest: v + ω × (0, 0, R) = 0, with ω from orientations a short time apart."""
    table, start, velocities, orientations = random_table(0)
    step = 1e-5
    times = np.linspace(0.0, 3.0, 61)
    pairs = np.stack([times, times + step], 1).ravel()
    motion = simulate(table, start, velocities, pairs, orientations)
    turns = rotation_matrices(motion.orientations).reshape(61, 2, 4, 3, 3)
    relative = turns[:, 1] @ np.swapaxes(turns[:, 0], -1, -2)
    omega = np.stack([relative[..., 2, 1], relative[..., 0, 2], relative[..., 1, 0]], -1) / step
    moved = np.diff(motion.positions.reshape(61, 2, 4, 2), axis=1)[:, 0] / step
    slip = moved + np.cross(omega, [0.0, 0.0, 3.0])[..., :2]
    # sin θ / θ deviates by θ² / 6 with θ < 60 · 1e-5 / 3.
    np.testing.assert_allclose(slip, 0.0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(motion.orientations, axis=-1), 1.0, atol=1e-12)


def test_a_whole_turn_takes_the_circumference():
    table = Table(np.array([2.0]), np.ones(1), None)
    start = random_orientations(1, np.random.default_rng(0))
    motion = simulate(table, np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.array([0.0, 0.8 * math.pi]), start)
    np.testing.assert_allclose(rotation_matrices(motion.orientations[1]), rotation_matrices(start), atol=1e-12)


def test_trials_hold_what_their_ranges_allow():
    recipe = TabletopRecipe(frames=2)
    trials = [recipe.make("train", number) for number in range(60)]
    assert {int(trial["present"][0].sum()) for trial in trials} == {1, 2, 3, 4, 5}
    for trial in trials:
        present = trial["present"][0] > 0
        positions, walls, radius = trial["q"][:, present, :2], trial["walls"][0], trial["radius"][0, 0]
        assert 2.5 <= radius <= 6.0
        assert (positions >= walls[:2] + radius - 1e-9).all()
        assert (positions <= walls[2:] - radius + 1e-9).all()
        assert not trial["q"][:, ~present].any()
        assert not trial["v"][:, ~present].any()
        assert (trial["orientation"][:, ~present] == [1.0, 0.0, 0.0, 0.0]).all()
        assert set(np.unique(trial["masks"])) <= {0, *(np.flatnonzero(present) + 1)}
        for name, low, high in (
            ("restitution", 0.8, 0.95),
            ("wall_restitution", 0.7, 0.9),
            ("sliding_deceleration", 2, 10),
        ):
            assert low <= trial[name][0] <= high
        assert ((trial["mass"] >= 0.5) & (trial["mass"] <= 2.0)).all()
    masses = np.array([trial["mass"][0, 0] for trial in trials])
    radii = np.array([trial["radius"][0, 0] for trial in trials])
    # Correlation of 60 independent pairs: a standard deviation of 0.13.
    assert abs(np.corrcoef(masses, radii)[0, 1]) < 0.5


@pytest.mark.parametrize("number", range(4))
def test_masks_are_what_the_ray_caster_sees_at_the_stored_pose(number):
    recipe = TabletopRecipe(frames=10)
    trial = recipe.make("train", number)
    balls = np.flatnonzero(trial["present"][0])
    radius = float(trial["radius"][0, 0])
    for frame in (0, 9):
        camera = Camera(
            torch.tensor(recipe.frame_format.intrinsics, dtype=torch.float64),
            torch.from_numpy(trial["extrinsics"][frame]),
            recipe.size,
            recipe.size,
        )
        poses = torch.eye(4, dtype=torch.float64).repeat(1, len(balls), 1, 1)
        poses[0, :, :2, 3] = torch.from_numpy(trial["q"][frame, balls, :2])
        poses[0, :, 2, 3] = -radius
        for row, ball in enumerate(balls):
            gray = RayCaster(camera, [Sphere(radius)])(poses[:, row : row + 1])[0, 0].numpy()
            observed = gray > 0.5 * gray.max()
            mask = trial["masks"][frame] == ball + 1
            rest = (trial["masks"][frame] > 0) & ~mask
            assert (observed ^ mask)[~rest].sum() <= 0.1 * observed.sum()


@pytest.mark.parametrize("number", range(6))
def test_light_lies_where_states_and_poses_say(number):
    """White balls on black: the centroid of a ball's light is its projected center, averaged over the exposure."""
    recipe = TabletopRecipe(frames=6, balls=(1, 1), exposure=(0.0, 0.0), **PLAIN)
    random = np.random.default_rng(number)
    times, radius = np.arange(6) / 30, 4.0
    looks = recipe._looks(1, radius, np.array([6.0, 6.0, 58.0, 58.0]), times, random)
    lighting = type(looks.lighting)(**{**vars(looks.lighting), "ambient": 1.0, "gloss": 0.0, "shadow": 0.0})
    texture = type(looks.textures[0])("marble", np.ones((2, 3), np.float32), np.zeros((3, 1), np.float32), 0.0)
    black = np.zeros_like(looks.surface)
    looks = type(looks)(
        **{**vars(looks), "surface": black, "lighting": lighting, "textures": [texture], "sensor": Sensor(0.0, None)}
    )
    positions = random.uniform(15.0, 49.0, (6, 1, 1, 2)).repeat(len(MOMENTS), 1)
    frames = TabletopRenderer(looks, 64, 64, positions, np.ones((6, 4, 1, 4)) / 2).frames(times, random)
    light = frames[..., 0] / 255.0
    rows, columns = np.indices((64, 64))
    centroids = np.stack([(light * grid).sum((1, 2)) / light.sum((1, 2)) for grid in (columns, rows)], -1)
    centers = np.concatenate([positions[:, 0, 0], np.full((6, 1), -radius)], 1)
    expected = project(recipe.intrinsics, looks.camera.extrinsics, centers[:, None])[:, 0]
    # The outline of a sphere is an ellipse, whose middle is farther from the axis by a fraction (R/Z)² of its distance;
    # sixteen rays a pixel over some fifty pixels of outline add their noise.
    np.testing.assert_allclose(centroids, expected[:, :2], atol=0.05)
    area = math.pi * (radius * recipe.intrinsics[0, 0] / expected[:, 2]) ** 2
    np.testing.assert_allclose(light.sum((1, 2)), area, rtol=0.04)


def test_exposure_blurs_along_the_motion():
    sharp, blurred = (
        TabletopRecipe(frames=3, balls=(1, 1), speed=(2.0, 2.0), exposure=(value, value), **PLAIN).make("train", 2)
        for value in (0.0, 1.0)
    )
    assert (
        np.abs(np.diff(sharp["frames"].astype(float), axis=2)).max()
        > np.abs(np.diff(blurred["frames"].astype(float), axis=2)).mean()
    )
    assert not np.array_equal(sharp["frames"], blurred["frames"])


def test_texture_turns_with_the_ball():
    """The color at a ball's center is that of its texture in the direction of the camera, in the ball's own frame."""
    recipe = TabletopRecipe(frames=30, balls=(1, 1), tilt=0.0, roll=0.0, shake=0.0, exposure=(0.0, 0.0), **PLAIN)
    for number in range(8):
        key = np.random.SeedSequence(recipe.seed, spawn_key=(0, number))
        trial, looks = recipe.trial(np.random.default_rng(key)), []
        original = TabletopRecipe._looks

        def remember(self, *arguments, original=original, looks=looks):
            looks.append(original(self, *arguments))
            return looks[-1]

        TabletopRecipe._looks = remember
        try:
            recipe.trial(np.random.default_rng(key))
        finally:
            TabletopRecipe._looks = original
        texture, lighting = looks[0].textures[0], looks[0].lighting
        if texture.kind == "marble":
            continue
        offset = texture.colors[1] - texture.colors[0]
        agreed = []
        for frame in range(30):
            x, y = trial["q"][frame, 0, :2]
            toward = rotation_matrices(trial["orientation"][frame, 0]).T @ [0.0, 0.0, -1.0]
            color = trial["frames"][frame, int(y), int(x)] / 255.0
            mixed = (color - texture.colors[0]) @ offset / (offset @ offset) > 0.5
            agreed.append(mixed == (texture.evaluate(toward)[0] == texture.colors[1][0]))
        assert lighting.ambient > 0
        assert np.mean(agreed) > 0.7


def test_samples_carry_poses_masks_and_given_properties(tmp_path):
    recipe = TabletopRecipe(trials=10, frames=16, size=48, radius=(2.5, 3.0), wall_margin=(2.0, 4.0))
    out = generate(recipe, tmp_path / "tabletop", workers=1, progress=False)
    dataset = Dataset(out)
    assert np.array_equal(dataset.frame_format.intrinsics, recipe.intrinsics)
    windows = Windows(dataset, WindowShape(3, 10), LabelSettings(0.5), given_properties=["walls"], masks=True)
    batch = windows.__getitems__(list(range(len(windows))))
    for row, (trial, start) in enumerate(zip(batch.trial.tolist(), batch.start.tolist(), strict=True)):
        result, rows = recipe.make("train", trial), slice(start, start + 13)
        np.testing.assert_allclose(batch.extrinsics[row], result["extrinsics"][rows], rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(batch.properties["walls"][row], result["walls"][0], rtol=1e-6)
        if batch.labeled[row]:
            np.testing.assert_array_equal(batch.masks[row], result["masks"][rows])
            np.testing.assert_allclose(batch.properties["mass"][row], result["mass"][0], rtol=1e-6)
        else:
            assert (batch.masks[row] == 255).all()
            assert batch.properties["mass"][row].isnan().all()
            assert batch.properties["present"][row].isnan().all()
    assert batch.masks.dtype == torch.uint8
    assert windows[0].masks.shape == (1, 13, 48, 48)


def test_workers_and_interruptions_make_the_same_bytes(tmp_path):
    recipe = TabletopRecipe(trials=10, frames=3, size=32, radius=(2.0, 2.0), balls=(1, 2), wall_margin=(1.0, 3.0))
    outs = [generate(recipe, tmp_path / str(workers), workers=workers, progress=False) for workers in (1, 2)]
    contents = [{entry.name: entry.read_bytes() for entry in out.iterdir()} for out in outs]
    assert contents[0] == contents[1]
    (outs[0] / "train-00000.arrow").unlink()
    generate(recipe, outs[0], workers=1, progress=False)
    assert {entry.name: entry.read_bytes() for entry in outs[0].iterdir()} == contents[0]


def test_marks_ring_the_balls():
    recipe = TabletopRecipe(frames=3)
    trial = recipe.make("train", 3)
    marks = recipe.marks({name: trial[name][2] for name in recipe.fields})
    for mark in marks[::2]:
        column, row = (int(place) for place in mark.center)
        assert trial["masks"][2][row, column] > 0
        assert math.pi * mark.radius**2 == pytest.approx(
            (trial["masks"][2] == trial["masks"][2][row, column]).sum(), rel=0.3
        )


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"balls": (0, 3)}, r"balls\[0\]: expected a finite number of at least 1"),
        ({"balls": (3, 2)}, r"balls\[1\]"),
        ({"balls": (1, 40)}, "too small for 40 balls"),
        ({"quality": (0, 50)}, "quality"),
        ({"restitution": (0.5, 1.5)}, r"restitution\[1\]: expected .* at most 1, got 1.5"),
        ({"radius": (0.0, 3.0)}, r"radius\[0\]"),
        ({"tilt": 60.0}, "tilt"),
        ({"size": 8}, "size"),
    ],
)
def test_bad_recipes_raise(values, match):
    with pytest.raises(InputError, match=match):
        TabletopRecipe(**values)
