"""A table with up to a fixed number of balls, walls and friction of its own in every trial, under a pinhole camera."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from jaxtyping import Bool
from torch import Tensor

from physvision.camera import BoundCamera, Camera
from physvision.core import Sphere, State, Trajectory
from physvision.core.checks import check_count
from physvision.core.registry import register
from physvision.core.shapes import Appearance
from physvision.models.billiards import WALL_THICKNESS
from physvision.physics.engine import Overrides
from physvision.physics.rigid2d import Circle, Rectangle, World

# Empty slots of balls rest at this distance from the table, px, out of the reach of all others.
_PARKED, _PARKING_GAP = -500.0, 40.0
# Length of a wall, px: beyond all corners, wherever the walls are.
_WALL_LENGTH = 400.0
# Distance of the camera of the data set `tabletop`, in sides of the image.
DISTANCE = 2.5


def tabletop(
    slots: int = 5,
    size: int = 64,
    dt: float = 1 / 30,
    radius: float = 4.0,
    restitution: float = 0.9,
    sliding_deceleration: float = 5.0,
) -> World:
    """Build a table for `slots` balls, with four walls at the image's borders until properties place them.

    Args:
        slots: Largest number of balls, the world's moving bodies.
        size: Side of the image, px.
        dt: Time step, s.
        radius: Radius of the balls, px.
        restitution: Coefficient of restitution of all impacts.
        sliding_deceleration: Deceleration of moving balls, px/s².
    """
    check_count("slots", slots)
    balls = [
        Circle(
            radius,
            (_PARKED - _PARKING_GAP * slot, _PARKED),
            name=f"ball {slot}",
            restitution=restitution,
            friction=0.0,
            sliding_deceleration=sliding_deceleration,
        )
        for slot in range(slots)
    ]
    half = 0.5 * size
    poses = {
        "left": (-0.5 * WALL_THICKNESS, half),
        "top": (half, -0.5 * WALL_THICKNESS),
        "right": (size + 0.5 * WALL_THICKNESS, half),
        "bottom": (half, size + 0.5 * WALL_THICKNESS),
    }
    walls = [
        Rectangle(
            (WALL_THICKNESS, _WALL_LENGTH) if name in ("left", "right") else (_WALL_LENGTH, WALL_THICKNESS),
            position,
            name=name,
            static=True,
            restitution=restitution,
            friction=0.0,
        )
        for name, position in poses.items()
    ]
    return World([*balls, *walls], gravity=(0, 0), dt=dt)


@register("physvision.models.tabletop_leaves")
def tabletop_leaves(properties: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Turn the properties of trials into leaves of the world's properties, one row a trial.

    Args:
        properties: Any of `mass`, `radius` and `present` (batch, slots), `restitution`, `wall_restitution` (if not
            given, that of the balls) and `sliding_deceleration` (batch,), `walls` (batch, 4): left x, top y, right x,
            bottom y.
    """
    leaves: dict[str, Tensor] = {}
    if "mass" in properties:
        leaves["mass"] = properties["mass"]
    if "radius" in properties:
        radius = properties["radius"]
        leaves["gyration"] = radius * math.sqrt(0.4)
        if "present" in properties:
            # A ball without extent is neither seen nor touched.
            radius = radius * (properties["present"] > 0.5)
        # The walls have no radius.
        leaves["radius"] = torch.cat([radius, radius.new_zeros(len(radius), 4)], 1)
    if "sliding_deceleration" in properties:
        slots = properties["mass"].shape[1] if "mass" in properties else properties["radius"].shape[1]
        leaves["sliding_deceleration"] = properties["sliding_deceleration"][:, None].expand(-1, slots)
    if "restitution" in properties:
        ball = properties["restitution"]
        wall = properties.get("wall_restitution", ball)
        slots = properties["radius"].shape[1]
        # The restitution of a pair is the mean of the two.
        rows = torch.cat([ball[:, None].expand(-1, slots), (2.0 * wall - ball)[:, None].expand(-1, 4)], 1)
        # Clamped values keep their gradient, or they could not come back.
        leaves["restitution"] = rows + (rows.clamp(0.0, 1.0) - rows).detach()
    if "walls" in properties:
        left, top, right, bottom = properties["walls"].unbind(1)
        half, zero = 0.5 * WALL_THICKNESS, torch.zeros_like(left)
        rows = [
            (left - half, 0.5 * (top + bottom)),
            (0.5 * (left + right), top - half),
            (right + half, 0.5 * (top + bottom)),
            (0.5 * (left + right), bottom + half),
        ]
        leaves["static_pose"] = torch.stack([torch.stack([x, y, zero], 1) for x, y in rows], 1)
    return leaves


