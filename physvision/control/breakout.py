"""An agent for Breakout that learns how keys move the paddle and predicts the ball by elastic bounces.

The ball's path to the paddle follows from its velocity since the last bounce: free flight between walls, and the bricks
that are on the screen. The point of the paddle that meets the ball is drawn at random for each falling ball, which
breaks loops; an agent that also learns how the ball leaves the paddle (`BounceStatistics`) prefers points from which
the ball hits a brick.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from physvision.envs import breakout_screen as screen
from physvision.envs.atari import AtariEnv, Image

Bricks = Bool[np.ndarray, "rows columns"]
Vec2 = tuple[float, float]
KEYS = ("NOOP", "RIGHT", "LEFT")
MAX_SCORE = 864.0  # two walls of bricks; there is no third
KEY_HISTORY = 8  # frames for which a key moves the paddle
MAX_PATH_FRAMES = 400  # of a predicted path above the bricks' lower edge
MAX_ABSENT_FRAMES = 8  # frames without a ball after which a new one is requested
MAX_EMPTY_FALLS = 6  # falls without a brick after which the paddle's very edges are used
FIELD_MIDDLE = (screen.LEFT + screen.RIGHT) / 2
PADDLE_Y = screen.FIELD_BOTTOM - screen.BALL_HEIGHT  # upper edge of a ball on the paddle
BRICK_BOTTOM = screen.BRICK_TOP + screen.ROWS * screen.BRICK_HEIGHT


@dataclass
class PaddleModel:
    """Linear model of the paddle: keys of the last frames move it independently.

    Attributes:
        impulse_response: Displacement by a key in its frame and in those after it, in pixels.
    """

    impulse_response: np.ndarray

    @classmethod
    def fit(cls, env: AtariEnv, frames: int, seed: int) -> PaddleModel:
        """Fit the model by least squares to frames of random keys, each held for a while, away from the walls."""
        random, histories, displacements = np.random.default_rng(seed), [], []
        frame, keys, remaining = env.reset(seed), [0] * KEY_HISTORY, 0
        for _ in range(frames):
            if frame.done:
                frame, keys, remaining = env.reset(seed + 1), [0] * KEY_HISTORY, 0
            key = keys[0] if remaining else int(random.integers(-1, 2))
            remaining = (remaining or int(random.integers(1, 15))) - 1
            keys = [key, *keys[:-1]]
            old = screen.find_paddle(frame.image)
            frame = env.step(KEYS[key])
            new = screen.find_paddle(frame.image)
            if old is not None and new is not None and not _at_walls(old, new):
                histories.append(keys)
                displacements.append(new[0] - old[0])
        if not displacements:
            return cls(np.zeros(KEY_HISTORY))
        return cls(np.linalg.lstsq(np.array(histories, float), np.array(displacements, float), rcond=1e-6)[0])

    @property
    def speed(self) -> float:
        """Total displacement by a key, in pixels."""
        return float(self.impulse_response.sum())

    def pending_displacement(self, keys: list[int]) -> float:
        """Return the displacement still to come from these keys, the last one first, in pixels."""
        return sum(key * float(self.impulse_response[k + 1 :].sum()) for k, key in enumerate(keys))

    def choose_key(self, distance: float, keys: list[int]) -> int:
        """Return the key after which the paddle comes to rest closest to a distance, given the keys before."""
        remaining = distance - self.pending_displacement(keys)
        return int(np.sign(remaining * self.speed)) if abs(remaining) > abs(self.speed) / 2 else 0


def _at_walls(*paddles: tuple[int, int]) -> bool:
    return any(left <= screen.LEFT + 6 or left + width >= screen.RIGHT - 6 for left, width in paddles)


class BallPath(NamedTuple):
    """Predicted path of the ball down to the paddle.

    Attributes:
        landing_x: Left edge of the ball as it meets the paddle, in pixels.
        frames: Frames until then.
        bricks_hit: Number of bricks on the way.
        corners: Upper left corner of the ball in each frame until it falls below the bricks, in pixels.
        velocity: Velocity from there on, in pixels a frame.
    """

    landing_x: float
    frames: float
    bricks_hit: int
    corners: list[Vec2]
    velocity: Vec2

    def full_path(self) -> list[Vec2]:
        """Return the ball's upper left corner in each frame down to the paddle."""
        (x, y), (vx, vy) = self.corners[-1], self.velocity
        steps = range(1, int((PADDLE_Y - y) / vy) + 1) if vy > 0 else range(0)
        return [*self.corners, *((_reflect_at_walls(x + vx * k), y + vy * k) for k in steps)]


