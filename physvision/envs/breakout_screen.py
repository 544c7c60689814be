"""Detection of Breakout's paddle, ball and bricks on the Atari screen, by color and position alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from physvision.envs.atari import Image

# Bounds of the playing field and sizes of its objects, in pixels.
LEFT, RIGHT, ROOF, FLOOR = 8, 152, 32, 189
BRICK_TOP, BRICK_HEIGHT, BRICK_WIDTH, ROWS, COLUMNS = 57, 6, 8, 6, 18
BALL_WIDTH, BALL_HEIGHT, PADDLE_HEIGHT = 2, 4, 4
_RED = 200  # red channel of the paddle, the ball and the top row of bricks


def find_paddle(image: Image) -> tuple[int, int] | None:
    """Return the left edge and width of the paddle in pixels: the longest run of its color in the row."""
    row = np.concatenate([[0], image[FLOOR + 1, LEFT:RIGHT, 0] == _RED, [0]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(row))
    if not len(edges):
        return None
    starts, widths = edges[::2], edges[1::2] - edges[::2]
    longest = int(widths.argmax())
    return LEFT + int(starts[longest]), int(widths[longest])


def find_bricks(image: Image) -> Bool[np.ndarray, "rows columns"]:
    """Return a mask that is true for bricks that are on the screen."""
    rows = BRICK_TOP + BRICK_HEIGHT * np.arange(ROWS) + 3
    columns = LEFT + BRICK_WIDTH * np.arange(COLUMNS)
    lit = np.any(image[rows][:, np.stack([columns + 1, columns + 6])], axis=-1)
    return np.logical_and(lit[:, 0], lit[:, 1])


def find_ball(image: Image) -> tuple[float, float] | None:
    """Return the left and upper edge of the ball in pixels; None if it is not on the screen."""
    mask = image[ROOF:FLOOR, LEFT:RIGHT, 0] == _RED
    top = mask[BRICK_TOP - ROOF : BRICK_TOP - ROOF + BRICK_HEIGHT].reshape(BRICK_HEIGHT, COLUMNS, BRICK_WIDTH)
    top &= ~top.all((0, 2))[None, :, None]
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return None
    return LEFT + float(columns.min()), ROOF + float(rows.min())
