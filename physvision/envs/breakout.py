"""What is on Breakout's screen: paddle, ball and bricks, by their colours and places alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from physvision.envs.atari import Picture

LEFT, RIGHT, ROOF, FLOOR = 8, 152, 32, 189  # of the field, pixels
BRICK_TOP, BRICK_HEIGHT, BRICK_WIDTH, ROWS, COLUMNS = 57, 6, 8, 6, 18
BALL_WIDTH, BALL_HEIGHT, PADDLE_HEIGHT = 2, 4, 4
_RED = 200  # of paddle, ball and the top row of bricks


def find_paddle(picture: Picture) -> tuple[int, int] | None:
    """Left edge and width of the paddle: the longest stretch of its colour in its row."""
    row = np.concatenate([[0], picture[FLOOR + 1, LEFT:RIGHT, 0] == _RED, [0]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(row))
    if not len(edges):
        return None
    starts, widths = edges[::2], edges[1::2] - edges[::2]
    longest = int(widths.argmax())
    return LEFT + int(starts[longest]), int(widths[longest])


def find_bricks(picture: Picture) -> Bool[np.ndarray, "rows columns"]:
    """Which bricks are there."""
    rows = BRICK_TOP + BRICK_HEIGHT * np.arange(ROWS) + 3
    columns = LEFT + BRICK_WIDTH * np.arange(COLUMNS)
    bright = np.any(picture[rows][:, np.stack([columns + 1, columns + 6])], axis=-1)
    return np.logical_and(bright[:, 0], bright[:, 1])


def find_ball(picture: Picture) -> tuple[float, float] | None:
    """Left and upper edge of the ball."""
    seen = picture[ROOF:FLOOR, LEFT:RIGHT, 0] == _RED
    top = seen[BRICK_TOP - ROOF : BRICK_TOP - ROOF + BRICK_HEIGHT].reshape(BRICK_HEIGHT, COLUMNS, BRICK_WIDTH)
    top &= ~top.all((0, 2))[None, :, None]
    rows, columns = np.nonzero(seen)
    if not len(rows):
        return None
    return LEFT + float(columns.min()), ROOF + float(rows.min())
