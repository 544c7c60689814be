"""Random scenes with occlusion, for the tests of values and of gradients."""

# pyright: reportCallIssue=false

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from physvision.camera import Camera, Light, RayCaster
from physvision.core import Box, Capsule, Circle, Cylinder, Disc, Plane, Polygon, Rectangle, Shape, Sphere

SOLID = (Sphere, Box, Capsule, Cylinder, Disc, Rectangle)


@dataclass
class Scene:
    """What a camera needs; `poses` is (1, shapes, 4, 4), everything in float64."""

    camera: Camera
    shapes: list[Shape]
    poses: Tensor
    textures: list[Tensor]
    background: Tensor
    light: Light | None = None

    def render(
        self,
        poses: Tensor | None = None,
        edges: str = "soft",
        finer: int = 1,
        window: tuple[int, int, int, int] | None = None,
    ) -> Tensor:
        """Frames; `finer` renders that many times as many pixels along each side and averages them.

        `window` renders only the pixels from a row to another, and from a column to another.
        """
        top, bottom, left, right = window or (0, self.camera.height, 0, self.camera.width)
        height, width = bottom - top, right - left
        inverse = torch.tensor(
            [[finer, 0, (finer - 1) / 2 - finer * left], [0, finer, (finer - 1) / 2 - finer * top], [0, 0, 1]]
        ).double()
        camera = replace(
            self.camera, intrinsics=inverse @ self.camera.intrinsics, height=height * finer, width=width * finer
        )
        ground = self.background[:, top:bottom, left:right].repeat_interleave(finer, 1).repeat_interleave(finer, 2)
        caster = RayCaster(camera, self.shapes, background=ground, edges=edges, light=self.light)
        frames = caster(self.poses if poses is None else poses, self.textures)
        return frames.unflatten(3, (width, finer)).unflatten(2, (height, finer)).mean((3, 5))


def rotation(generator: torch.Generator) -> Tensor:
    """A random rotation matrix."""
    q, r = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))
    q = q * r.diagonal().sign()
    return q * torch.linalg.det(q)


def twist(poses: Tensor, change: Tensor) -> Tensor:
    """Poses moved by a displacement in the world and turned by a rotation vector, (…, 6), about their own origin."""
    move, turn = change[..., :3], change[..., 3:]
    zero = torch.zeros_like(turn[..., 0])
    x, y, z = turn.unbind(-1)
    skew = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).unflatten(-1, (3, 3))
    top = torch.cat([torch.matrix_exp(skew) @ poses[..., :3, :3], poses[..., :3, 3:] + move[..., None]], -1)
    return torch.cat([top, poses[..., 3:, :]], -2)


def solid(kind: type[Shape], radius: float, generator: torch.Generator) -> Shape:
    """A shape about as large as a sphere of this radius."""
    a, b, c = (radius * (0.6 + 0.6 * torch.rand(3, generator=generator))).tolist()
    if kind in (Sphere, Disc, Circle):
        return kind(a)
    if kind is Rectangle:
        return Rectangle(2 * a, 2 * b)
    if kind is Box:
        return Box((1.6 * a, 1.6 * b, 1.6 * c))
    return kind(0.7 * a, 1.6 * b)


def texture(generator: torch.Generator) -> Tensor:
    """A flat color or a random image."""
    if torch.rand((), generator=generator) < 0.4:
        return torch.rand(3, generator=generator, dtype=torch.float64)
    size = torch.randint(2, 9, (2,), generator=generator).tolist()
    return torch.rand(3, *size, generator=generator, dtype=torch.float64)