def park_absent(q: Tensor, present: Bool[Tensor, "batch slots"]) -> Tensor:
    """Move the balls of empty slots off the table; `q` is (batch, …, 3 · slots)."""
    slots = present.shape[1]
    rest = q.new_zeros(slots, 3)
    rest[:, 0] = _PARKED - _PARKING_GAP * torch.arange(slots).to(q)
    rest[:, 1] = _PARKED
    inner = q.unflatten(-1, (slots, 3))
    shape = (len(q), *(1,) * (inner.dim() - 3), slots, 1)
    return torch.where(present.reshape(shape), inner, rest).flatten(-2)


def park_states(states: Trajectory, present: Bool[Tensor, "batch slots"]) -> Trajectory:
    """Move the balls of empty slots off the table, at rest, in all states of a trajectory."""
    still = present[:, None, :, None].expand(-1, states.v.shape[1], -1, 3).flatten(2)
    return Trajectory(park_absent(states.q, present), torch.where(still, states.v, 0.0), dt=states.dt)


class BallCamera(BoundCamera):
    """A pinhole camera above a table that shows balls as spheres resting on the plane z = 0, with z into the table."""

    def __init__(self, slots: int = 5, size: int = 64) -> None:
        """Bind a camera to the balls of a `tabletop` of the same slots and size.

        Args:
            slots: Number of balls.
            size: Side of the image, px.
        """
        middle = 0.5 * size
        distance = DISTANCE * size
        camera = Camera.pinhole(
            size,
            size,
            position=(middle, middle, -distance),
            target=(middle, middle, 0.0),
            up=(0, -1, 0),
            focal=distance,
        )
        super().__init__(camera, tabletop(slots, size), range(slots))
        self.caster = type(self.caster)(camera, [Sphere(1.0)] * slots)

    def appearance(self, state: State, properties: Overrides = None) -> Appearance:
        """Poses and sizes of the balls: spheres whose centers are one radius above the table."""
        flat = super().appearance(state, properties)
        lift = torch.zeros_like(flat.poses)
        lift[..., 2, 3] = 1.0
        # Spheres do not show their rotation; without it, coordinates of layers are those of the image.
        upright = torch.eye(4, dtype=flat.poses.dtype, device=flat.poses.device).expand_as(flat.poses).clone()
        upright[..., :2, 3] = flat.poses[..., :2, 3]
        poses = upright - lift * flat.sizes[..., :1, None]
        return Appearance(poses, flat.sizes)


def back_project(pixels: Tensor, intrinsics: Tensor, extrinsics: Tensor, height: Tensor) -> Tensor:
    """Intersect the rays through `pixels` with the plane z = `height` of the world.

    Args:
        pixels: Column and row, pixel centers at whole numbers, (batch, points, 2).
        intrinsics: Camera matrix, (3, 3).
        extrinsics: Poses from the world to the camera's frame, (batch, 4, 4).
        height: z of the plane for each point, (batch, points).

    Returns:
        x and y of the world, (batch, points, 2).
    """
    rotation, shift = extrinsics[:, :3, :3], extrinsics[:, :3, 3]
    position = -(rotation.transpose(1, 2) @ shift[..., None])[..., 0]
    rays = torch.cat([pixels, torch.ones_like(pixels[..., :1])], -1) @ torch.linalg.inv(intrinsics).T @ rotation
    scale = (height - position[:, None, 2]) / rays[..., 2]
    return position[:, None, :2] + scale[..., None] * rays[..., :2]


def project(points: Tensor, intrinsics: Tensor, extrinsics: Tensor) -> Tensor:
    """Project points of the world, (batch, points, 3), to column and row, (batch, points, 2); see `back_project`."""
    local = points @ extrinsics[:, :3, :3].transpose(1, 2) + extrinsics[:, None, :3, 3]
    homogeneous = local @ intrinsics.T
    return homogeneous[..., :2] / homogeneous[..., 2:]
