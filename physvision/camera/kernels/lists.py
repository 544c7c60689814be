"""Lists of fixed size about a pixel that several layers share."""

import warp as wp

from .precision import scalar
from .scene import vec3

int2 = wp.types.vector(length=2, dtype=int)
int3 = wp.types.vector(length=3, dtype=int)
vec2 = wp.types.vector(length=2, dtype=scalar)
vec5 = wp.types.vector(length=5, dtype=scalar)

# Limits of one pixel; the rest is left out.
MAX_LAYERS = wp.constant(10)
MAX_LINES = wp.constant(40)
MAX_PIECES = wp.constant(48)
MAX_BORDERS = wp.constant(80)
# One more for the background.
MAX_AREAS = wp.constant(MAX_LAYERS + 1)


@wp.struct
class Lists:
    """Layers of a pixel from near to far, their outlines, and their visible parts."""

    lines: wp.array(dtype=vec3)  # a, b, c of each line: inside of a x + b y + c ≥ 0 about the pixel's center
    codes: wp.array(dtype=int2)  # edge function of each line, and its side, end or other patch
    layers: wp.array(dtype=int3)  # patch, first line and number of lines of each layer
    spans: wp.array(dtype=vec2)  # interval of the current line that each layer covers
    moments: wp.array(dtype=vec3)  # area and centroid of each layer and of the background
    spreads: wp.array(dtype=vec3)  # extents of their visible parts, see `sample_patch`
    pieces: wp.array(dtype=vec3)  # center and length of each visible piece of outline
    sides: wp.array(dtype=int3)  # line, inner layer and outer layer of each piece


@wp.func
def lists_of(
    lines: wp.array(dtype=vec3),
    codes: wp.array(dtype=int2),
    layers: wp.array(dtype=int3),
    spans: wp.array(dtype=vec2),
    moments: wp.array(dtype=vec3),
    spreads: wp.array(dtype=vec3),
    pieces: wp.array(dtype=vec3),
    sides: wp.array(dtype=int3),
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
