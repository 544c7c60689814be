"""A player of Breakout that learns how keys move the paddle, and follows the ball ahead by elastic bounces.

Where the ball comes down is known from its speed since it last bounced: free flight between planes, and bricks as they
are in the picture. Which part of the paddle is hit is drawn anew for each ball that comes down, which breaks loops; a
player that also learns how the ball leaves the paddle (`Bounces`) prefers parts from which it meets a brick.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from physvision.envs.atari import AtariEnv, Image
from physvision.envs.breakout_screen import (
    BALL_HEIGHT,
    BALL_WIDTH,
    BRICK_HEIGHT,
    BRICK_TOP,
    BRICK_WIDTH,
    COLUMNS,
    FLOOR,
    LEFT,
    RIGHT,
    ROOF,
    ROWS,
    find_ball,
    find_bricks,
    find_paddle,
)

Bricks = Bool[np.ndarray, "rows columns"]
Pair = tuple[float, float]
KEYS = ("NOOP", "RIGHT", "LEFT")
MOST_POINTS = 864.0  # two walls; there is no third
MEMORY, _LONGEST, _PATIENCE = 8, 400, 6
_LOWEST = FLOOR - BALL_HEIGHT
_BOTTOM = BRICK_TOP + ROWS * BRICK_HEIGHT


@dataclass
class Paddle:
    """How far a frame under a key moves the paddle, in that frame and in those that follow; keys add up."""

    response: np.ndarray

    @classmethod
    def learned(cls, game: AtariEnv, frames: int, seed: int) -> Paddle:
        """From frames under random keys, each held for some: least squares over what is seen away from the walls."""
        random, pressed, moved = np.random.default_rng(seed), [], []
        frame, keys, left = game.reset(seed), [0] * MEMORY, 0
        for _ in range(frames):
            if frame.done:
                frame, keys, left = game.reset(seed + 1), [0] * MEMORY, 0
            key = keys[0] if left else int(random.integers(-1, 2))
            left = (left or int(random.integers(1, 15))) - 1
            keys = [key, *keys[:-1]]
            old = find_paddle(frame.image)
            frame = game.step(KEYS[key])
            new = find_paddle(frame.image)
            if old is not None and new is not None and not _at_walls(old, new):
                pressed.append(keys)
                moved.append(new[0] - old[0])
        if not moved:
            return cls(np.zeros(MEMORY))
        return cls(np.linalg.lstsq(np.array(pressed, float), np.array(moved, float), rcond=1e-6)[0])

    @property
    def speed(self) -> float:
        """How far a key moves it in all, pixels."""
        return float(self.response.sum())

    def coming(self, keys: list[int]) -> float:
        """How far it still moves after these keys, the last one first."""
        return sum(key * float(self.response[k + 1 :].sum()) for k, key in enumerate(keys))

    def key(self, distance: float, keys: list[int]) -> int:
        """What to press so that the paddle comes to rest at a distance, after these keys."""
        rest = distance - self.coming(keys)
        return int(np.sign(rest * self.speed)) if abs(rest) > abs(self.speed) / 2 else 0


def _at_walls(*places: tuple[int, int]) -> bool:
    return any(left <= LEFT + 6 or left + width >= RIGHT - 6 for left, width in places)


class Flight(NamedTuple):
    """Where the ball comes down to the paddle (its left edge), after how many frames, and what it meets before.

    Attributes:
        place: its left edge as it meets the paddle.
        frames: until then.
        struck: bricks on the way.
        path: where its corner is in each frame until it falls below the bricks.
        speed: with which it falls from there.
    """

    place: float
    frames: float
    struck: int
    path: list[Pair]
    speed: Pair

    def way(self) -> list[Pair]:
        """Where its corner is in each frame, down to the paddle."""
        (x, y), (vx, vy) = self.path[-1], self.speed
        steps = range(1, int((_LOWEST - y) / vy) + 1) if vy > 0 else range(0)
        return [*self.path, *((_between_walls(x + vx * k), y + vy * k) for k in steps)]


def _between_walls(x: float) -> float:
    """Where a ball is that would be at x if there were no walls."""
    width = RIGHT - BALL_WIDTH - LEFT
    along = (x - LEFT) % (2 * width)
    return LEFT + (2 * width - along if along > width else along)


def fly(place: Pair, speed: Pair, bricks: Bricks) -> Flight | None:
    """The ball's way until it comes down, with elastic bounces off walls, roof and bricks; None if it does not."""
    (x, y), (vx, vy), there, path, struck = place, speed, bricks.copy(), [place], 0
    right = RIGHT - BALL_WIDTH
    while (vy < 0 or y < _BOTTOM) and len(path) < _LONGEST:
        x, y = x + vx, y + vy
        if x < LEFT or x > right:
            x, vx = (2 * LEFT - x if x < LEFT else 2 * right - x), -vx
        ahead = y if vy < 0 else y + BALL_HEIGHT - 1
        row, column = int((ahead - BRICK_TOP) // BRICK_HEIGHT), int((x + 1 - LEFT) // BRICK_WIDTH)
        if 0 <= row < ROWS and 0 <= column < COLUMNS and there[row, column]:
            there[row, column], vy, struck = False, -vy, struck + 1
        elif y < ROOF and vy < 0:
            vy = -vy
        path.append((x, y))
    if vy <= 0:
        return None
    frames = max(0.0, (_LOWEST - y) / vy)
    return Flight(_between_walls(x + vx * frames), len(path) - 1 + frames, struck, path, (vx, vy))


@dataclass
class Ball:
    """Where the ball was since it last bounced, and how it moved when it did."""

    places: list[Pair] = field(default_factory=list)
    bounced: Pair | None = None

    def see(self, place: Pair) -> None:
        """Remember where it is; where a velocity turns round it bounced, and the step over the bounce tells nothing."""
        speed = self.velocity
        if speed is not None:
            step = place[0] - self.places[-1][0], place[1] - self.places[-1][1]
            turned = [-1.0 if now * old < 0 else 1.0 for now, old in zip(step, speed, strict=True)]
            if -1.0 in turned:
                self.places, self.bounced = [], (speed[0] * turned[0], speed[1] * turned[1])
        self.places.append(place)

    @property
    def velocity(self) -> Pair | None:
        """Pixels a frame: the mean since it bounced; mirrored, of before, where it was not seen twice since."""
        count = len(self.places) - 1
        if count < 1:
            return self.bounced
        (ax, ay), (bx, by) = self.places[0], self.places[-1]
        return (bx - ax) / count, (by - ay) / count


@dataclass
class Bounces:
    """How the ball left the paddle, by where it met it and how fast it fell: the most alike of what was seen."""

    seen: list[tuple[float, float, Pair]] = field(default_factory=list)
    _ALIKE = 2.0  # pixels of the paddle, beyond which nothing is known

    def add(self, offset: float, falling: float, left: Pair) -> None:
        """Remember a bounce; of the many only the last are kept."""
        self.seen = [*self.seen[-499:], (offset, falling, left)]

    def expected(self, offset: float, falling: float) -> Pair | None:
        """The speed with which it leaves; None where nothing like it was seen."""
        if not self.seen:
            return None
        apart, left = min((abs(each[0] - offset) + 4 * abs(each[1] - falling), each[2]) for each in self.seen)
        return left if apart < self._ALIKE else None


class Player:
    """Sees a frame and says a key.

    Attributes:
        landing: where the ball is thought to come down.
    """

    def __init__(self, paddle: Paddle, seed: int, bounces: Bounces | None = None) -> None:
        """Play with what is known of the paddle; `bounces` is learned on while playing, and used to aim."""
        self.paddle, self.bounces, self.random = paddle, bounces, np.random.default_rng(seed)
        self.ball, self.unseen, self.share, self.width = Ball(), 100, 0.0, 16
        self.keys, self.falling, self.low = [0] * MEMORY, False, False
        self.landing: Flight | None = None
        self._met: tuple[float, float] | None = None
        self._left, self._vain = 0, 0  # bricks when the ball last fell, and how often it fell since without one less

    def key(self, picture: Image) -> str:
        """What to press."""
        chosen = self._chosen(picture)
        self.keys = [chosen or 0, *self.keys[:-1]]
        return "FIRE" if chosen is None else KEYS[chosen]

    def _chosen(self, picture: Image) -> int | None:
        """Right, left or nothing, as a sign; None to ask for a ball."""
        place, paddle = find_ball(picture), find_paddle(picture)
        if place is None:
            self.unseen, self.landing = self.unseen + 1, None
            if self.unseen > 8:
                self.ball = Ball()
                return None
            return 0
        self.unseen = 0
        self.ball.see(place)
        if paddle is None:
            return 0
        if paddle[1] in (8, 16):
            self.width = paddle[1]
        bricks, speed = find_bricks(picture), self.ball.velocity
        self.landing = None if speed is None or speed[1] == 0 else fly(place, speed, bricks)
        middle = paddle[0] + self.width / 2
        self._watch(place, speed, middle)
        falls = speed is not None and speed[1] > 0
        if falls and not self.falling:
            most = 1.0 if self._vain > _PATIENCE else 0.8
            self.share = float(self.random.uniform(-most, most))
        low = falls and place[1] > _BOTTOM + BRICK_HEIGHT  # where the ball itself is not taken for a brick
        if low and not self.low:
            left = int(bricks.sum())
            self._vain, self._left = self._vain + 1 if left == self._left else 0, left
        self.falling, self.low = falls, low
        target = (LEFT + RIGHT) / 2 if self.landing is None else self.landing.place + BALL_WIDTH / 2
        distance = target + self.share * self._room - middle
        # What was aimed at twice and missed is left to chance for once: so loops end.
        if self.bounces is not None and falls and self.landing is not None and self._vain % 3 < 2:
            distance = self._aimed(target - middle, distance, bricks)
        return self.paddle.key(distance, self.keys)

    @property
    def _room(self) -> float:
        """How far from its middle the paddle may be met: at its very edges where all else was in vain."""
        return (self.width - (1 if self._vain > _PATIENCE else 4)) / 2

    def _watch(self, place: Pair, speed: Pair | None, middle: float) -> None:
        """Learn from a ball that has left the paddle, once its speed was measured over some frames."""
        if self.bounces is None or speed is None:
            return
        if speed[1] > 0:
            self._met = (place[0] + BALL_WIDTH / 2 - middle, speed[1]) if place[1] > _LOWEST - 2 * speed[1] else None
        elif self._met is not None and len(self.ball.places) > 4:
            self.bounces.add(*self._met, speed)
            self._met = None

    def _aimed(self, off: float, drawn: float, bricks: Bricks) -> float:
        """How far to go: of the places where keys can leave the paddle, one from which the ball meets a brick.

        Args:
            off: of where the ball comes down from the paddle's middle.
            drawn: how far to go where it does not matter.
            bricks: that are there.
        """
        assert self.bounces is not None
        assert self.landing is not None
        coming, step = self.paddle.coming(self.keys), abs(self.paddle.speed) or 1.0
        falling = abs(self.ball.velocity[1]) if self.ball.velocity else 0.0
        places = [coming + step * k for k in range(-30, 31) if abs(off - coming - step * k) <= self._room]
        best, most = drawn, -1
        for place in sorted(places, key=lambda each: abs(each - drawn)):
            speed = self.bounces.expected(off - place, falling)
            flight = None if speed is None or speed[1] >= 0 else fly((self.landing.place, _LOWEST), speed, bricks)
            struck = 0 if flight is None else min(flight.struck, 1)
            if struck > most:
                best, most = place, struck
        return best


class Score(NamedTuple):
    """How a game went: points, frames, lives that were left, and seconds that the player thought."""

    score: float
    frames: int
    lives: int
    seconds: float


def play(
    game: AtariEnv, player: Player, seed: int, most: int, show: Callable[[Image, Player], None] | None = None
) -> Score:
    """One game, which begins after 0 to 30 idle frames.

    Args:
        game: Breakout.
        player: who plays.
        seed: of the game, and of how long it idles.
        most: frames after which it is stopped; it also is when there are no more bricks to come.
        show: is given each frame once the player has seen it.
    """
    frame = game.reset(seed, int(np.random.default_rng(seed).integers(0, 31)))
    score, frames, thinking = 0.0, 0, 0.0
    while not frame.done and frames < most and score < MOST_POINTS:
        begun = time.perf_counter()
        key = player.key(frame.image)
        thinking += time.perf_counter() - begun
        if show is not None:
            show(frame.image, player)
        frame = game.step(key)
        score, frames = score + frame.reward, frames + 1
    return Score(score, frames, frame.lives, thinking)
