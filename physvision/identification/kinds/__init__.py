"""The kinds of motion that are known: each builds an engine and says what is unknown of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from physvision.identification.kinds import (
    bounce,
    circular,
    collision,
    double_pendulum,
    flight,
    pendulum,
    slope,
    spring,
)
from physvision.identification.model import Case, Model

Propose = Callable[[Case], list[Model]]

KINDS: Mapping[str, Propose] = {
    "pendulum": pendulum.propose,
    "double_pendulum": double_pendulum.propose,
    "projectile": flight.projectile,
    "bounce": bounce.propose,
    "spring": spring.propose,
    "slide": slope.slide,
    "roll": slope.roll,
    "collision": collision.propose,
    "circular": circular.propose,
    "fall": flight.fall,
}
# What may be told of a motion, beside its properties in a scene of one's own.
KNOWN = ("gravity", "length", "mass", "stiffness", "radius", "angle", "scale")
# How many things move; one if not said.
OBJECTS = {"double_pendulum": 2, "collision": 2}
# Kinds that find out themselves when a hand lets go, from what it does before.
LET_GO = ("projectile", "fall")
# Kinds that are special cases of others: where the first explains the tracks, the second says nothing more.
SIMPLER = (
    ("fall", "projectile"), ("circular", "pendulum"), ("roll", "projectile"), ("slide", "projectile"),
    ("spring", "pendulum"),
)  # fmt: skip
