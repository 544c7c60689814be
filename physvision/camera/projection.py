"""Projection of a camera: its values, and the rays that follow from them, in kornia's conventions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from kornia.geometry import warp_perspective
from torch import Tensor, nn

from physvision.core.checks import check_count, check_shape, check_tensor

NEAR_PLANE = 1e-3  # depth, in meters, below which surfaces are invisible
AnyProjection = TypeVar("AnyProjection", bound="Projection")


@dataclass(frozen=True, eq=False)
class Projection:
    """Pinhole or orthographic projection, whose values are tensors in which frames are differentiable.

    The center of pixel (row, column) has the coordinates x = column, y = row. A point (X, Y, Z) of the camera's frame
    projects to K · (X/Z, Y/Z, 1) by a pinhole, at K · (X, Y, 1) by an orthographic camera.

    Attributes:
        intrinsics: Matrix K, (3, 3) or (batch, 3, 3): focal lengths and image center in pixels (orthographic: pixels
            per meter).
        extrinsics: Transform from the world to the camera's frame, (4, 4) or (batch, 4, 4), in meters.
        height: Height of the image, in pixels.
        width: Width of the image, in pixels.
        orthographic: If true, rays are parallel.
    """

    intrinsics: Float[Tensor, "*#batch 3 3"]
    extrinsics: Float[Tensor, "*#batch 4 4"]
    height: int
    width: int
    orthographic: bool = False

    def __post_init__(self) -> None:
        check_count("height", self.height)
        check_count("width", self.width)
        for name, size in (("intrinsics", 3), ("extrinsics", 4)):
            value = check_tensor(name, getattr(self, name))
            check_shape(name, value, (size, size) if value.dim() == 2 else (None, size, size))

    def to(self: AnyProjection, *args: Any, **kwargs: Any) -> AnyProjection:
        """Return this camera on another device or in another dtype; arguments as in `torch.Tensor.to`."""
        return replace(
            self, intrinsics=self.intrinsics.to(*args, **kwargs), extrinsics=self.extrinsics.to(*args, **kwargs)
        )


def pixel_rays(camera: Projection) -> Tensor:
    """Return K⁻¹ from pixels counted from the image center, (batch, 1, 3, 3)."""
    intrinsics = camera.intrinsics.reshape(-1, 1, 3, 3)
    center = torch.eye(3, dtype=intrinsics.dtype, device=intrinsics.device)
    center[0, 2], center[1, 2] = 0.5 * (camera.width - 1), 0.5 * (camera.height - 1)
    q = torch.linalg.inv(intrinsics) @ center
    return q * q.new_tensor([[1.0], [1.0], [0.0]]) if camera.orthographic else q


def local_rays(camera: Projection, q: Tensor, poses: Tensor) -> Tensor:
    """Return the camera's rays in the frame of every shape, (batch, shapes, 4, 3); see `kernels/scene.py`.

    With R and p the rotation and position of a shape in the camera's frame and q = K⁻¹ (x, y, 1), a pinhole has
    o = −Rᵀ p and d = Rᵀ q, an orthographic camera o = Rᵀ ((q_x, q_y, 0) − p) and d = Rᵀ e_z.
    """
    local = camera.extrinsics.reshape(-1, 1, 4, 4) @ poses
    back = local[..., :3, :3].transpose(-1, -2)
    origin = back @ local[..., :3, 3:]
    columns = back @ q
    if camera.orthographic:
        return torch.cat([back[..., 2:], columns - nn.functional.pad(origin, (2, 0))], -1).transpose(-1, -2)
    return torch.cat([-origin, columns], -1).transpose(-1, -2)


def seen_from(
    images: Float[Tensor, "batch channels height width"],
    intrinsics: Float[Tensor, "3 3"],
    source: Float[Tensor, "batch 4 4"],
    target: Float[Tensor, "batch 4 4"],
) -> Float[Tensor, "batch channels height width"]:
    """Images of the plane z = 0 as a pinhole camera sees it from another pose; exact for all depths if it only turns.

    Args:
        images: Images taken from `source`.
        intrinsics: Camera matrix.
        source: Poses from the world to the camera's frame.
        target: Poses to see the plane from.
    """
    before, after = (intrinsics.to(images) @ pose[..., :3, [0, 1, 3]].to(images) for pose in (source, target))
    homographies = after @ torch.linalg.inv(before)
    size = images.shape[-2], images.shape[-1]
    return warp_perspective(images, homographies, size, padding_mode="border", align_corners=True)
