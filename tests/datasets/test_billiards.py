"""Frames of billiards against their states, and recipes that make no sense."""

import math

import numpy as np
import pytest

from physvision.core import DtypeError, InputError
from physvision.datasets import BilliardsRecipe
from physvision.datasets.billiards.drawing import disc_coverage, draw_discs

CENTERS = np.arange(64) + 0.5


def centroids(channel):
    """Where the light of one channel lies in each frame; x, y in pixels, (frames, 2)."""
    light = channel.astype(float)
    total = light.sum((1, 2))
    return np.stack([(light.sum(1) @ CENTERS) / total, (light.sum(2) @ CENTERS) / total], 1)


@pytest.mark.parametrize("number", range(5))
def test_every_balls_color_lies_where_its_state_says(number):
    trial = BilliardsRecipe().make("train", number)
    for ball in range(3):
        offset = centroids(trial["frames"][..., ball]) - trial["q"][:, ball, :2]
        # 8-bit levels round by up to half a level in some thirty pixels at the edge.
        assert np.abs(offset).max() < 0.02


def test_many_balls_of_any_hue_lie_where_their_states_say():
    recipe = BilliardsRecipe(balls=6, background=(0.2, 0.3, 0.4), frames=60)
    trial = recipe.make("train", 0)
    hues = np.array(recipe.ball_colors()) - recipe.background
    for ball in range(6):
        # The share of each pixel that is of this hue, the balls being apart by more than their edges.
        apart = np.delete(trial["q"][..., :2], ball, 1) - trial["q"][:, ball, None, :2]
        alone = np.linalg.norm(apart, axis=-1).min(1) > 9.0
        rows, columns = np.indices((64, 64)) + 0.5
        near = np.hypot(columns - trial["q"][:, ball, 0, None, None], rows - trial["q"][:, ball, 1, None, None]) < 4.5
        fraction = (trial["frames"] / 255.0 - recipe.background) @ hues[ball] / (hues[ball] @ hues[ball]) * near
        assert alone.sum() > 10
        assert np.abs(centroids(fraction[alone]) - trial["q"][alone, ball, :2]).max() < 0.05


def test_coverage_is_the_exact_area():
    random = np.random.default_rng(0)
    centers = random.uniform(20, 30, (200, 2))
    coverage, rows, columns = disc_coverage(centers, 3.2, 9)
    np.testing.assert_allclose(coverage.sum((1, 2)), math.pi * 3.2**2, rtol=1e-12)
    # One pixel against a fine grid of points, whose error is about one point in the grid's perimeter.
    points = (np.arange(400) + 0.5) / 400
    for frame in range(5):
        for row, column in ((1, 4), (4, 8), (2, 2), (4, 4)):
            y = rows[frame, row] + points[:, None] - centers[frame, 1]
            x = columns[frame, column] + points[None] - centers[frame, 0]
            assert abs((x**2 + y**2 <= 3.2**2).mean() - coverage[frame, row, column]) < 4 / 400


def test_discs_beyond_the_border_are_cut_off():
    canvas = np.zeros((1, 20, 20, 1), np.uint8)
    draw_discs(canvas, np.array([[[0.0, 10.0]]]), np.array([4.0]), np.array([[1.0]]))
    assert canvas.sum() / 255 == pytest.approx(0.5 * math.pi * 16, rel=0.01)
    draw_discs(canvas, np.array([[[-50.0, 10.0]]]), np.array([4.0]), np.array([[1.0]]))
    assert canvas[:, :, 5:].sum() == 0


def test_touching_balls_share_their_pixels():
    canvas = np.full((1, 20, 20, 3), 100, np.uint8)
    white = np.ones((2, 3))
    draw_discs(canvas, np.array([[[6.3, 10.2], [12.3, 10.2]]]), np.array([3.0, 3.0]), white)
    light = (canvas[..., 0].astype(float) - 100) / 155
    assert light.sum() == pytest.approx(2 * math.pi * 9, rel=0.01)


