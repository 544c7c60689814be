"""Kinds of motion that can be identified, with their candidate models and the known values that they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from physvision.identification.kinds import bounce, circular, collision, double_pendulum, explosion, flight, straight
from physvision.identification.model import Evidence, MotionModel


@dataclass(frozen=True)
class MotionKind:
    """Kind of motion that tracks may show.

    Attributes:
        candidate_models: Function from the evidence to the models to fit.
        known_names: Known values that the kind uses besides the scale.
        objects: Number of objects in the motion.
        detects_release: If true, the kind's models find the release by a hand themselves, from the motion before it.
        special_case_of: Kinds that generalize this one, and so explain nothing more where this one explains the tracks.
    """

    candidate_models: Callable[[Evidence], list[MotionModel]]
    known_names: tuple[str, ...] = ()
    objects: int = 1
    detects_release: bool = False
    special_case_of: tuple[str, ...] = ()


KINDS: Mapping[str, MotionKind] = {
    "pendulum": MotionKind(circular.pendulum_models, ("gravity", "length", "damping", "drag")),
    "double_pendulum": MotionKind(double_pendulum.candidate_models, ("gravity",), objects=2),
    "projectile": MotionKind(
        partial(flight.candidate_models, kind="projectile"), ("gravity", "angle", "drag"), detects_release=True
    ),
    "bounce": MotionKind(bounce.candidate_models, ("gravity", "radius")),
    "spring": MotionKind(straight.spring_models, ("mass", "stiffness", "damping"), special_case_of=("pendulum",)),
    "slide": MotionKind(straight.slide_models, ("gravity", "angle"), special_case_of=("projectile",)),
    "roll": MotionKind(straight.roll_models, ("angle",), special_case_of=("projectile",)),
    "collision": MotionKind(collision.candidate_models, objects=2),
    "explosion": MotionKind(explosion.candidate_models, objects=2),
    "circular": MotionKind(circular.circular_models, ("radius",), special_case_of=("pendulum",)),
    "sink": MotionKind(straight.sink_models),  # before the fall that is braked to a steady speed, which it equals
    "fall": MotionKind(
        partial(flight.candidate_models, kind="fall"),
        ("gravity", "drag"),
        detects_release=True,
        special_case_of=("projectile",),
    ),
}
KNOWN_NAMES = ("gravity", "length", "mass", "stiffness", "radius", "angle", "damping", "drag", "scale")
