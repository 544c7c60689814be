"""Colours of films and pages: one dark ground, one colour an object."""

from __future__ import annotations

from collections.abc import Sequence

from physvision.core import SceneObject

Color = tuple[int, int, int]

GROUND: Color = (14, 17, 24)
PANEL: Color = (24, 28, 38)
TEXT: Color = (226, 232, 240)
FAINT: Color = (128, 140, 158)
WARN: Color = (244, 114, 82)
OBJECTS: tuple[Color, ...] = (
    (99, 179, 255),
    (255, 176, 84),
    (112, 222, 152),
    (240, 120, 190),
    (190, 160, 255),
    (250, 224, 110),
)


def object_colors(objects: Sequence[SceneObject]) -> list[Color]:
    """The colour of each object: its own, light enough for the dark ground, or one to tell it apart if it is gray."""
    found = []
    for index, each in enumerate(objects):
        own = each.color or (0.0, 0.0, 0.0)
        if max(own) - min(own) < 0.1:
            found.append(OBJECTS[index % len(OBJECTS)])
            continue
        red, green, blue = (round(255 * (0.55 * level + 0.45)) for level in own)
        found.append((red, green, blue))
    return found


def css(color: Color) -> str:
    """The colour as a page writes it."""
    return "#{:02x}{:02x}{:02x}".format(*color)
