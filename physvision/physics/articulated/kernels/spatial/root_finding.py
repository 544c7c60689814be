"""Bracketed root finding by the Illinois method, a regula falsi that halves the value at a retained end."""

import warp as wp

from ..precision import scalar


@wp.struct
class Bracket:
    """Interval with a sign change, the values at its ends, and the end that was moved last (1 low, 2 high)."""

    low: scalar
    high: scalar
    value_low: scalar
    value_high: scalar
    last_moved: int


@wp.func
def make_bracket(low: scalar, high: scalar, value_low: scalar, value_high: scalar):
    """Return the bracket with which a search begins."""
    b = Bracket()
    b.low = low
    b.high = high
    b.value_low = value_low
    b.value_high = value_high
    b.last_moved = 0
    return b


@wp.func
def secant_estimate(b: Bracket):
    """Return the root of the secant, or the midpoint if rounding puts the root outside."""
    estimate = (b.low * b.value_high - b.high * b.value_low) / (b.value_high - b.value_low)
    if not (estimate > b.low and estimate < b.high):
        estimate = scalar(0.5) * (b.low + b.high)
    return estimate


@wp.func
def narrow_bracket(b: Bracket, point: scalar, value: scalar, is_low: bool):
    """Move the low or the high end of a bracket to a point inside."""
    if is_low:
        b.low = point
        b.value_low = value
        if b.last_moved == 1:
            b.value_high = scalar(0.5) * b.value_high
        b.last_moved = 1
    else:
        b.high = point
        b.value_high = value
        if b.last_moved == 2:
            b.value_low = scalar(0.5) * b.value_low
        b.last_moved = 2
    return b
