"""What is behind things that rest for long, or whose shadows pass, is what is seen there at some time."""

import numpy as np

from physvision.perception.background import Background, find_enhancement
from physvision.perception.camera_jitter import JitterEstimator
from physvision.perception.settings import BackgroundSettings, JitterSettings

WALL, GREEN, DARK_GREEN = (170, 160, 165), (10, 135, 35), (10, 105, 28)
SAMPLES = 48


def _painted(random, rectangles):
    """A frame with rectangles on a wall that hardly has a texture: rows, columns and a color each."""
    frame = np.broadcast_to(np.array(WALL), (120, 160, 3)) + random.normal(0, 1.5, (120, 160, 1))
    for rows, columns, color in rectangles:
        frame[slice(*rows), slice(*columns)] = color
    return np.clip(frame, 0, 255).astype(np.uint8)


def test_what_hardly_leaves_its_place_is_not_part_of_what_is_behind():
    """A block of two colors rests for half of the time, then turns and goes by half its length."""
    random = np.random.default_rng(0)
    frames = []
    for sample in range(SAMPLES):
        left = 60 + max(0, sample - SAMPLES // 2)
        above, below = (GREEN, DARK_GREEN) if sample < 36 else (DARK_GREEN, GREEN)
        halves = [((40, 60), (left, left + 40), above), ((60, 80), (left, left + 40), below)]
        frames.append(_painted(random, halves))
    picture = Background(np.stack(frames)).image
    assert np.abs(picture[40:80, 60:125] - WALL).max() < 30


def test_a_striped_block_that_comes_to_rest_is_not_part_of_what_is_behind():
    """A striped block slides before a dark wall onto a light table, and rests there for two thirds of the clip."""
    random = np.random.default_rng(0)
    wall, table, stripes = (35, 80, 60), (235, 215, 150), ((70, 60, 95), (200, 90, 110))
    frames = []
    for sample in range(SAMPLES):
        left = max(60, 150 - 6 * sample)
        block = [((50 + 4 * row, 54 + 4 * row), (left, left + 40), stripes[row % 2]) for row in range(6)]
        frames.append(_painted(random, [((0, 60), (0, 160), wall), ((60, 120), (0, 160), table), *block]))
    picture = Background(np.stack(frames)).image
    assert np.abs(picture[45:60, 50:110] - wall).max() < 30
    assert np.abs(picture[60:80, 50:110] - table).max() < 30


def test_a_shadow_beside_a_dark_bar_leaves_the_wall_as_it_is():
    """A block slides along a dark bar and its shadow along the wall: around the place there is only the bar."""
    random = np.random.default_rng(0)
    bar, shadow = (112, 118, 120), tuple(0.9 * level for level in WALL)
    frames = []
    for sample in range(SAMPLES):
        left = 10 + 2 * sample
        block = [((70, 90), (left, left + 24), (115, 22, 120)), ((44, 70), (left - 6, left + 30), shadow)]
        frames.append(_painted(random, [((90, 120), (0, 160), bar), *block]))
    picture = Background(np.stack(frames)).image
    assert np.abs(picture[72:88, 10:125] - WALL).max(-1).mean() < 5


def test_a_picture_without_edges_tells_of_no_shift():
    even = np.full((120, 160, 3), 128, np.uint8)
    assert JitterEstimator(even, JitterSettings()).estimate(even) is None


def test_a_frame_that_tells_of_no_shift_is_where_the_last_one_was():
    random = np.random.default_rng(0)
    wide = np.repeat(np.kron(random.integers(60, 200, (18, 24, 1)), np.ones((8, 8, 1))), 3, 2).astype(np.uint8)
    frames = [wide[8 : 8 + 120, x : x + 160] for x in (8, 9, 10, 9, 8, 7, 6, 7) for _ in range(3)]
    background = Background(np.stack(frames))
    assert background.has_jitter
    before = background.estimate_alignment(frames[-1])
    assert np.abs(before.shift).max() > 0.3
    upside_down = background.estimate_alignment(frames[-1][::-1], before)
    np.testing.assert_array_equal(upside_down.shift, before.shift)


def test_the_light_is_not_told_by_a_bright_thing_before_a_dark_wall():
    """A block rests for most of the time before a wall on which no green is to be seen, then leaves."""
    random = np.random.default_rng(0)
    wall, frames = np.array([40, 8, 30]), []
    for sample in range(SAMPLES):
        frame = np.broadcast_to(wall, (240, 320, 3)) + random.normal(0, 1.5, (240, 320, 1))
        left = 80 + 6 * max(0, sample - 30)
        frame[80:120, left : left + 45] = (30, 150, 40)
        frames.append(np.clip(frame, 0, 255).astype(np.uint8))
    background = Background(np.stack(frames))
    np.testing.assert_array_less(np.abs(background.estimate_alignment(frames[-1]).gains - 1), 0.1)
    assert np.abs(background.image[140:220] - wall).max(-1).mean() < 3


def test_single_pixels_of_what_moves_are_not_left_behind():
    """A large disc of two colors turns and moves by less than its size before a wall with a grain.

    Of the grain no level is farther from the usual one than a thing's shades from its color.
    """
    random = np.random.default_rng(0)
    grain = np.array(WALL) + random.normal(0, 12, (120, 160, 1)).clip(-36, 36)
    rows, columns = np.mgrid[:120, :160]
    frames = []
    for sample in range(SAMPLES):
        middle = 60 + 1.5 * max(0, sample - 24)
        x, y = columns - middle, rows - 60
        side = x * np.cos(sample / 9) + y * np.sin(sample / 9) > 0
        frame = np.where((np.hypot(x, y) < 26)[..., None], np.where(side[..., None], GREEN, DARK_GREEN), grain)
        frames.append(np.clip(frame + random.normal(0, 3, frame.shape), 0, 255).astype(np.uint8))
    picture = Background(np.stack(frames)).image
    assert (np.abs(picture - grain).max(-1) < 60).all()


def test_what_is_thin_and_stands_still_before_a_flicker_stays():
    """A disc swings behind a post of its own color, which is rare among what is around it."""
    random = np.random.default_rng(0)
    rows, columns = np.mgrid[:120, :160]
    post = np.abs(columns - 80) < 4
    frames = []
    for sample in range(SAMPLES):
        middle = 80 + 24 * np.sin(1.3 * sample)
        frame = np.broadcast_to(np.array(WALL, float), (120, 160, 3)).copy()
        frame[np.hypot(columns - middle, rows - 60) < 14] = DARK_GREEN
        frame[post] = np.array(DARK_GREEN) + 40 * (sample % 4 == 0)  # light flickers on it
        frames.append(np.clip(frame + random.normal(0, 3, frame.shape), 0, 255).astype(np.uint8))
    picture = Background(np.stack(frames)).image
    assert (np.abs(picture[post] - DARK_GREEN).max(-1) < 60).all()


def test_light_that_flickers_is_no_noise():
    """By light that changes by a tenth, a dark picture is brightened, and smoothed as far as its noise needs it."""
    random = np.random.default_rng(0)
    levels = random.uniform(20, 50, (96, 128, 1)) * np.ones(3)
    gains = 1 + 0.1 * random.normal(size=(SAMPLES, 1, 1, 1))
    samples = (gains * levels).clip(0, 255)
    settings = BackgroundSettings()
    assert find_enhancement(samples.round().astype(np.uint8), settings) == (settings.smoothing[0], settings.max_gain)
    noisy = random.normal(samples, 3).clip(0, 255).round().astype(np.uint8)
    enhancement = find_enhancement(noisy, settings)
    assert enhancement is not None
    assert enhancement[0] > settings.smoothing[0]
