"""Numbers as people read them: rounded by their error, angles in degrees too, odds of rival kinds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from physvision.identification.parameters import Parameter

_MIN_ODDS = 1e-9  # odds below which a rival is not listed
_MAX_DIGITS = 12


def round_to_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Round a value and its interval to two digits of the interval's half-width."""
    half_width = (high - low) / 2
    largest = max(abs(value), abs(low), abs(high))
    if not half_width > largest * 10.0**-_MAX_DIGITS:
        return (f"{value:.5g}", f"{low:.5g}", f"{high:.5g}")
    decimals = 1 - math.floor(math.log10(half_width))
    if decimals > 6 or largest >= 1e6:
        digits = max(decimals + math.floor(math.log10(largest)) + 1, 2)
        return (f"{value:.{digits}g}", f"{low:.{digits}g}", f"{high:.{digits}g}")
    numbers = (round(number, decimals) + 0.0 for number in (value, low, high))  # no negative zeros
    value_text, low_text, high_text = (f"{number:.{max(decimals, 0)}f}" for number in numbers)
    return value_text, low_text, high_text


def round_like(number: float, text: str) -> Decimal:
    """Round a number to the last digit of another one."""
    return Decimal(repr(number)).quantize(Decimal(1).scaleb(int(Decimal(text).as_tuple().exponent))) + 0


def value_and_interval(parameter: Parameter) -> tuple[str, str]:
    """Value with its unit, and 95 % interval, rounded to it; angles have degrees behind them."""
    assert parameter.value is not None
    assert parameter.interval_95 is not None
    value, low, high = round_to_interval(parameter.value, *parameter.interval_95)
    return f"{value} {parameter.unit}".rstrip(), f"{low} to {high}{in_degrees(parameter)}"


def in_degrees(parameter: Parameter) -> str:
    """Return an angle with its interval in degrees, in parentheses; nothing for other parameters."""
    if not parameter.unit.startswith("rad") or parameter.value is None or parameter.interval_95 is None:
        return ""
    value, low, high = round_to_interval(*map(math.degrees, (parameter.value, *parameter.interval_95)))
    unit = parameter.unit.replace("rad", "°", 1)
    return f"  ({value}{unit}, {low} to {high}{unit})"


def describe_rivals(motion: str, odds: Mapping[str, float]) -> str:
    """Return the kinds other than `motion` with their odds against it."""
    rivals = [f"{kind} {describe_odds(value)}" for kind, value in odds.items() if kind != motion and value >= _MIN_ODDS]
    return ", ".join(rivals) or "none"


def describe_odds(odds: float) -> str:
    """Return odds of at most one as a ratio, such as 1 : 240."""
    ratio = min(1 / max(odds, 1e-12), 1e12)
    if ratio < 10:
        return f"1 : {ratio:.2g}"
    digits = 1 - math.floor(math.log10(ratio))
    return f"1 : {round(ratio, digits):,.0f}"
