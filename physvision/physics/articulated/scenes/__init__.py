"""Scenes by name: model files that come with physvision, for experiments with robots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from physvision.core import FileError
from physvision.physics.articulated.engine import Articulation
from physvision.physics.articulated.loading import load as load_file

_FOLDER = Path(__file__).resolve().parent
# What a model file does not say: restitution of all shapes, and the largest speed of servos, rad/s.
_RESTITUTION = {"ball": 0.5, "golf": 0.5}
SERVO_SPEED = {"arm": math.radians(45.0), "quadruped": 10.0, "ten_quadrupeds": 10.0}


def names() -> list[str]:
    """All scenes, in alphabetical order."""
    return sorted(file.stem for file in _FOLDER.glob("*.xml"))


def path(name: str) -> Path:
    """The model file of a scene, which MuJoCo reads too."""
    if name not in names():
        raise FileError(f"there is no scene {name!r}; there are {', '.join(names())}")
    return _FOLDER / f"{name}.xml"


def load(name: str, dt: float = 0.01, ignore: Sequence[str] = (), restitution: float | None = None) -> Articulation:
    """The engine of a scene.

    Args:
        name: one of `names()`.
        dt: seconds a step.
        ignore: what is not to be simulated, as of `articulated.load`.
        restitution: of all shapes; the scene's own if not given.
    """
    restitution = _RESTITUTION.get(name, 0.0) if restitution is None else restitution
    speed = SERVO_SPEED.get(name, math.inf)
    return load_file(path(name), dt, ignore=ignore, restitution=restitution, servo_speed=speed)
