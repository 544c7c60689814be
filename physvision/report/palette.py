"""Colors of videos and pages: a dark background, one color per object."""

from __future__ import annotations

from collections.abc import Sequence

from physvision.core import SceneObject

Color = tuple[int, int, int]

GROUND: Color = (14, 17, 24)
PANEL: Color = (24, 28, 38)
TEXT: Color = (226, 232, 240)
MUTED: Color = (128, 140, 158)
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
    """Choose the color of each object: its own, lightened for the dark background, or a distinct one if it is gray."""
    colors = []
    for index, item in enumerate(objects):
        color = item.color or (0.0, 0.0, 0.0)
        if max(color) - min(color) < 0.1:
            colors.append(OBJECTS[index % len(OBJECTS)])
            continue
        red, green, blue = (round(255 * (0.55 * level + 0.45)) for level in color)
        colors.append((red, green, blue))
    return colors


def css(color: Color) -> str:
    """Format a color for style sheets."""
    return "#{:02x}{:02x}{:02x}".format(*color)
