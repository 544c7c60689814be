"""Breakout from at most 1,000 random frames: only the paddle's motion is learned.

    python experiments/breakout.py [--frames 10,30,100,300,1000] [--games 10] [--first 100] [--most 108000]

`ALE/Breakout-v5`, frameskip 1, no sticky keys, 0 to 30 idle frames at the start, at most 108,000 frames a game. Given:
colours, walls, and elastic bounces; from frames under random keys it is learned how far a frame under a key moves the
paddle, in that frame and those that follow. A player measures ball, paddle and bricks in every frame, follows the ball
ahead by its speed since it last bounced, with elastic bounces off walls, roof and the bricks in the picture (free
flight between planes, in closed form), and picks the key that leaves the paddle, by what it learned, closest to where
the ball comes down. Which part of the paddle is to be hit is drawn anew for each ball that comes down: that breaks
loops. Frames of play are not fitted. One line a game goes to out/breakout.jsonl; what is there is not played again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jsonargparse import auto_cli

from physvision.envs.atari import Atari, Picture

LEFT, RIGHT, ROOF, FLOOR = 8, 152, 32, 189  # of the field, pixels
RED = 200  # of paddle, ball and the top row of bricks
BRICK_TOP, BRICK_HEIGHT, BRICK_WIDTH, ROWS, COLUMNS = 57, 6, 8, 6, 18
BALL_WIDTH, BALL_HEIGHT, PADDLE_HEIGHT = 2, 4, 4
KEYS = ("NOOP", "RIGHT", "LEFT")
MOST_FRAMES, MEMORY = 108_000, 8


def find_paddle(picture: Picture) -> tuple[int, int] | None:
    """Left edge and width of the paddle: the longest stretch of its colour in its row."""
    row = np.concatenate([[0], picture[FLOOR + 1, LEFT:RIGHT, 0] == RED, [0]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(row))
    if not len(edges):
        return None
    starts, widths = edges[::2], edges[1::2] - edges[::2]
    longest = int(widths.argmax())
    return LEFT + int(starts[longest]), int(widths[longest])


def find_bricks(picture: Picture) -> np.ndarray:
    """Which bricks are there, (rows, columns)."""
    rows = BRICK_TOP + BRICK_HEIGHT * np.arange(ROWS) + 3
    columns = LEFT + BRICK_WIDTH * np.arange(COLUMNS)
    return picture[rows][:, np.stack([columns + 1, columns + 6])].any(-1).all(1)


def find_ball(picture: Picture) -> tuple[float, float] | None:
    """Left and upper edge of the ball."""
    seen = picture[ROOF:FLOOR, LEFT:RIGHT, 0] == RED
    top = seen[BRICK_TOP - ROOF : BRICK_TOP - ROOF + BRICK_HEIGHT].reshape(BRICK_HEIGHT, COLUMNS, BRICK_WIDTH)
    top &= ~top.all((0, 2))[None, :, None]
    rows, columns = np.nonzero(seen)
    if not len(rows):
        return None
    return LEFT + float(columns.min()), ROOF + float(rows.min())


@dataclass
class Paddle:
    """How far a frame under a key moves the paddle, in that frame and in those that follow; keys add up."""

    response: np.ndarray

    @classmethod
    def learned(cls, game: Atari, frames: int, seed: int) -> Paddle:
        """From frames under random keys, each held for some: least squares over what is seen away from the walls."""
        random, pressed, moved = np.random.default_rng(seed), [], []
        frame, keys, left = game.begin(seed), [0] * MEMORY, 0
        for _ in range(frames):
            if frame.over:
                frame, keys, left = game.begin(seed + 1), [0] * MEMORY, 0
            key = keys[0] if left else int(random.integers(-1, 2))
            left = (left or int(random.integers(1, 15))) - 1
            keys = [key, *keys[:-1]]
            old = find_paddle(frame.picture)
            frame = game.act(KEYS[key])
            new = find_paddle(frame.picture)
            if old is not None and new is not None and not _at_walls(old, new):
                pressed.append(keys)
                moved.append(new[0] - old[0])
        if not moved:
            return cls(np.zeros(MEMORY))
        return cls(np.linalg.lstsq(np.array(pressed, float), np.array(moved, float), rcond=1e-6)[0])

    def key(self, distance: float, keys: list[int]) -> int:
        """What to press so that the paddle comes to rest at a distance, after these keys, the last one first."""
        each = float(self.response.sum())
        coming = sum(key * float(self.response[k + 1 :].sum()) for k, key in enumerate(keys))
        rest = distance - coming
        return int(np.sign(rest * each)) if abs(rest) > abs(each) / 2 else 0


def _at_walls(*places: tuple[int, int]) -> bool:
    return any(left <= LEFT + 6 or left + width >= RIGHT - 6 for left, width in places)


@dataclass
class Ball:
    """Where the ball was since it last bounced, and how it moved when it did."""

    places: list[tuple[float, float]] = field(default_factory=list)
    bounced: tuple[float, float] | None = None

    def see(self, place: tuple[float, float]) -> None:
        """Remember where it is; where a velocity turns round it bounced, and the step over the bounce tells nothing."""
        speed = self.velocity
        if speed is not None:
            step = place[0] - self.places[-1][0], place[1] - self.places[-1][1]
            turned = [-1.0 if now * old < 0 else 1.0 for now, old in zip(step, speed, strict=True)]
            if -1.0 in turned:
                self.places, self.bounced = [], (speed[0] * turned[0], speed[1] * turned[1])
        self.places.append(place)

    @property
    def velocity(self) -> tuple[float, float] | None:
        """Pixels a frame: the mean since it bounced; mirrored, of before, where it was not seen twice since."""
        count = len(self.places) - 1
        if count < 1:
            return self.bounced
        (ax, ay), (bx, by) = self.places[0], self.places[-1]
        return (bx - ax) / count, (by - ay) / count

    def landing(self, bricks: np.ndarray) -> tuple[float, float] | None:
        """Where its left edge is when it comes down to the paddle, and in how many frames."""
        speed = self.velocity
        if speed is None or speed[1] == 0:
            return None
        (x, y), (vx, vy), spent, there = self.places[-1], speed, 0.0, bricks.copy()
        lowest = FLOOR - BALL_HEIGHT
        while vy < 0 and spent < 400:
            x, y, spent = x + vx, y + vy, spent + 1
            if x < LEFT or x > RIGHT - BALL_WIDTH:
                x, vx = (2 * LEFT - x if x < LEFT else 2 * (RIGHT - BALL_WIDTH) - x), -vx
            row, column = int((y - BRICK_TOP) // BRICK_HEIGHT), int((x + 1 - LEFT) // BRICK_WIDTH)
            struck = 0 <= row < ROWS and 0 <= column < COLUMNS and there[row, column]
            if struck or y < ROOF:
                vy = -vy
        frames = max(0.0, (lowest - y) / vy) if vy > 0 else 0.0
        width = RIGHT - BALL_WIDTH - LEFT
        place = (x + vx * frames - LEFT) % (2 * width)
        return LEFT + (2 * width - place if place > width else place), spent + frames


class Player:
    """Sees a frame and says a key."""

    def __init__(self, paddle: Paddle, seed: int) -> None:
        self.paddle, self.random = paddle, np.random.default_rng(seed)
        self.ball, self.unseen, self.share, self.width = Ball(), 100, 0.0, 16
        self.keys, self.falling = [0] * MEMORY, False

    def key(self, picture: Picture) -> str:
        """What to press."""
        chosen = self._chosen(picture)
        self.keys = [chosen or 0, *self.keys[:-1]]
        return "FIRE" if chosen is None else KEYS[chosen]

    def _chosen(self, picture: Picture) -> int | None:
        """Right, left or nothing, as a sign; None to ask for a ball."""
        place, paddle = find_ball(picture), find_paddle(picture)
        if place is None:
            self.unseen += 1
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
        speed, landing = self.ball.velocity, self.ball.landing(find_bricks(picture))
        falls = speed is not None and speed[1] > 0
        if falls and not self.falling:
            self.share = float(self.random.uniform(-0.8, 0.8))
        self.falling = falls
        target = (LEFT + RIGHT) / 2 if landing is None else landing[0] + BALL_WIDTH / 2
        room = (self.width - 4) / 2
        distance = target + self.share * room - (paddle[0] + self.width / 2)
        return self.paddle.key(distance, self.keys)


def play(game: Atari, paddle: Paddle, seed: int, most: int) -> dict:
    """One game: its score and length, and how many decisions a second the player made."""
    random = np.random.default_rng(seed)
    frame = game.begin(seed, int(random.integers(0, 31)))
    player, score, frames, thinking = Player(paddle, seed), 0.0, 0, 0.0
    while not frame.over and frames < most:
        begun = time.perf_counter()
        key = player.key(frame.picture)
        thinking += time.perf_counter() - begun
        frame = game.act(key)
        score, frames = score + frame.score, frames + 1
    return {"score": score, "frames": frames, "lives": frame.lives, "decisions_a_second": frames / thinking}


def main(
    frames: str = "10,30,100,300,1000",
    games: int = 10,
    first: int = 100,
    most: int = MOST_FRAMES,
    out: Path = Path("out"),
) -> None:
    """Play what is missing, and print the table."""
    out.mkdir(exist_ok=True)
    path, game = out / "breakout.jsonl", Atari("Breakout")
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for count in map(int, frames.split(",")):
        paddle = Paddle.learned(game, count, 1)
        speed = paddle.response.sum()
        print(f"{count:5d} random frames: {speed:.2f} pixels a frame, by frames {paddle.response.round(2)}", flush=True)
        for seed in range(first, first + games):
            if not any((row["learned"], row["seed"], row["most"]) == (count, seed, most) for row in rows):
                rows.append({"learned": count, "seed": seed, "most": most, **play(game, paddle, seed, most)})
                with path.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
        found = [row for row in rows if (row["learned"], row["most"]) == (count, most)]
        scores = np.array([row["score"] for row in found])
        rate = min(row["decisions_a_second"] for row in found)
        print(
            f"{count:5d} random frames: mean {scores.mean():.0f} ± {scores.std():.0f}, least {scores.min():.0f}, most "
            f"{scores.max():.0f} of {len(found)} games; {rate:.0f} decisions a second at least",
            flush=True,
        )


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
