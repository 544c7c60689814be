"""Size limits of model files, checked before MuJoCo's compiler, which would crash."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from physvision.core import ModelError
from physvision.physics.articulated.settings import SETTINGS

_SIZES = {"hfield": ("nrow", "ncol"), "texture": ("width", "height"), "flexcomp": ("count",)}


def check_sizes(text: str, folder: Path | None, name: str) -> None:
    """Raise ModelError if a model, or a file that it includes, asks for too many copies or numbers.

    Args:
        text: XML of the model.
        folder: Folder of included files; None for inline XML.
        name: Name of the model, for messages.
    """
    copies = _count_copies(_parse(text), folder, name, 1, 0)
    if copies > SETTINGS.max_replicas:
        raise ModelError(
            f"{name}: its `replicate` elements make {copies} copies; expected at most {SETTINGS.max_replicas}"
        )


def _parse(text: str) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None  # MuJoCo reports the error


def _count_copies(
    element: ElementTree.Element | None, folder: Path | None, name: str, multiplicity: int, depth: int
) -> int:
    """Number of copies that `replicate` elements make inside an element that is itself made several times."""
    if element is None or depth > SETTINGS.max_include_depth:
        return 0
    numbers = 1
    for attribute in _SIZES.get(element.tag, ()):
        for word in element.get(attribute, "").split():
            numbers *= max(1, _integer(word))
    if numbers > SETTINGS.max_asset_numbers:
        raise ModelError(
            f"{name}: {element.tag} {element.get('name', '')!r} has {numbers} numbers; expected at most "
            f"{SETTINGS.max_asset_numbers}"
        )
    if element.tag == "include" and folder is not None:
        path = folder / element.get("file", "")
        included = _parse(path.read_text(errors="replace")) if path.is_file() else None
        return _count_copies(included, folder, name, multiplicity, depth + 1)
    copies = 0
    if element.tag == "replicate":
        multiplicity *= max(1, _integer(element.get("count", "1")))
        copies = multiplicity
    return copies + sum(_count_copies(child, folder, name, multiplicity, depth) for child in element)


def _integer(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        return 1
