"""The billiard table as an engine and as a camera: pixels, seconds, y down; the image's borders are the walls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from physvision.camera import BoundCamera, Camera
from physvision.core.checks import check_color, check_count
from physvision.core.registry import register
from physvision.physics import PhysicsLayer
from physvision.physics.rigid2d import Circle, Rectangle, World

WALL_THICKNESS = 20.0  # px


def table(
    balls: int,
    radius: float = 3.2,
    size: tuple[int, int] = (64, 64),
    dt: float = 1 / 30,
    restitution: float = 1.0,
) -> World:
    """Build a world of balls of one mass in a box, without friction and gravity.

    Args:
        balls: Number of balls, the world's first bodies.
        radius: Radius of the balls, pixels.
        size: Height and width of the box, pixels.
        dt: Time step, s.
        restitution: Coefficient of restitution of all impacts.
    """
    check_count("balls", balls)
    height, width = map(float, size)
    # Initial positions only have to be free of overlap.
    columns = math.ceil(math.sqrt(balls))
    positions = [
        (width * (ball % columns + 0.5) / columns, height * (ball // columns + 0.5) / columns) for ball in range(balls)
    ]
    moving = [
        Circle(radius, position, name=f"ball {ball}", restitution=restitution, friction=0.0)
        for ball, position in enumerate(positions)
    ]
    horizontal, vertical = (width + 2 * WALL_THICKNESS, WALL_THICKNESS), (WALL_THICKNESS, height)
    borders = {
        "top": (horizontal, (width / 2, -WALL_THICKNESS / 2)),
        "bottom": (horizontal, (width / 2, height + WALL_THICKNESS / 2)),
        "left": (vertical, (-WALL_THICKNESS / 2, height / 2)),
        "right": (vertical, (width + WALL_THICKNESS / 2, height / 2)),
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
    """Build a table whose restitution and ball radius are learned, starting at these values."""
    world = table(balls, radius, size, dt, restitution)
    learned = {"restitution": restitution, "radius": radius}
    return PhysicsLayer(world, learned, BallLeaves(balls, len(world.body_names)))


@register("physvision.models.BallLeaves")
@dataclass(frozen=True)
class BallLeaves:
    """Property leaves of a table with one restitution and one radius for all balls.

    Attributes:
        balls: Number of balls, the first bodies.
        bodies: Number of all bodies; the others are walls.
    """

    balls: int
    bodies: int

    def __call__(self, restitution: Tensor, radius: Tensor) -> Mapping[str, Tensor]:
        """Expand restitution and radius to all bodies."""
        # Restitution is at most one, but beyond one its gradient has to stay, or it could not return.
        excess = (restitution - 1.0).clamp_min(0.0).detach()
        # The radius of a wall is zero.
        is_ball = (torch.arange(self.bodies, device=radius.device) < self.balls).to(radius)
        return {"restitution": (restitution - excess).expand(self.bodies), "radius": radius * is_ball}


class TableCamera(BoundCamera):
    """The camera above a table in place of a decoder, without weights to train."""

    def __init__(
        self,
        balls: int,
        colors: Sequence[tuple[float, float, float]],
        radius: float = 3.2,
        size: tuple[int, int] = (64, 64),
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Place the camera above a `table` of the same balls, radius and size.

        Args:
            balls: Number of balls.
            colors: Red, green, blue of each ball, 0 to 1.
            radius: Radius of the balls, pixels, where a call gives no properties.
            size: Height and width of the image, pixels.
            background: Red, green, blue of the cloth, 0 to 1.
        """
        check_color("colors", *colors)
        # Walls lie beyond the picture.
        textures = [torch.tensor(list(color)) for color in colors]
        camera = Camera.table(*size, y_down=True)
        world = table(balls, radius, size)
        super().__init__(camera, world, range(balls), textures=textures, background=tuple(background))
