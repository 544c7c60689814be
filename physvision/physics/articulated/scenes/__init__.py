"""Model files of robots that come with physvision, by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from physvision.core import FileError
from physvision.physics.articulated.contact import ContactSettings
from physvision.physics.articulated.engine import Articulation
from physvision.physics.articulated.loading import ServoSettings, load as load_file

_FOLDER = Path(__file__).resolve().parent
# Quantities that model files lack: restitution of all shapes, and largest commanded speed of servos, rad/s.
_RESTITUTION = {"ball": 0.5, "golf": 0.5}
MAX_SERVO_SPEED = {"arm": math.radians(45.0), "quadruped": 10.0, "ten_quadrupeds": 10.0}


def names() -> list[str]:
    """Names of all scenes, in alphabetical order."""
    return sorted(file.stem for file in _FOLDER.glob("*.xml"))


def path(name: str) -> Path:
    """Path of the model file of a scene."""
    if name not in names():
        raise FileError(f"scene: expected one of {', '.join(names())}, got {name!r}")
    return _FOLDER / f"{name}.xml"


def load(name: str, dt: float = 0.01, ignore: Sequence[str] = (), restitution: float | None = None) -> Articulation:
    """Load the engine of a scene.

    Args:
        name: Name of the scene, one of `names()`.
        dt: Length of a step, s.
        ignore: Features to leave out, as in `articulated.load`.
        restitution: Coefficient of restitution of all shapes; None for the scene's own.
    """
    restitution = _RESTITUTION.get(name, 0.0) if restitution is None else restitution
    speed = MAX_SERVO_SPEED.get(name, math.inf)
    contact = ContactSettings(restitution=restitution)
    return load_file(path(name), dt, ignore=ignore, contact=contact, servos=ServoSettings(speed))
