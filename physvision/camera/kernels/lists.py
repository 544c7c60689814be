"""Lists of fixed size about a pixel that several layers share."""

import warp as wp

from .precision import scalar

# Limits of one pixel; the rest is left out.
MAX_LAYERS = wp.constant(10)
MAX_LINES = wp.constant(40)
MAX_PIECES = wp.constant(48)
MAX_BORDERS = wp.constant(80)

LINE_NUMBERS = wp.constant(3 * MAX_LINES)
LINE_CODES = wp.constant(2 * MAX_LINES)
LAYER_CODES = wp.constant(3 * MAX_LAYERS)
LAYER_SPANS = wp.constant(2 * MAX_LAYERS)
# One more for the background.
LAYER_MOMENTS = wp.constant(3 * (MAX_LAYERS + 1))
PIECE_NUMBERS = wp.constant(3 * MAX_PIECES)
BORDER_NUMBERS = wp.constant(5 * MAX_BORDERS)
BORDER_CODES = wp.constant(2 * MAX_BORDERS)


@wp.struct
class Lists:
    """Layers of a pixel from near to far, their outlines, and their visible parts."""

    lines: wp.array(dtype=scalar)  # a, b, c of each line: inside of a x + b y + c ≥ 0 about the pixel's center
    codes: wp.array(dtype=int)  # edge function of each line, and its side, end or other patch
    layers: wp.array(dtype=int)  # patch, first line and number of lines of each layer
    spans: wp.array(dtype=scalar)  # interval of the current line that each layer covers
    moments: wp.array(dtype=scalar)  # area and centroid of each layer and of the background
    spreads: wp.array(dtype=scalar)  # extents of their visible parts, see `sample_patch`
    pieces: wp.array(dtype=scalar)  # center and length of each visible piece of outline
    sides: wp.array(dtype=int)  # line, inner layer and outer layer of each piece


@wp.func
def lists_of(
    lines: wp.array(dtype=scalar),
    codes: wp.array(dtype=int),
    layers: wp.array(dtype=int),
    spans: wp.array(dtype=scalar),
    moments: wp.array(dtype=scalar),
    spreads: wp.array(dtype=scalar),
    pieces: wp.array(dtype=scalar),
    sides: wp.array(dtype=int),
):
    """Put the arrays of one thread together; only a call makes an array of local memory, an assignment does not."""
    lists = Lists()
    lists.lines = lines
    lists.codes = codes
    lists.layers = layers
    lists.spans = spans
    lists.moments = moments
    lists.spreads = spreads
    lists.pieces = pieces
    lists.sides = sides
    return lists
