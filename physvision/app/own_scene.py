"""Scene from a person's own MJCF file: its text beside the analysis, and what of it can be unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from physvision.app.schema import IdentifyRequest
from physvision.core import InputError
from physvision.identification import CustomScene
from physvision.identification.scene_names import find_entry, moving_body_names
from physvision.physics import articulated
from physvision.physics.engine import MechanicalEngine

OWN_SCENE = "own_scene"  # name of this kind of motion in requests
_MAX_CHARACTERS = 2**20
# Properties that are offered, with the axes of those that have some.
_PROPERTIES = {
    "mass": "",
    "joint_damping": "",
    "joint_stiffness": "",
    "friction_loss": "",
    "restitution": "",
    "friction": "",
    "gravity": "xyz",
    "position": "xyz",
    "center_of_mass": "xyz",
}


def scene_path(folder: Path) -> Path:
    """Return the path of an analysis' scene, which is not among the files that are served."""
    return folder / f"{OWN_SCENE}.xml"


def keep_scene(folder: Path, text: str) -> dict[str, Any]:
    """Read a scene, keep it with the analysis, and return what the page offers of it.

    Args:
        folder: Folder of the analysis.
        text: MJCF, without other files.

    Raises:
        InputError: It cannot be simulated, or nothing of it moves; an earlier scene stays.
    """
    if len(text) > _MAX_CHARACTERS:
        raise InputError(f"scene: expected at most {_MAX_CHARACTERS} characters, got {len(text)}")
    if not text.lstrip().startswith("<"):
        raise InputError("scene: expected an MJCF file, which begins with <mujoco>")
    shown = describe_scene(articulated.load(text, dt=0.01))
    scene_path(folder).write_text(text, encoding="utf-8")
    return shown


def describe_scene(engine: MechanicalEngine) -> dict[str, Any]:
    """Return the bodies of a scene that move, and its properties that have a name, with their values."""
    bodies = moving_body_names(engine) if engine.nv else []
    if not bodies:
        raise InputError("scene: no body of it can move")
    names = [name for leaf, axes in _PROPERTIES.items() for name in _entry_names(engine, leaf, axes)]
    entries = [(name, find_entry(engine, name)) for name in names]
    properties = [{"name": name, "value": entry.value, "unit": entry.unit} for name, entry in entries]
    return {"bodies": bodies, "properties": properties}


def _entry_names(engine: MechanicalEngine, leaf: str, axes: str) -> list[str]:
    """Return the names of all numbers of a property; rows without a name cannot be told apart."""
    leaves = engine.properties.leaves()
    if leaf not in leaves:
        return []
    dimension = str(leaves[leaf].shape[0])
    rows = [""] if leaf == "gravity" else [f":{row}" for row in dict.fromkeys(engine.rows.get(dimension, ())) if row]
    return [f"{leaf}{row}{axis and ':' + axis}" for row in rows for axis in (axes or [""])]


def own_motion(request: IdentifyRequest, folder: Path) -> CustomScene | str | None:
    """Return the kind of motion of a request: a scene if it asks for its own, otherwise the name of the kind.

    Raises:
        InputError: There is no scene, or nothing of it is unknown.
    """
    if request.motion != OWN_SCENE:
        return request.motion
    if not scene_path(folder).is_file():
        raise InputError("choose the file of the scene first")
    if not request.unknown:
        raise InputError("choose at least one property of the scene that is unknown")
    return CustomScene(scene_path(folder), dict.fromkeys(request.unknown), request.follow or None)