def test_initial_speeds_and_masses_are_in_their_ranges():
    recipe = BilliardsRecipe(balls=3, masses=(1.0, 4.0), frames=1)
    trials = [recipe.make("train", number) for number in range(200)]
    speeds = np.linalg.norm(np.stack([trial["v"][0, :, :2] for trial in trials]), axis=-1) / 30
    assert 0.3 <= speeds.min() < 0.35
    assert 1.45 < speeds.max() <= 1.5
    masses = np.stack([trial["mass"][0] for trial in trials])
    assert 1.0 <= masses.min() < 1.2
    assert 3.8 < masses.max() <= 4.0


def test_velocities_are_the_rates_of_positions():
    trial = BilliardsRecipe(balls=1).make("train", 3)
    moved = np.diff(trial["q"][:, 0, :2], axis=0) * 30
    free = (trial["v"][1:, 0, :2] == trial["v"][:-1, 0, :2]).all(1)
    assert free.sum() > 250
    np.testing.assert_allclose(moved[free], trial["v"][1:][free, 0, :2], atol=1e-9)


def test_noise_has_its_deviation_and_shake_moves_the_picture():
    plain = BilliardsRecipe(frames=20, background=(0.5, 0.5, 0.5)).make("train", 0)
    noisy = BilliardsRecipe(frames=20, background=(0.5, 0.5, 0.5), noise=0.04).make("train", 0)
    assert np.array_equal(plain["q"], noisy["q"])
    background = (plain["frames"] == 128).all(-1)
    deviation = (noisy["frames"][background] / 255.0).std()
    # Rounding to 8 bits adds 1/12 of a level squared.
    assert deviation == pytest.approx(math.sqrt(0.04**2 + 1 / 12 / 255**2), rel=0.02)
    shaken = BilliardsRecipe(balls=1, frames=30, shake=0.5, colors=((1.0, 1.0, 1.0),)).make("train", 0)
    inside = np.abs(shaken["q"][:, 0, :2] - 32).max(1) < 25
    observed = centroids(shaken["frames"][..., 0])[inside]
    np.testing.assert_allclose(observed, (shaken["q"][:, 0, :2] + shaken["camera"])[inside], atol=0.02)
    assert shaken["camera"].std() == pytest.approx(0.5, rel=0.3)


def test_texture_moves_with_the_camera():
    trial = BilliardsRecipe(balls=1, frames=2, texture=0.5, shake=3.0).make("train", 1)
    still = BilliardsRecipe(balls=1, frames=2, texture=0.5).make("train", 1)
    assert np.array_equal(still["frames"][0, :5, -5:], still["frames"][1, :5, -5:])
    assert still["frames"].std() > 10
    assert not np.array_equal(trial["frames"][0, :5, -5:], trial["frames"][1, :5, -5:])


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        ({"radius": math.nan}, InputError, "radius: expected a finite number above 0, got nan"),
        ({"fps": math.inf}, InputError, "fps"),
        ({"restitution": 1.1}, InputError, "restitution: expected a finite number of at least 0 and at most 1"),
        ({"speed": (2.0, 1.0)}, InputError, r"speed\[1\]"),
        ({"speed": (0.0, math.nan)}, InputError, r"speed\[1\]"),
        ({"masses": (0.0, 1.0)}, InputError, r"masses\[0\]"),
        ({"trials": 0}, InputError, "trials: expected an integer from 1 to 10,000,000"),
        ({"balls": 0}, InputError, "balls"),
        ({"seed": -1}, InputError, "seed"),
        ({"size": 6}, InputError, "too small for 3 balls"),
        ({"balls": 60}, InputError, "too small for 60 balls of radius 3.2 .they cover 47% of it"),
        ({"colors": ((1.0, 0.0, 0.0),)}, InputError, "one for each of 3 balls"),
        ({"background": (0.0, 2.0, 0.0)}, InputError, r"background\[1\]"),
        ({"noise": -0.1}, InputError, "noise"),
    ],
)
def test_values_that_make_no_sense_raise(values, error, match):
    with pytest.raises(error, match=match):
        BilliardsRecipe(**values)


def test_text_is_no_number():
    recipe = BilliardsRecipe()
    object.__setattr__(recipe, "radius", "3.2")
    with pytest.raises(DtypeError, match=r"radius: expected a number, got '3\.2'"):
        recipe.check()
