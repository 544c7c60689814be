"""What is found out about a pixel that several layers share, in lists of a fixed size."""

import warp as wp

from .precision import scalar

# Of one pixel: what does not fit is left out.
MOST_LAYERS = wp.constant(10)
MOST_LINES = wp.constant(40)
MOST_PIECES = wp.constant(48)
MOST_BORDERS = wp.constant(80)

LINE_NUMBERS = wp.constant(3 * MOST_LINES)
LINE_CODES = wp.constant(2 * MOST_LINES)
LAYER_CODES = wp.constant(3 * MOST_LAYERS)
LAYER_SPANS = wp.constant(2 * MOST_LAYERS)
# One more for the background.
LAYER_MOMENTS = wp.constant(3 * (MOST_LAYERS + 1))
PIECE_NUMBERS = wp.constant(3 * MOST_PIECES)
BORDER_NUMBERS = wp.constant(5 * MOST_BORDERS)
BORDER_CODES = wp.constant(2 * MOST_BORDERS)


@wp.struct
class Lists:
    """The layers of a pixel from near to far, their outlines, and what is seen of them."""

    lines: wp.array(dtype=scalar)  # a, b, c of each: inside of a x + b y + c ≥ 0 about the pixel's middle
    codes: wp.array(dtype=int)  # of each line: its edge function, and which side, end or other patch that is of
    layers: wp.array(dtype=int)  # of each: patch, first line, number of lines
    spans: wp.array(dtype=scalar)  # of each layer: from where to where it covers the line that is looked along
    moments: wp.array(dtype=scalar)  # of each layer and the background: area, x and y of its middle
    spreads: wp.array(dtype=scalar)  # the same: extents of what is seen, see `look`
    pieces: wp.array(dtype=scalar)  # of each visible piece of outline: x and y of its middle, length
    sides: wp.array(dtype=int)  # of each piece: line, layer inside, layer outside


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
    """Put the memory of one thread together; only a call makes an array of such memory, an assignment does not."""
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
