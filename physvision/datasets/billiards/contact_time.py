"""Time of impact of two balls: the first root of a polynomial in time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from jaxtyping import Float

# Separation of touching balls by rounding, as a fraction of their squared distance.
_CONTACT_TOLERANCE = 1e-12
# A coefficient that is smaller than this fraction of the largest one is below the rounding of the polynomial.
_COEFFICIENT_TOLERANCE = 1e-17


def first_contact(
    gap: Float[np.ndarray, "pairs 2"],
    velocity: Float[np.ndarray, "pairs 2"],
    acceleration: Float[np.ndarray, "pairs 2"],
    contact_distance: Float[np.ndarray, " pairs"],
    min_approach: float,
    until: Float[np.ndarray, " pairs"],
) -> Float[np.ndarray, " pairs"]:
    """Seconds until |gap + velocity t + ½ acceleration t²| falls to the contact distance; infinity if it does not.

    Args:
        gap: Vector from the center of the first ball to that of the second.
        velocity: Rate of the gap.
        acceleration: Rate of the velocity.
        contact_distance: Sum of the radii.
        min_approach: Approach speed below which balls count as not approaching.
        until: Seconds for which the acceleration lasts, where there is any; later contacts are not sought.
    """
    constant = (gap**2).sum(1) - contact_distance**2
    half_linear = (gap * velocity).sum(1)
    quadratic = (velocity**2).sum(1)
    approaching = half_linear < -min_approach * contact_distance
    waits = np.full(len(gap), np.inf)
    curved = acceleration.any(axis=1)

    discriminant = half_linear**2 - quadratic * constant
    straight = approaching & ~curved & (discriminant >= 0)
    # The smaller root of constant + 2 half_linear t + quadratic t², in the form that loses no digits.
    denominator = np.sqrt(np.maximum(discriminant, 0.0)) - half_linear
    np.divide(np.maximum(constant, 0.0), denominator, out=waits, where=straight)

    for pair in np.flatnonzero(curved):
        half = 0.5 * acceleration[pair]
        if constant[pair] <= _CONTACT_TOLERANCE * contact_distance[pair] ** 2:
            pressed = (
                half_linear[pair] <= min_approach * contact_distance[pair]
                and quadratic[pair] + 2 * gap[pair] @ half < 0
            )
            if approaching[pair] or pressed:
                waits[pair] = 0.0
                continue
        quartic = np.array(
            [
                half @ half,
                2 * velocity[pair] @ half,
                quadratic[pair] + 2 * gap[pair] @ half,
                2 * half_linear[pair],
                constant[pair],
            ]
        )
        # In units of `until` the coefficients are the contributions of the powers.
        waits[pair] = until[pair] * _first_descent(quartic * until[pair] ** np.arange(4, -1, -1))
    return waits


def _first_descent(quartic: np.ndarray) -> float:
    """First root in 0 to 1 at which the polynomial (highest power first) falls through zero; infinity without one."""
    # Leading coefficients that are rounding alone would make the roots inexact: balls that slow down alike pass each
    # other along a line, but for rounding.
    significant = np.abs(quartic) > _COEFFICIENT_TOLERANCE * np.abs(quartic).max()
    quartic = quartic[np.argmax(significant) :]
    derivative = np.polyder(quartic)
    extrema = np.roots(derivative)
    # A double extremum comes out as a pair of nearly real roots; one too many only splits an interval.
    extrema = np.sort(extrema.real[np.abs(extrema.imag) <= 1e-6 * np.abs(extrema.real)])
    for low, high in pairwise([0.0, *extrema[(extrema > 0) & (extrema < 1)].tolist(), 1.0]):
        if np.polyval(quartic, low) > 0 >= np.polyval(quartic, high):
            return _safeguarded_newton(quartic, derivative, low, high)
    return np.inf


def _safeguarded_newton(polynomial: np.ndarray, derivative: np.ndarray, low: float, high: float) -> float:
    """Root between `low`, where the polynomial is positive, and `high`, by Newton's method safeguarded by bisection."""
    time = 0.5 * (low + high)
    for _ in range(100):
        value, slope = float(np.polyval(polynomial, time)), float(np.polyval(derivative, time))
        low, high = (time, high) if value > 0 else (low, time)
        candidate = time - value / slope if slope != 0 else low
        if not low < candidate < high:
            candidate = 0.5 * (low + high)
        if abs(candidate - time) <= 4e-16 * abs(time):
            return float(candidate)
        time = candidate
    return float(time)
