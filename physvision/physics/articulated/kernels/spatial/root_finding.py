"""A root between two places, by the Illinois method: a secant in which an end that stays twice loses half its value."""

import warp as wp

from physvision.physics.articulated.kernels.precision import scalar


@wp.struct
class Bracket:
    """Two places between which a function changes its sign, their values, and which was moved last (1 low, 2 high)."""

    low: scalar
    high: scalar
    value_low: scalar
    value_high: scalar
    moved: int


@wp.func
def bracket(low: scalar, high: scalar, value_low: scalar, value_high: scalar):
    """The bracket that a search begins with."""
    b = Bracket()
    b.low = low
    b.high = high
    b.value_low = value_low
    b.value_high = value_high
    b.moved = 0
    return b


@wp.func
def guess(b: Bracket):
    """Where the secant is zero; the middle, where rounding puts that outside."""
    place = (b.low * b.value_high - b.high * b.value_low) / (b.value_high - b.value_low)
    if not (place > b.low and place < b.high):
        place = scalar(0.5) * (b.low + b.high)
    return place


@wp.func
def narrowed(b: Bracket, place: scalar, value: scalar, is_low: bool):
    """The bracket with its low end, or its high one, moved to a place between."""
    if is_low:
        b.low = place
        b.value_low = value
        if b.moved == 1:
            b.value_high = scalar(0.5) * b.value_high
        b.moved = 1
    else:
        b.high = place
        b.value_high = value
        if b.moved == 2:
            b.value_low = scalar(0.5) * b.value_low
        b.moved = 2
    return b
