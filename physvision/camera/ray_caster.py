"""Ray caster: frames from poses and textures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from physvision.camera.patches import patches_of
from physvision.camera.projection import Projection, local_rays, pixel_rays
from physvision.camera.raster import Render, Settings, constants, nearest
from physvision.camera.textures import pack_textures
from physvision.core import InputError, Placed, Shape, ShapeError
from physvision.core.checks import check_count, check_like, check_shape, check_tensor
from physvision.kernels import precision
from physvision.kernels.batched_function import apply

GRAY = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Light:
    """Distant Lambertian light: colors are multiplied by ambient + diffuse · max(0, normal · direction).

    Attributes:
        direction: Direction towards the light, in the world.
        ambient: Factor of every surface.
        diffuse: Additional factor of a surface that faces the light.
    """

    direction: tuple[float, float, float] = (0.0, 0.0, 1.0)
    ambient: float = 0.4
    diffuse: float = 0.6


@dataclass(frozen=True)
class Visible:
    """Nearest surface at the center of every pixel.

    Attributes:
        depth: Depth along the camera's z, (batch, height, width), in meters; infinite for the background.
        shapes: Index of the shape, (batch, height, width); −1 for the background.
    """

    depth: Float[Tensor, "batch height width"]
    shapes: Int[Tensor, "batch height width"]


class RayCaster(nn.Module):
    """Camera with shapes before it: `caster(poses, textures)` renders frames.

    Frames are differentiable in poses, textures, sizes, background and the camera's own values. Values should be in
    [0, 1] but need not be.

    Args:
        camera: Camera or another projection.
        shapes: Shapes to render; `Placed` ones give their colors, while their bodies and poses are ignored.
        background: Background behind all shapes: a color (channels,), an image (channels, height, width), or one a
            world. Its channels are those of the frames. Black by default.
        edges: "soft" averages over each pixel, so that silhouettes move smoothly and have gradients; "hard" samples the
            ray through the center of the pixel alone.
        light: Light of the scene; None for unlit colors.
        taps: Maximum number of texture samples along each side of a pixel; raising it blurs fine textures less.
    """

    background: Tensor
    sizes: Tensor
    _turns: Tensor
    _shifts: Tensor
    _shape: Tensor
    _axis: Tensor
    _extents: Tensor

    def __init__(
        self,
        camera: Projection,
        shapes: Sequence[Shape | Placed],
        *,
        background: Tensor | Sequence[float] = (0.0, 0.0, 0.0),
        edges: str = "soft",
        light: Light | None = None,
        taps: int = 4,
    ) -> None:
        super().__init__()
        if edges not in ("soft", "hard"):
            raise InputError(f'edges: expected "soft" or "hard", got {edges!r}')
        self.camera, self.edges, self.light = camera, edges, light
        self.taps = check_count("taps", taps)
        self.shapes = tuple(shape.shape if isinstance(shape, Placed) else shape for shape in shapes)
        ground = torch.as_tensor(background, dtype=None if isinstance(background, Tensor) else torch.float64)
        self.register_buffer("background", check_tensor("background", ground), persistent=False)
        self._channels(ground)
        self.colors = tuple(shape.color if isinstance(shape, Placed) else GRAY for shape in shapes)
        self.patches = patches_of(self.shapes)
        sizes = torch.tensor([shape.sizes for shape in self.shapes], dtype=torch.float64).reshape(-1, 3)
        if not bool(torch.isfinite(sizes).all()) or bool((sizes < 0).any()):
            raise InputError(f"shapes: expected sizes that are finite and not negative, got {sizes.tolist()}")
        # A fourth size, zero, stands for the extents that a patch does not have.
        self._keep("sizes", sizes)
        turns = torch.tensor([patch.turn() for patch in self.patches], dtype=torch.float64)
        self._keep("_turns", turns.reshape(-1, 3, 3))
        self._keep("_shifts", torch.tensor([patch.shift for patch in self.patches], dtype=torch.float64))
        self._keep("_shape", torch.tensor([patch.shape for patch in self.patches], dtype=torch.long))
        self._keep("_axis", torch.tensor([patch.axis for patch in self.patches], dtype=torch.long))
        extents = torch.tensor([patch.extents for patch in self.patches], dtype=torch.long)
        self._keep("_extents", extents.reshape(-1, 3))
        self._one_patch_each = len(self.patches) == len(self.shapes)
        self._cache: dict = {}

    def __getstate__(self) -> dict:
        # The cache holds arrays of Warp, which cannot be copied.
        return {**super().__getstate__(), "_cache": {}}

    def _keep(self, name: str, value: Tensor) -> None:
        self.register_buffer(name, value, persistent=False)

    def _channels(self, background: Tensor) -> int:
        size = (self.camera.height, self.camera.width)
        if background.dim() in (1, 2):
            channels = background.shape[-1]
        elif background.dim() in (3, 4) and background.shape[-2:] == size:
            channels = background.shape[-3]
        else:
            raise ShapeError(
                f"background: expected (channels,), (channels, {size[0]}, {size[1]}) as the camera's image is, or one "
                f"of these a world, got {tuple(background.shape)}"
            )
        if channels < 1:
            raise ShapeError(f"background: expected at least one channel, got {tuple(background.shape)}")
        return channels

    def forward(
        self,
        poses: Float[Tensor, "batch shapes 4 4"],
        textures: Sequence[Tensor] | None = None,
        *,
        sizes: Float[Tensor, "*batch shapes 3"] | None = None,
        background: Tensor | None = None,
        camera: Projection | None = None,
    ) -> Float[Tensor, "batch channels height width"]:
        """Render a batch of scenes.

        A shape is invisible if its pose is not finite, its size is zero, or it is behind the camera.

        Args:
            poses: Frame of every shape in the world; rotations must be orthonormal.
            textures: Texture of each shape: a color (channels,), an image (channels, h, w), or one a world; None for
                the colors of the `Placed` shapes, or gray.
            sizes: Sizes in place of those of the shapes, see `Shape.sizes`: (shapes, 3) or (batch, shapes, 3).
            background: Background in place of the caster's own.
            camera: Camera in place of the caster's own, of the same image size.
        """
        camera = self._camera(camera, poses)
        ground = self._background(background, poses)
        if textures is None:
            textures = self._flat_colors(ground.shape[1], poses)
        if len(textures) != len(self.shapes):
            raise ShapeError(f"textures: expected one for each of {len(self.shapes)} shapes, got {len(textures)}")
        texels, layout = pack_textures(textures, poses.shape[0], ground.shape[1], poses)
        rays, extents, light = self._geometry(camera, poses, sizes)
        view = self._view(camera, poses, layout)
        return apply(Render(view), rays, extents, light, texels, ground)[0]

    @torch.no_grad()
    def inspect(self, poses: Float[Tensor, "batch shapes 4 4"]) -> Visible:
        """Return depth and identity of the nearest surface at the center of every pixel, without gradients."""
        camera = self._camera(None, poses)
        rays, extents, _ = self._geometry(camera, poses, None)
        view = self._view(camera, poses, ((0, 1, 1),) * len(self.shapes))
        return Visible(*nearest(view, rays, extents, self._background(None, poses)))

    def masks(
        self,
        poses: Float[Tensor, "batch shapes 4 4"],
        *,
        sizes: Float[Tensor, "*batch shapes 3"] | None = None,
        camera: Projection | None = None,
    ) -> Float[Tensor, "batch shapes height width"]:
        """Return the visible fraction of each shape in every pixel; differentiable as frames are."""
        if not self.shapes:
            raise InputError("masks: there are no shapes before this camera")
        eye = torch.eye(len(self.shapes), dtype=poses.dtype, device=poses.device)
        ground = torch.zeros_like(eye[0])
        light, self.light = self.light, None
        try:
            return self(poses, list(eye), sizes=sizes, background=ground, camera=camera)
        finally:
            self.light = light

    def _camera(self, camera: Projection | None, poses: Tensor) -> Projection:
        check_shape("poses", check_tensor("poses", poses), (None, len(self.shapes), 4, 4))
        own = self.camera
        if camera is None:
            if own.intrinsics.requires_grad or own.extrinsics.requires_grad:
                return own.to(poses)
            cached = self._cache.get("camera")
            if cached is None or cached.extrinsics.dtype != poses.dtype or cached.extrinsics.device != poses.device:
                self._cache["camera"] = own.to(poses)
                self._cache.pop("pixels", None)
            return self._cache["camera"]
        if (camera.height, camera.width) != (own.height, own.width):
            raise ShapeError(
                f"camera: expected an image of {own.height} × {own.width}, got {camera.height} × {camera.width}"
            )
        return camera.to(poses)

    def _background(self, given: Tensor | None, poses: Tensor) -> Tensor:
        ground = self.background.to(poses) if given is None else check_like("background", given, "poses", poses)
        self._channels(ground)
        if ground.dim() in (1, 2):
            ground = ground[..., None, None]
        if ground.dim() == 4 and ground.shape[0] not in (1, poses.shape[0]):
            raise ShapeError(f"background: expected a batch of {poses.shape[0]}, got {tuple(ground.shape)}")
        return ground.expand(poses.shape[0], -1, self.camera.height, self.camera.width)

    def _flat_colors(self, channels: int, poses: Tensor) -> list[Tensor]:
        key = ("colors", channels, poses.dtype, poses.device)
        if key not in self._cache:
            if channels not in (1, 3):
                raise InputError(f"textures: shapes have colors for 1 or 3 channels, the background has {channels}")
            colors = [poses.new_tensor(color) for color in self.colors]
            self._cache[key] = colors if channels == 3 else [color.mean(0, keepdim=True) for color in colors]
        return self._cache[key]

    def _view(self, camera: Projection, poses: Tensor, layout: tuple[tuple[int, int, int], ...]) -> Settings:
        key = ("view", poses.dtype, poses.device, layout, self.light, self.edges, self.taps)
        if key not in self._cache:
            light = self.light or Light(ambient=1.0, diffuse=0.0)
            kernels = precision.load("physvision.camera.kernels", poses.dtype)
            self._cache[key] = Settings(
                kernels,
                *constants(kernels, self.patches, layout, camera, (light.ambient, light.diffuse), poses),
                height=camera.height,
                width=camera.width,
                soft=self.edges == "soft",
                taps=self.taps,
            )
        return self._cache[key]

    def _geometry(self, camera: Projection, poses: Tensor, sizes: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return rays (batch, patches, 4, 3), extents and light (batch, patches, 3), in the frames of the patches."""
        batch, count = poses.shape[:2]
        sizes = self.sizes.to(poses) if sizes is None else check_like("sizes", sizes, "poses", poses)
        check_shape("sizes", sizes, (count, 3) if sizes.dim() == 2 else (batch, count, 3))
        # Shapes whose pose is not finite are invisible, and their gradient is zero.
        valid = torch.isfinite(poses).all(-1).all(-1)
        eye = torch.eye(4, dtype=poses.dtype, device=poses.device)
        poses = torch.where(valid[..., None, None], poses, eye)
        sizes = torch.where(valid[..., None], sizes, torch.zeros_like(sizes)).expand(batch, -1, -1)
        rays = local_rays(camera, self._pixels(camera), poses)
        light = self._light(poses)
        padded = nn.functional.pad(sizes, (0, 1))
        if self._one_patch_each:
            extents = padded.gather(2, self._extents.expand(batch, -1, -1))
            return rays, extents, light
        sizes = sizes[:, self._shape]
        extents = padded[:, self._shape].gather(2, self._extents.expand(batch, -1, -1))
        turns = self._turns.to(poses)
        rays = rays[:, self._shape] @ turns
        shift = self._shifts.to(poses) * sizes.gather(2, self._axis.expand(batch, -1)[..., None])[..., 0]
        moved = rays.new_zeros(4, 3)
        moved[3 if camera.orthographic else 0, 2] = 1.0
        rays = rays - shift[..., None, None] * moved
        return rays, extents, (light[:, self._shape, None] @ turns)[:, :, 0]

    def _pixels(self, camera: Projection) -> Tensor:
        """Return `pixel_rays`, cached for the caster's own camera if its gradient is not needed."""
        if camera is not self._cache.get("camera"):
            return pixel_rays(camera)
        if "pixels" not in self._cache:
            self._cache["pixels"] = pixel_rays(camera)
        return self._cache["pixels"]

    def _light(self, poses: Tensor) -> Tensor:
        if self.light is None:
            return poses.new_zeros(1, 1, 3).expand(*poses.shape[:2], 3)
        length = math.hypot(*self.light.direction)
        if not 0.0 < length < math.inf:
            raise InputError(f"light: expected a direction, got {self.light.direction}")
        return poses.new_tensor([value / length for value in self.light.direction]) @ poses[..., :3, :3]
