"""Reading of model files as specifications of MuJoCo, before they are compiled."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
import re
from pathlib import Path

import mujoco

from physvision.core import FileError, ModelError
from physvision.physics.articulated.loading.sizes import check_sizes

INLINE = "the inline XML"


def open_specification(source: str | os.PathLike[str], visual: bool = False) -> tuple[mujoco.MjSpec, str, bool]:
    """Read the specification of a model; return it, its name for messages, and true for URDF.

    Args:
        source: Path of the file, or the XML itself.
        visual: If true, visual elements of URDF are kept.

    Raises:
        FileError: The file does not exist or cannot be read.
        ModelError: The file is no model.
    """
    text = os.fspath(source)
    inline = text.lstrip().startswith("<")
    name = INLINE if inline else text
    if not inline:
        path = Path(text)
        if not path.is_file():
            raise FileError(f"there is no model file {text!r}")
        try:
            content = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"{text} cannot be read as XML: {error}") from error
    else:
        content = text
    check_sizes(content, None if inline else Path(text).parent, name)
    is_urdf = "<robot" in content and "<mujoco" not in content.split("<robot")[0]
    try:
        if visual and is_urdf:
            specification = mujoco.MjSpec.from_string(_with_visual_elements(content))
            specification.modelfiledir = "" if inline else str(Path(text).resolve().parent)
        else:
            specification = mujoco.MjSpec.from_string(text) if inline else mujoco.MjSpec.from_file(text)
    except ValueError as error:
        raise ModelError(f"{name}: {error}") from error
    return specification, name, is_urdf


def _with_visual_elements(content: str) -> str:
    """Return URDF with an option of MuJoCo's by which its compiler keeps visual elements."""
    option = 'discardvisual="false"'
    if "<compiler" in content:
        return re.sub(r'\sdiscardvisual\s*=\s*"\w+"', " ", content).replace("<compiler", f"<compiler {option}", 1)
    return re.sub(r"(<robot[^>]*>)", rf"\1<mujoco><compiler {option}/></mujoco>", content, count=1)
