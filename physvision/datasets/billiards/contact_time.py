"""When two balls touch: the first root of a polynomial in time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from jaxtyping import Float

# Touching balls are apart by rounding, this share of their distance squared.
_TOUCHING = 1e-12
# A power whose share of the polynomial is less than this is below its rounding.
_NEGLIGIBLE = 1e-17


def first_contact(
    gap: Float[np.ndarray, "pairs 2"],
    speed: Float[np.ndarray, "pairs 2"],
    acceleration: Float[np.ndarray, "pairs 2"],
    reach: Float[np.ndarray, " pairs"],
    rest: float,
    until: Float[np.ndarray, " pairs"],
) -> Float[np.ndarray, " pairs"]:
    """Seconds until |gap + speed t + ½ acceleration t²| falls to `reach`; infinity where it does not.

    Args:
        gap: from the centre of one ball to that of the other.
        speed: the gap's rate.
        acceleration: the rate's rate.
        reach: sum of the radii.
        rest: approach slower than this is none.
        until: where there is acceleration, seconds for which it lasts; later contacts are not sought.
    """
    constant = (gap**2).sum(1) - reach**2
    half_linear = (gap * speed).sum(1)
    quadratic = (speed**2).sum(1)
    approaching = half_linear < -rest * reach
    waits = np.full(len(gap), np.inf)
    curved = acceleration.any(axis=1)

    under_root = half_linear**2 - quadratic * constant
    straight = approaching & ~curved & (under_root >= 0)
    # The smaller root of constant + 2 half_linear t + quadratic t², in the form that loses no digits.
    denominator = np.sqrt(np.maximum(under_root, 0.0)) - half_linear
    np.divide(np.maximum(constant, 0.0), denominator, out=waits, where=straight)

    for pair in np.flatnonzero(curved):
        half = 0.5 * acceleration[pair]
        if constant[pair] <= _TOUCHING * reach[pair] ** 2:
            pressed = half_linear[pair] <= rest * reach[pair] and quadratic[pair] + 2 * gap[pair] @ half < 0
            if approaching[pair] or pressed:
                waits[pair] = 0.0
                continue
        quartic = np.array(
            [
                half @ half,
                2 * speed[pair] @ half,
                quadratic[pair] + 2 * gap[pair] @ half,
                2 * half_linear[pair],
                constant[pair],
            ]
        )
        # In units of `until` the coefficients say how much each power counts.
        share = _first_descent(quartic * until[pair] ** np.arange(4, -1, -1))
        waits[pair] = share * until[pair]
    return waits


def _first_descent(quartic: np.ndarray) -> float:
    """The first root in 0 to 1 at which the polynomial (highest power first) falls through zero; else infinity."""
    # Powers that count for nothing would make the others' roots inexact: balls that slow down alike move past each
    # other along a line, but for rounding.
    counting = np.abs(quartic) > _NEGLIGIBLE * np.abs(quartic).max()
    quartic = quartic[np.argmax(counting) :]
    derivative = np.polyder(quartic)
    turns = np.roots(derivative)
    # A double turn comes out as a pair of nearly real roots; a turn too many only splits an interval.
    turns = np.sort(turns.real[np.abs(turns.imag) <= 1e-6 * np.abs(turns.real)])
    for low, high in pairwise([0.0, *turns[(turns > 0) & (turns < 1)].tolist(), 1.0]):
        if np.polyval(quartic, low) > 0 >= np.polyval(quartic, high):
            return _bisect(quartic, derivative, low, high)
    return np.inf


def _bisect(polynomial: np.ndarray, derivative: np.ndarray, low: float, high: float) -> float:
    """The root between `low`, where the polynomial is positive, and `high`: Newton's steps, or halving."""
    time = 0.5 * (low + high)
    for _ in range(100):
        value, slope = float(np.polyval(polynomial, time)), float(np.polyval(derivative, time))
        low, high = (time, high) if value > 0 else (low, time)
        following = time - value / slope if slope != 0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - time) <= 4e-16 * abs(time):
            return float(following)
        time = following
    return float(time)
