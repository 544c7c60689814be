"""What is behind things that rest for long, or whose shadows pass, is what is seen there at some time."""

import numpy as np

from physvision.perception.background import Background
from physvision.perception.shake import Shake

WALL, GREEN, DARK_GREEN = (170, 160, 165), (10, 135, 35), (10, 105, 28)
SAMPLES = 48


def _painted(random, rectangles):
    """A frame with rectangles on a wall that hardly has a texture: rows, columns and a colour each."""
    frame = np.broadcast_to(np.array(WALL), (120, 160, 3)) + random.normal(0, 1.5, (120, 160, 1))
    for rows, columns, color in rectangles:
        frame[slice(*rows), slice(*columns)] = color
    return np.clip(frame, 0, 255).astype(np.uint8)


def test_what_hardly_leaves_its_place_is_not_part_of_what_is_behind():
    """A block of two colours rests for half of the time, then turns and goes by half its length."""
    random = np.random.default_rng(0)
    frames = []
    for sample in range(SAMPLES):
        left = 60 + max(0, sample - SAMPLES // 2)
        above, below = (GREEN, DARK_GREEN) if sample < 36 else (DARK_GREEN, GREEN)
        halves = [((40, 60), (left, left + 40), above), ((60, 80), (left, left + 40), below)]
        frames.append(_painted(random, halves))
    picture = Background(np.stack(frames)).picture
    assert np.abs(picture[40:80, 60:125] - WALL).max() < 30


def test_a_shadow_beside_a_dark_bar_leaves_the_wall_as_it_is():
    """A block slides along a dark bar and its shadow along the wall: around the place there is only the bar."""
    random = np.random.default_rng(0)
    bar, shadow = (112, 118, 120), tuple(0.9 * level for level in WALL)
    frames = []
    for sample in range(SAMPLES):
        left = 10 + 2 * sample
        block = [((70, 90), (left, left + 24), (115, 22, 120)), ((44, 70), (left - 6, left + 30), shadow)]
        frames.append(_painted(random, [((90, 120), (0, 160), bar), *block]))
    picture = Background(np.stack(frames)).picture
    assert np.abs(picture[72:88, 10:125] - WALL).max(-1).mean() < 5


def test_a_picture_without_edges_tells_of_no_shift():
    even = np.full((120, 160, 3), 128, np.uint8)
    assert Shake(even).measure(even) is None


def test_a_frame_that_tells_of_no_shift_is_where_the_last_one_was():
    random = np.random.default_rng(0)
    wide = np.repeat(np.kron(random.integers(60, 200, (18, 24, 1)), np.ones((8, 8, 1))), 3, 2).astype(np.uint8)
    frames = [wide[8 : 8 + 120, x : x + 160] for x in (8, 9, 10, 9, 8, 7, 6, 7) for _ in range(3)]
    background = Background(np.stack(frames))
    assert background.shaky
    before = background.alignment(frames[-1])
    assert np.abs(before.shift).max() > 0.3
    upside_down = background.alignment(frames[-1][::-1], before)
    np.testing.assert_array_equal(upside_down.shift, before.shift)
