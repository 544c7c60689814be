"""Camera constructors, in kornia's conventions: looking along +z with y down; and a camera bound to bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor, nn

from physvision.camera.projection import Projection
from physvision.camera.ray_caster import RayCaster
from physvision.core import Appearance, InputError, State
from physvision.core.checks import check_count, check_positive
from physvision.physics import Engine
from physvision.physics.engine import Overrides


class BoundCamera(nn.Module):
    """Camera that renders an engine's states with its properties; learned sizes and lengths have gradients.

    Attributes:
        mechanics: Mechanical engine whose bodies are visible.
        geometry: Rendered shapes of the engine.
    """

    def __init__(
        self,
        camera: Projection,
        engine: Engine,
        shapes: Sequence[int] | None = None,
        *,
        textures: Sequence[Tensor] | None = None,
        **options: Any,
    ) -> None:
        """Bind `camera` to `engine`.

        Args:
            camera: Camera or another projection.
            engine: Engine with mechanics inside; calls without properties use those of this engine.
            shapes: Indices into the mechanics' `geometry` of the shapes to render; None for all.
            textures: Texture of each rendered shape, see `RayCaster.forward`; None for the colors of the geometry.
            options: Further arguments of `RayCaster`.
        """
        super().__init__()
        if engine.mechanics is None:
            raise InputError(f"engine: {type(engine).__name__} has no bodies to render; bind one with mechanics")
        self.mechanics = engine.mechanics
        # In a tuple, so that it is not a submodule: the model trains and saves the engine, once.
        self._engine = (engine,)
        geometry = self.mechanics.geometry
        self.shapes = tuple(range(len(geometry))) if shapes is None else tuple(shapes)
        for index in self.shapes:
            if not 0 <= index < len(geometry):
                raise InputError(
                    f"shapes: expected numbers below {len(geometry)}, of the engine's geometry, got {index}"
                )
        self.geometry = tuple(geometry[index] for index in self.shapes)
        self.caster = RayCaster(camera, self.geometry, **options)
        self.textures = textures

    def appearance(self, state: State, properties: Overrides = None) -> Appearance:
        """Return poses and sizes of all rendered shapes."""
        leaves = self._engine[0].properties if properties is None else properties
        appearance = self.mechanics.appearance(state, leaves)
        if len(self.shapes) == appearance.poses.shape[1]:
            return appearance
        rows = list(self.shapes)
        return Appearance(appearance.poses[:, rows], appearance.sizes[:, rows])

    def forward(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch channels height width"]:
        """Render each state; `properties` as in `Engine.rollout`, the bound engine's own if not given."""
        # Half precision cannot resolve parts of a pixel.
        with torch.autocast(state.q.device.type, enabled=False):
            appearance = self.appearance(state, properties)
            poses = appearance.poses
            textures = None if self.textures is None else [texture.to(poses) for texture in self.textures]
            return self.caster(poses, textures, sizes=appearance.sizes)


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
