"""The billiard table as an engine and as a camera: pixels, seconds, y down; the picture's borders are the walls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from physvision.camera import BoundCamera, Camera
from physvision.core.checks import check_count
from physvision.core.registry import register
from physvision.physics import PhysicsLayer
from physvision.physics.rigid2d import Circle, Rectangle, World

_THICK = 20.0  # px: of the walls


def table(
    balls: int,
    radius: float = 3.2,
    size: tuple[int, int] = (64, 64),
    dt: float = 1 / 30,
    restitution: float = 1.0,
) -> World:
    """Balls of one mass in a box, without friction and gravity.

    Args:
        balls: how many, the world's first bodies.
        radius: of the balls, pixels.
        size: height and width of the box, pixels.
        dt: seconds a step.
        restitution: of all impacts.
    """
    check_count("balls", balls)
    height, width = map(float, size)
    # Where balls start does not matter, as long as they do not overlap.
    columns = math.ceil(math.sqrt(balls))
    places = [
        (width * (ball % columns + 0.5) / columns, height * (ball // columns + 0.5) / columns) for ball in range(balls)
    ]
    moving = [
        Circle(radius, place, name=f"ball {ball}", restitution=restitution, friction=0.0)
        for ball, place in enumerate(places)
    ]
    wide, high = (width + 2 * _THICK, _THICK), (_THICK, height)
    borders = {
        "top": (wide, (width / 2, -_THICK / 2)),
        "bottom": (wide, (width / 2, height + _THICK / 2)),
        "left": (high, (-_THICK / 2, height / 2)),
        "right": (high, (width + _THICK / 2, height / 2)),
    }
    walls = [
        Rectangle(extent, at, name=name, static=True, restitution=restitution, friction=0.0)
        for name, (extent, at) in borders.items()
    ]
    return World([*moving, *walls], gravity=(0, 0), dt=dt)


def learned_table(
    balls: int,
    radius: float = 3.2,
    size: tuple[int, int] = (64, 64),
    dt: float = 1 / 30,
    restitution: float = 1.0,
) -> PhysicsLayer:
    """A table whose restitution and ball radius are learned, from these first guesses on."""
    world = table(balls, radius, size, dt, restitution)
    learned = {"restitution": restitution, "radius": radius}
    return PhysicsLayer(world, learned, BallLeaves(balls, len(world.body_names)))


@register("physvision.models.BallLeaves")
@dataclass(frozen=True)
class BallLeaves:
    """The leaves of a table that follow from one restitution and one radius of all balls.

    Attributes:
        balls: how many bodies are balls, the first ones.
        bodies: how many there are; the others are walls.
    """

    balls: int
    bodies: int

    def __call__(self, restitution: Tensor, radius: Tensor) -> Mapping[str, Tensor]:
        """The restitution of all bodies and the radius of each."""
        # A bounce never gains energy, but a guess that went too far must find back: its gradient stays.
        beyond = (restitution - 1.0).clamp_min(0.0).detach()
        # Walls have no radius.
        shares = (torch.arange(self.bodies, device=radius.device) < self.balls).to(radius)
        return {"restitution": (restitution - beyond).expand(self.bodies), "radius": radius * shares}


class TableCamera(BoundCamera):
    """The camera above a table, in the place of a decoder; there is nothing to train."""

    def __init__(
        self,
        balls: int,
        colors: Sequence[tuple[float, float, float]],
        radius: float = 3.2,
        size: tuple[int, int] = (64, 64),
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Look at a `table` of the same balls, radius and size.

        Args:
            balls: how many.
            colors: red, green, blue of each, 0 to 1.
            radius: of the balls, pixels, where a call gives no properties.
            size: height and width of the picture, pixels.
            background: red, green, blue of the cloth, 0 to 1.
        """
        # Walls lie beyond the picture.
        textures = [torch.tensor(list(color)) for color in colors]
        camera = Camera.table(*size, y_down=True)
        world = table(balls, radius, size)
        super().__init__(camera, world, range(balls), textures=textures, background=tuple(background))
