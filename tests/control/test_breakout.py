"""The player of Breakout: its ball's way ahead, and what it does with what it learned of the paddle and of bounces."""

import numpy as np
import pytest

from physvision.control.breakout import (
    KEYS,
    BallTracker,
    BounceStatistics,
    BreakoutAgent,
    PaddleModel,
    play_game,
    predict_path,
)
from physvision.envs.atari import AtariEnv, AtariFrame
from physvision.envs.breakout_screen import BALL_HEIGHT, BRICK_HEIGHT, BRICK_TOP, FIELD_BOTTOM, FIELD_TOP, LEFT, RIGHT


def no_bricks():
    return np.zeros((6, 18), bool)


def test_a_ball_bounces_off_walls_and_roof_as_light_does():
    """Unfolded at the walls its way is straight: by hand, from x = 20 to the left by 2 a frame, down by 3."""
    path = predict_path((20.0, 100.0), (-2.0, 3.0), no_bricks())
    frames = (FIELD_BOTTOM - BALL_HEIGHT - 100.0) / 3
    assert path.frames == pytest.approx(frames)
    assert path.landing_x == pytest.approx(LEFT + abs(20.0 - LEFT - 2 * frames))
    assert path.bricks_hit == 0
    # Each dot of its way is a frame on, within the field.
    xs = np.array(path.full_path())
    assert (xs[:, 0] >= LEFT).all()
    assert (xs[:, 0] <= RIGHT - 2).all()
    np.testing.assert_allclose(np.diff(xs[:, 1]), 3.0)
    up = predict_path((80.0, 60.0), (0.5, -4.0), no_bricks())
    assert min(y for _, y in up.corners) >= FIELD_TOP - 4.0
    assert up.landing_x == pytest.approx(80.0 + 0.5 * up.frames)


def test_a_ball_takes_a_brick_and_turns():
    bricks = no_bricks()
    bricks[5, 9] = True
    below = BRICK_TOP + 6 * BRICK_HEIGHT
    path = predict_path((LEFT + 9 * 8 + 3.0, below + 20.0), (0.0, -3.0), bricks)
    assert path.bricks_hit == 1
    assert min(y for _, y in path.corners) >= below - 3.0
    assert bricks[5, 9]  # what is thought of is not changed


def test_the_nearest_bounce_is_expected():
    bounces = BounceStatistics()
    assert bounces.predict(0.0, 3.0) is None
    bounces.add(-4.0, 3.0, (-2.0, -3.0))
    bounces.add(4.0, 3.0, (2.0, -3.0))
    assert bounces.predict(-3.0, 3.1) == (-2.0, -3.0)
    assert bounces.predict(3.5, 3.0) == (2.0, -3.0)
    assert bounces.predict(0.0, 3.0) is None
    assert bounces.predict(4.0, 6.0) is None


def test_settings_of_bounces_bound_memory_and_distance():
    bounces = BounceStatistics(max_distance=5.0, max_bounces=2, speed_weight=10.0)
    for offset in (-8.0, 0.0, 8.0):
        bounces.add(offset, 3.0, (offset, -3.0))
    assert [offset for offset, _, _ in bounces.bounces] == [0.0, 8.0]
    assert bounces.predict(4.9, 3.0) == (8.0, -3.0)
    assert bounces.predict(8.0, 3.4) == (8.0, -3.0)
    assert bounces.predict(8.0, 3.6) is None


def test_a_key_counts_what_still_comes_of_those_before():
    paddle = PaddleModel(np.array([0.0, 3.0, 2.0, 1.0, 0, 0, 0, 0]))
    zero_output = [0] * 8
    assert KEYS[paddle.choose_key(10.0, zero_output)] == "RIGHT"
    assert KEYS[paddle.choose_key(-10.0, zero_output)] == "LEFT"
    assert paddle.pending_displacement([1, 1, 0, 0, 0, 0, 0, 0]) == pytest.approx(6.0 + 3.0)
    assert KEYS[paddle.choose_key(10.0, [1, 1, 0, 0, 0, 0, 0, 0])] == "NOOP"


def test_a_ball_keeps_its_mirrored_velocity_until_two_positions_give_a_new_one():
    ball = BallTracker()
    for position in ((20.0, 100.0), (22.0, 97.0), (24.0, 94.0)):
        ball.update(position)
    assert ball.velocity == (2.0, -3.0)
    assert ball.bounce_velocity is None
    ball.update((25.0, 96.0))  # the roof turned it on the way
    assert ball.bounce_velocity == (2.0, 3.0)
    assert ball.velocity == (2.0, 3.0)
    ball.update((27.0, 99.5))
    assert ball.velocity == (2.0, 3.5)


class Screens(AtariEnv):
    """A game of even screens that ends after five frames and gives a point for each."""

    def __init__(self):
        self.frames = 0

    def reset(self, seed, noop_frames=0):
        self.frames = 0
        return AtariFrame(np.zeros((210, 160, 3), np.uint8), 0.0, 5, False)

    def step(self, action):
        self.frames += 1
        return AtariFrame(np.full((210, 160, 3), self.frames, np.uint8), 1.0, 5, self.frames == 5)


def test_each_frame_of_a_game_is_reported_before_the_key_is_pressed():
    levels = []
    agent = BreakoutAgent(PaddleModel(np.zeros(8)), 0)
    result = play_game(Screens(), agent, 0, 100, on_frame=lambda image, agent: levels.append(int(image[0, 0, 0])))
    assert levels == [0, 1, 2, 3, 4]
    assert (result.score, result.frames, result.lives) == (5.0, 5, 5)