def _reflect_at_walls(x: float) -> float:
    """Return the position between the walls of a ball that would be at x without them."""
    width = screen.RIGHT - screen.BALL_WIDTH - screen.LEFT
    phase = (x - screen.LEFT) % (2 * width)
    return screen.LEFT + (2 * width - phase if phase > width else phase)


def predict_path(position: Vec2, velocity: Vec2, bricks: Bricks) -> BallPath | None:
    """Predict the ball's path with elastic bounces off walls, roof and bricks; None if it does not come down."""
    (x, y), (vx, vy), remaining, corners, bricks_hit = position, velocity, bricks.copy(), [position], 0
    right = screen.RIGHT - screen.BALL_WIDTH
    while (vy < 0 or y < BRICK_BOTTOM) and len(corners) < MAX_PATH_FRAMES:
        x, y = x + vx, y + vy
        if x < screen.LEFT or x > right:
            x, vx = (2 * screen.LEFT - x if x < screen.LEFT else 2 * right - x), -vx
        front = y if vy < 0 else y + screen.BALL_HEIGHT - 1
        row = int((front - screen.BRICK_TOP) // screen.BRICK_HEIGHT)
        column = int((x + 1 - screen.LEFT) // screen.BRICK_WIDTH)
        if 0 <= row < screen.ROWS and 0 <= column < screen.COLUMNS and remaining[row, column]:
            remaining[row, column], vy, bricks_hit = False, -vy, bricks_hit + 1
        elif y < screen.FIELD_TOP and vy < 0:
            vy = -vy
        corners.append((x, y))
    if vy <= 0:
        return None
    frames = max(0.0, (PADDLE_Y - y) / vy)
    return BallPath(_reflect_at_walls(x + vx * frames), len(corners) - 1 + frames, bricks_hit, corners, (vx, vy))


@dataclass
class BallTracker:
    """Positions of the ball since its last bounce, and its velocity after it.

    Attributes:
        positions: Positions since the last bounce, in pixels.
        bounce_velocity: Velocity before the last bounce, mirrored, in pixels a frame; None before the first one.
    """

    positions: list[Vec2] = field(default_factory=list)
    bounce_velocity: Vec2 | None = field(default=None, init=False)

    def update(self, position: Vec2) -> None:
        """Add a position; a reversed velocity is a bounce, and the step over a bounce is not used."""
        velocity = self.velocity
        if velocity is not None:
            step = position[0] - self.positions[-1][0], position[1] - self.positions[-1][1]
            signs = [-1.0 if new * old < 0 else 1.0 for new, old in zip(step, velocity, strict=True)]
            if -1.0 in signs:
                self.positions, self.bounce_velocity = [], (velocity[0] * signs[0], velocity[1] * signs[1])
        self.positions.append(position)

    @property
    def velocity(self) -> Vec2 | None:
        """Mean velocity since the last bounce, in pixels a frame; before two positions that before it, mirrored."""
        count = len(self.positions) - 1
        if count < 1:
            return self.bounce_velocity
        (ax, ay), (bx, by) = self.positions[0], self.positions[-1]
        return (bx - ax) / count, (by - ay) / count


@dataclass
class BounceStatistics:
    """Observed bounces off the paddle, from which the nearest one predicts others.

    Attributes:
        bounces: Offset from the paddle's middle in pixels, falling speed, and velocity afterwards in pixels a frame.
        max_distance: Largest distance of the nearest bounce, in pixels of offset; a larger one predicts more and worse.
        max_bounces: Number of latest bounces that are kept; more of them predict better and take more time.
        speed_weight: Pixels of offset that a pixel a frame of falling speed counts for.
    """

    bounces: list[tuple[float, float, Vec2]] = field(default_factory=list)
    max_distance: float = 2.0
    max_bounces: int = 500
    speed_weight: float = 4.0

    def add(self, offset: float, falling_speed: float, velocity: Vec2) -> None:
        """Record an observed bounce off the paddle."""
        self.bounces = [*self.bounces[1 - self.max_bounces :], (offset, falling_speed, velocity)]

    def predict(self, offset: float, falling_speed: float) -> Vec2 | None:
        """Return the velocity after a bounce; None if no similar one was observed."""
        if not self.bounces:
            return None
        distance, velocity = min(
            (abs(known_offset - offset) + self.speed_weight * abs(known_speed - falling_speed), velocity)
            for known_offset, known_speed, velocity in self.bounces
        )
        return velocity if distance < self.max_distance else None


class BreakoutAgent:
    """An agent that sees frames and returns keys.

    | Observation | Meaning | Unit | Bounds |
    |---|---|---|---|
    | the screen | RGB image of 210 × 160 pixels | 1 | 0 … 255 |

    | Action | Meaning |
    |---|---|
    | `FIRE` | ask for a new ball |
    | `LEFT`, `RIGHT`, `NOOP` | move the paddle, or not |

    Attributes:
        prediction: Predicted path of the ball; None if it is not known.
    """

    def __init__(self, paddle: PaddleModel, seed: int, bounces: BounceStatistics | None = None) -> None:
        """Set up the agent.

        Args:
            paddle: Model of the paddle.
            seed: Seed of the part of the paddle that meets the ball.
            bounces: Statistics that are extended while playing and used to aim at bricks; None to aim at random.
        """
        self.paddle, self.bounces, self.random = paddle, bounces, np.random.default_rng(seed)
        self.ball, self.frames_without_ball, self.paddle_width = BallTracker(), MAX_ABSENT_FRAMES, 16
        self.contact_fraction = 0.0  # of the reachable half of the paddle
        self.keys, self.was_falling, self.was_below_bricks = [0] * KEY_HISTORY, False, False
        self.prediction: BallPath | None = None
        self._contact: tuple[float, float] | None = None  # offset and falling speed of a ball about to bounce
        self._bricks_left, self._empty_falls = 0, 0  # bricks at the last fall, and falls since without a brick less

    def choose_key(self, image: Image) -> str:
        """Return the key to press after a frame."""
        direction = self._direction(image)
        self.keys = [direction or 0, *self.keys[:-1]]
        return "FIRE" if direction is None else KEYS[direction]

    def _direction(self, image: Image) -> int | None:
        """Return 1 for right, −1 for left, 0 for neither, None to ask for a ball."""
        position, paddle = screen.find_ball(image), screen.find_paddle(image)
        if position is None:
            self.frames_without_ball, self.prediction = self.frames_without_ball + 1, None
            if self.frames_without_ball > MAX_ABSENT_FRAMES:
                self.ball = BallTracker()
                return None
            return 0
        self.frames_without_ball = 0
        self.ball.update(position)
        if paddle is None:
            return 0
        if paddle[1] in (8, 16):
            self.paddle_width = paddle[1]
        bricks, velocity = screen.find_bricks(image), self.ball.velocity
        self.prediction = None
        if velocity is not None and velocity[1] != 0:
            self.prediction = predict_path(position, velocity, bricks)
        middle = paddle[0] + self.paddle_width / 2
        self._record_bounce(position, velocity, middle)
        falling = velocity is not None and velocity[1] > 0
        self._plan_contact(position, falling, bricks)
        target = FIELD_MIDDLE if self.prediction is None else self.prediction.landing_x + screen.BALL_WIDTH / 2
        distance = target + self.contact_fraction * self._reach - middle
        # After two falls without a brick, the next is aimed at random, which breaks loops.
        if self.bounces is not None and falling and self.prediction is not None and self._empty_falls % 3 < 2:
            distance = self._aim(self.bounces, self.prediction, target - middle, distance, bricks)
        return self.paddle.choose_key(distance, self.keys)

    def _plan_contact(self, position: Vec2, falling: bool, bricks: Bricks) -> None:
        """Draw the part of the paddle for a ball that begins to fall, and count falls without a brick."""
        if falling and not self.was_falling:
            limit = 1.0 if self._empty_falls > MAX_EMPTY_FALLS else 0.8
            self.contact_fraction = float(self.random.uniform(-limit, limit))
        # Farther down the ball is not taken for a brick.
        below_bricks = falling and position[1] > BRICK_BOTTOM + screen.BRICK_HEIGHT
        if below_bricks and not self.was_below_bricks:
            bricks_left = int(bricks.sum())
            self._empty_falls = self._empty_falls + 1 if bricks_left == self._bricks_left else 0
            self._bricks_left = bricks_left
        self.was_falling, self.was_below_bricks = falling, below_bricks

    @property
    def _reach(self) -> float:
        """Largest offset of the ball from the paddle's middle, in pixels; larger after many falls without a brick."""
        return (self.paddle_width - (1 if self._empty_falls > MAX_EMPTY_FALLS else 4)) / 2

    def _record_bounce(self, position: Vec2, velocity: Vec2 | None, middle: float) -> None:
        """Record a bounce off the paddle, once the velocity after it is known from some frames."""
        if self.bounces is None or velocity is None:
            return
        if velocity[1] > 0:
            is_close = position[1] > PADDLE_Y - 2 * velocity[1]
            self._contact = (position[0] + screen.BALL_WIDTH / 2 - middle, velocity[1]) if is_close else None
        elif self._contact is not None and len(self.ball.positions) > 4:
            self.bounces.add(*self._contact, velocity)
            self._contact = None

    def _aim(
        self, bounces: BounceStatistics, prediction: BallPath, offset: float, default: float, bricks: Bricks
    ) -> float:
        """Return the distance to move: a reachable one from which the ball meets a brick, nearest to the default.

        Args:
            bounces: Statistics of bounces off the paddle.
            prediction: Predicted path of the ball.
            offset: Offset of the landing point from the paddle's middle, in pixels.
            default: Distance to move if no bounce meets a brick, in pixels.
            bricks: Bricks on the screen.
        """
        pending, step = self.paddle.pending_displacement(self.keys), abs(self.paddle.speed) or 1.0
        falling_speed = abs(self.ball.velocity[1]) if self.ball.velocity else 0.0
        distances = [pending + step * k for k in range(-30, 31) if abs(offset - pending - step * k) <= self._reach]
        best, max_hits = default, -1
        for distance in sorted(distances, key=lambda value: abs(value - default)):
            velocity = bounces.predict(offset - distance, falling_speed)
            path = None
            if velocity is not None and velocity[1] < 0:
                path = predict_path((prediction.landing_x, PADDLE_Y), velocity, bricks)
            hits = 0 if path is None else min(path.bricks_hit, 1)
            if hits > max_hits:
                best, max_hits = distance, hits
        return best


class GameResult(NamedTuple):
    """Result of a game.

    Attributes:
        score: Points.
        frames: Frames played.
        lives: Remaining lives.
        seconds: Time that the agent took for its decisions, in s.
    """

    score: float
    frames: int
    lives: int
    seconds: float


def play_game(
    env: AtariEnv,
    agent: BreakoutAgent,
    seed: int,
    max_frames: int,
    on_frame: Callable[[Image, BreakoutAgent], None] | None = None,
) -> GameResult:
    """Play one game, which starts after 0 to 30 frames without action.

    Args:
        env: Breakout.
        agent: Agent that plays.
        seed: Seed of the game and of the number of frames before its start.
        max_frames: Frames after which the game is stopped; it also is when no bricks are left.
        on_frame: Function called with each frame after the agent's decision.
    """
    frame = env.reset(seed, int(np.random.default_rng(seed).integers(0, 31)))
    score, frames, seconds = 0.0, 0, 0.0
    while not frame.done and frames < max_frames and score < MAX_SCORE:
        start = time.perf_counter()
        key = agent.choose_key(frame.image)
        seconds += time.perf_counter() - start
        if on_frame is not None:
            on_frame(frame.image, agent)
        frame = env.step(key)
        score, frames = score + frame.reward, frames + 1
    return GameResult(score, frames, frame.lives, seconds)
