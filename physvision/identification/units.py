"""Units of known values, as people type them and as the page of `open` offers them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from physvision.core import InputError
from physvision.identification.model import KnownValue

# SI units in each unit, by dimension; a number without a unit is in SI units.
UNITS: Mapping[str, Mapping[str, float]] = {
    "length": {"m": 1.0, "cm": 0.01, "mm": 0.001},
    "mass": {"kg": 1.0, "g": 0.001},
    "time": {"s": 1.0, "ms": 0.001},
    "angle": {"°": math.radians(1), "rad": 1.0},
    "speed": {"m/s": 1.0, "cm/s": 0.01, "km/h": 1 / 3.6},
    "acceleration": {"m/s²": 1.0, "cm/s²": 0.01},
    "stiffness": {"N/m": 1.0, "N/cm": 100.0, "N/mm": 1000.0},
    "damping": {"1/s": 1.0},
    "drag": {"1/m": 1.0, "1/cm": 100.0},
    "scale": {"px/m": 1.0, "px/cm": 100.0, "px/mm": 1000.0},
}
_DIMENSIONS = {"gravity": "acceleration", "radius": "length"}  # those of the other known values have their names
_ALIASES = {"deg": "°", "m/s2": "m/s²", "m/s^2": "m/s²", "cm/s2": "cm/s²", "cm/s^2": "cm/s²"}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?nan|[-+]?inf)\s*(.*?)\s*")


def units_of(name: str) -> Mapping[str, float]:
    """Return the units of a known value with their SI units; for a property of a scene, those of all dimensions."""
    dimension = _DIMENSIONS.get(name, name)
    return (
        UNITS[dimension] if dimension in UNITS else {unit: si for units in UNITS.values() for unit, si in units.items()}
    )


def si_unit(name: str) -> str:
    """Return the SI unit of a known value; an empty text for a property of a scene."""
    dimension = _DIMENSIONS.get(name, name)
    return next((unit for unit, factor in UNITS.get(dimension, {}).items() if factor == 1.0), "")


def parse_quantity(option: str, name: str, text: str) -> KnownValue:
    """Return a number with its standard deviation, which follows ±, +- or +/-, in SI units; exact if not given.

    Either number may have a unit; one unit holds for both. Numbers without a unit are in SI units.

    Args:
        option: Option that was given, for messages.
        name: Name of the value, which determines the units that are allowed.
        text: Text such as "25cm", "30±1°" or "9.81 m/s²".

    Raises:
        InputError: The text has another form, or a unit of another dimension.
    """
    parts = [_NUMBER.fullmatch(part) for part in re.split(r"±|\+-|\+/-", text)]
    matches = [part for part in parts if part is not None]
    if len(matches) < len(parts) or len(parts) > 2:
        raise InputError(f"{option}: expected a number, such as 9.81, 25cm or 0.033±0.001, got {text!r}")
    numbers, units = zip(*(match.groups() for match in matches), strict=True)
    allowed = units_of(name)
    shared = next((unit for unit in units if unit), None)
    factors = []
    for unit in units:
        unit = _ALIASES.get(unit or shared or "", unit or shared or "")
        if unit and unit not in allowed:
            raise InputError(
                f"{option}: {name}: expected a unit out of {', '.join(allowed)}, or none for SI, got {unit!r}"
            )
        factors.append(allowed.get(unit, 1.0))
    return KnownValue(*(factor * float(number) for factor, number in zip(factors, numbers, strict=True)))
