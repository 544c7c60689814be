"""Camera constructors, in kornia's conventions: looking along +z with y down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from physvision.camera.bound import BoundCamera
from physvision.camera.projection import Projection
from physvision.core import InputError
from physvision.core.checks import check_count, check_positive
from physvision.physics import Engine

# Distance from which an orthographic camera looks at a table, in units of the world.
TABLE_DISTANCE = 100.0


@dataclass(frozen=True, eq=False)
class Camera(Projection):
    """Pinhole or orthographic camera, with constructors from common descriptions; see `Projection` for its values."""

    @classmethod
    def pinhole(
        cls,
        height: int,
        width: int,
        *,
        position: Sequence[float],
        target: Sequence[float],
        up: Sequence[float] = (0.0, 0.0, 1.0),
        fov: float | None = None,
        focal: float | None = None,
    ) -> Camera:
        """Return a camera at `position` with `target` in the center of its image.

        Args:
            height: Height of the image, in pixels.
            width: Width of the image, in pixels.
            position: Position of the pinhole in the world, in meters.
            target: Point in the world, in meters.
            up: Direction of the world that points up in the image.
            fov: Field of view over the height of the image, in radians.
            focal: Focal length in pixels, in place of `fov`.
        """
        check_count("height", height)
        if (fov is None) == (focal is None):
            raise InputError(f"pinhole: expected either fov or focal, got fov={fov!r} and focal={focal!r}")
        if focal is None:
            if not 0.0 < float(fov or 0.0) < math.pi:
                raise InputError(f"fov: expected an angle between 0 and π radians, got {fov!r}")
            focal = height / (2.0 * math.tan(0.5 * float(fov or 0.0)))
        eye = torch.tensor([float(value) for value in position], dtype=torch.float64)
        z = torch.tensor([float(value) for value in target], dtype=torch.float64) - eye
        x = torch.linalg.cross(z, torch.tensor([float(value) for value in up], dtype=torch.float64))
        if not float(x.norm()) > 1e-9 * float(z.norm()):
            raise InputError(f"pinhole: target − position and up must not be parallel, got {target}, {position}, {up}")
        z, x = z / z.norm(), x / x.norm()
        rotation = torch.stack([x, torch.linalg.cross(z, x), z])
        return cls(
            _intrinsics(check_positive("focal", focal), height, width),
            _extrinsics(rotation, -rotation @ eye),
            height,
            width,
        )

    @classmethod
    def table(
        cls,
        height: int,
        width: int,
        *,
        scale: float = 1.0,
        center: Sequence[float] | None = None,
        y_down: bool = False,
    ) -> Camera:
        """Return an orthographic camera that looks at the plane z = 0 of a 2-D world.

        Args:
            height: Height of the image, in pixels.
            width: Width of the image, in pixels.
            scale: Pixels per unit of the world.
            center: World coordinates (x, y) of the image center; None puts the world's origin into the outer corner of
                the first pixel if y is down, else into the image center.
            y_down: If true, the world's y points down in the image.
        """
        scale = check_positive("scale", scale)
        if center is None:
            center = (0.5 * width / scale, 0.5 * height / scale) if y_down else (0.0, 0.0)
        sign = 1.0 if y_down else -1.0
        rotation = torch.diag(torch.tensor([1.0, sign, sign], dtype=torch.float64))
        shift = torch.tensor([-float(center[0]), -sign * float(center[1]), TABLE_DISTANCE], dtype=torch.float64)
        return cls(_intrinsics(scale, height, width), _extrinsics(rotation, shift), height, width, orthographic=True)

    @classmethod
    def from_mujoco(
        cls,
        height: int,
        width: int,
        *,
        position: ArrayLike,
        rotation: ArrayLike,
        fovy: float,
    ) -> Camera:
        """Return a camera of MuJoCo, which looks along its −z with y up, from `mjData.cam_xpos` and `cam_xmat`.

        Args:
            height: Height of the image, in pixels.
            width: Width of the image, in pixels.
            position: Position in the world, in meters.
            rotation: Nine numbers, 3×3, from the camera's frame to the world.
            fovy: Field of view over the height, in **degrees**, as in MJCF.
        """
        matrix = torch.as_tensor(np.array(rotation, float)).reshape(3, 3)
        to_camera = torch.diag(torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)) @ matrix.T
        eye = torch.as_tensor(np.array(position, float))
        focal = height / (2.0 * math.tan(0.5 * math.radians(fovy)))
        return cls(_intrinsics(focal, height, width), _extrinsics(to_camera, -to_camera @ eye), height, width)

    def bind(self, engine: Engine, shapes: Sequence[int] | None = None, **options: Any) -> BoundCamera:
        """Return a module that renders this engine's states; arguments as in `BoundCamera`."""
        return BoundCamera(self, engine, shapes, **options)


def _intrinsics(focal: float, height: int, width: int) -> Tensor:
    center = (0.5 * (width - 1), 0.5 * (height - 1))
    return torch.tensor([[focal, 0.0, center[0]], [0.0, focal, center[1]], [0.0, 0.0, 1.0]], dtype=torch.float64)


def _extrinsics(rotation: Tensor, shift: Tensor) -> Tensor:
    matrix = torch.eye(4, dtype=torch.float64)
    matrix[:3, :3], matrix[:3, 3] = rotation, shift
    return matrix
