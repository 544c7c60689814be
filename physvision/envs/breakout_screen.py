"""Detection of Breakout's paddle, ball and bricks on the Atari screen, by color and position alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from physvision.envs.atari import Image

# Bounds of the playing field and sizes of its objects, in pixels.
LEFT, RIGHT, FIELD_TOP, FIELD_BOTTOM = 8, 152, 32, 189
BRICK_TOP, BRICK_HEIGHT, BRICK_WIDTH, ROWS, COLUMNS = 57, 6, 8, 6, 18
BALL_WIDTH, BALL_HEIGHT = 2, 4
_RED = 200  # red channel of the paddle, the ball and the top row of bricks


def find_paddle(image: Image) -> tuple[int, int] | None:
    """Return the left edge and width of the paddle in pixels: the longest run of its color in the row."""
    row = np.concatenate([[0], image[FIELD_BOTTOM + 1, LEFT:RIGHT, 0] == _RED, [0]]).astype(np.int8)
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
    has_color = np.any(image[rows][:, np.stack([columns + 1, columns + 6])], axis=-1)
    return np.logical_and(has_color[:, 0], has_color[:, 1])


def find_ball(image: Image) -> tuple[float, float] | None:
    """Return the left and upper edge of the ball in pixels; None if it is not on the screen."""
    mask = image[FIELD_TOP:FIELD_BOTTOM, LEFT:RIGHT, 0] == _RED
    rows = slice(BRICK_TOP - FIELD_TOP, BRICK_TOP - FIELD_TOP + BRICK_HEIGHT)
    top_brick_row = mask[rows].reshape(BRICK_HEIGHT, COLUMNS, BRICK_WIDTH)
    top_brick_row &= ~top_brick_row.all((0, 2))[None, :, None]
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return None
    return LEFT + float(columns.min()), FIELD_TOP + float(rows.min())