def smooth_background(size: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Colors that hardly change from pixel to pixel."""
    coarse = torch.rand(1, 3, 3, 3, generator=generator, dtype=torch.float64)
    return torch.nn.functional.interpolate(coarse, size, mode="bicubic", align_corners=True)[0].clamp(0, 1)


def pinhole_scene(seed: int, size: tuple[int, int] = (32, 32), count: int = 3, apart: bool = False) -> Scene:
    """Solids one before the other, `apart` or through each other; a light in every other scene, a floor in every third.

    There is no floor where they are apart.
    """
    generator = torch.Generator().manual_seed(seed)
    camera = Camera.pinhole(*size, position=(0.0, -6.0, 1.0), target=(0.0, 0.0, 0.0), focal=1.6 * size[0])
    kinds = torch.randint(len(SOLID), (count,), generator=generator).tolist()
    shapes: list[Shape] = [solid(SOLID[kind], 0.9, generator) for kind in kinds]
    poses = torch.eye(4, dtype=torch.float64).repeat(count, 1, 1)
    for pose in poses:
        pose[:3, :3] = rotation(generator)
        pose[:3, 3] = (torch.rand(3, generator=generator, dtype=torch.float64) - 0.5) * torch.tensor([2.4, 3.0, 2.0])
    if apart:
        poses[:, 1, 3] = torch.linspace(2.2, -2.2, count, dtype=torch.float64)
    elif seed % 3 == 0:
        floor = torch.eye(4, dtype=torch.float64)
        floor[2, 3] = -1.2
        shapes, poses = [*shapes, Plane((3.0, 3.0))], torch.cat([poses, floor[None]])
    return Scene(
        camera,
        shapes,
        poses[None],
        [texture(generator) for _ in shapes],
        smooth_background(size, generator),
        Light((0.3, -0.5, 0.8)) if seed % 2 else None,
    )


def hiding_scene(seed: int) -> Scene:
    """A large solid, and two smaller ones that are near it or behind it."""
    generator = torch.Generator().manual_seed(seed)
    kinds = torch.randint(6, (3,), generator=generator).tolist()
    scales = [1.5, 0.15, 0.15] + torch.rand(3, generator=generator).double().numpy() * [1.0, 0.7, 0.7]
    shapes = [solid(SOLID[kind], float(scale), generator) for kind, scale in zip(kinds, scales, strict=True)]
    poses = torch.eye(4, dtype=torch.float64).repeat(3, 1, 1)
    for pose in poses:
        pose[:3, :3] = rotation(generator)
        pose[:3, 3] = (torch.rand(3, generator=generator, dtype=torch.float64) - 0.5) * torch.tensor([1.6, 1.0, 1.2])
    poses[1:, 1, 3] += 3.0 * torch.rand((), generator=generator, dtype=torch.float64)
    camera = Camera.pinhole(32, 32, position=(0.0, -6.0, 1.0), target=(0.0, 0.0, 0.0), focal=51.2)
    background = smooth_background((32, 32), generator)
    light = Light((0.3, -0.5, 0.8)) if seed % 2 else None
    return Scene(camera, shapes, poses[None], [texture(generator) for _ in shapes], background, light)


def table_scene(seed: int, size: tuple[int, int] = (32, 32), count: int = 4) -> Scene:
    """Circles, polygons and rectangles on a table, later ones on top."""
    generator = torch.Generator().manual_seed(seed)
    shapes: list[Shape] = []
    poses = torch.eye(4, dtype=torch.float64).repeat(count, 1, 1)
    for index, pose in enumerate(poses):
        radius = float(0.12 + 0.1 * torch.rand((), generator=generator)) * size[0]
        corners = tuple(
            (radius * math.cos(a), radius * math.sin(a))
            for a in (torch.rand(5, generator=generator) * 0.8 + torch.arange(5) * 1.25).tolist()
        )
        shapes.append((Circle(radius), Polygon(corners), Rectangle(2 * radius, radius))[index % 3])
        angle = float(torch.rand((), generator=generator)) * 2 * math.pi
        pose[:2, :2] = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        pose[:2, 3] = torch.rand(2, generator=generator, dtype=torch.float64) * size[0] * 0.7 + 0.15 * size[0]
    return Scene(
        Camera.table(*size, y_down=True),
        shapes,
        poses[None],
        [texture(generator) for _ in shapes],
        smooth_background(size, generator),
    )
