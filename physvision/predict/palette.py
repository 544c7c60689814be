"""Colours of films and reports: one dark ground, one colour an object."""

from __future__ import annotations

from physvision.core import Scene

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


def of_object(scene: Scene, index: int) -> Color:
    """The colour of object number `index`: its own, light enough for the dark ground, or one that tells it apart."""
    own = scene.objects[index].color
    if own is None:
        return OBJECTS[index % len(OBJECTS)]
    red, green, blue = (round(255 * (0.55 * level + 0.45)) for level in own)
    return red, green, blue


def css(color: Color) -> str:
    """For a page."""
    return "#{:02x}{:02x}{:02x}".format(*color)
