"""Model files that ask for more than a machine has are refused before MuJoCo's compiler meets them: it would crash."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from physvision.core import ModelError

MOST_COPIES = 10_000  # of all that `replicate` makes
MOST_NUMBERS = 10_000_000  # of a height field, a texture or a soft body
_DEEPEST = 20  # files that include files


def check_sizes(text: str, folder: Path | None, name: str) -> None:
    """Raise where the model, or a file that it includes, asks for more copies or numbers than anyone can mean.

    Args:
        text: the XML.
        folder: where included files are looked for; None where there are none.
        name: of the model, for messages.
    """
    copies = _visit(_parsed(text), folder, name, 1, 0)
    if copies > MOST_COPIES:
        raise ModelError(f"{name}: its `replicate` elements make {copies} copies; at most {MOST_COPIES} are taken")


def _parsed(text: str) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None  # MuJoCo says what is wrong


def _visit(element: ElementTree.Element | None, folder: Path | None, name: str, times: int, depth: int) -> int:
    """How many copies are made in all, `times` being those of the element itself."""
    if element is None or depth > _DEEPEST:
        return 0
    numbers = 1
    for attribute in {"hfield": ("nrow", "ncol"), "texture": ("width", "height"), "flexcomp": ("count",)}.get(
        element.tag, ()
    ):
        for word in element.get(attribute, "").split():
            numbers *= max(1, _whole(word))
    if numbers > MOST_NUMBERS:
        raise ModelError(f"{name}: {element.tag} {element.get('name', '')!r} has {numbers} numbers, too many")
    if element.tag == "include" and folder is not None:
        path = folder / element.get("file", "")
        inner = _parsed(path.read_text(errors="replace")) if path.is_file() else None
        return _visit(inner, folder, name, times, depth + 1)
    copies = 0
    if element.tag == "replicate":
        times *= max(1, _whole(element.get("count", "1")))
        copies = times
    return copies + sum(_visit(child, folder, name, times, depth) for child in element)


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        return 1
