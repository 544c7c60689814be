"""A second camera, in plain torch and by brute force: every ray against every shape, any number of samples a pixel.

It shares no code with the product. Rays are tested against solids (slabs, quadratics), nothing is projected, nothing
is anti-aliased other than by averaging samples.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from physvision.core import Box, Capsule, Circle, Cylinder, Disc, Plane, Polygon, Rectangle, Shape, Sphere

FAR = 1e30


def _nearest(candidates: list[tuple[Tensor, Tensor]], near: float) -> Tensor:
    """The smallest distance beyond `near` of all (distance, valid) pairs."""
    best = torch.full_like(candidates[0][0], FAR)
    for distance, valid in candidates:
        best = torch.where(valid & (distance > near) & (distance < best), distance, best)
    return best


def _roots(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both roots of a t² + 2 b t + c, and whether they are real."""
    square = b * b - a * c
    root = square.clamp_min(0).sqrt()
    safe = torch.where(a.abs() < 1e-300, torch.full_like(a, 1e-300), a)
    return (-b - root) / safe, (-b + root) / safe, (square > 0) & (a.abs() > 1e-300)


def _inside_polygon(x: Tensor, y: Tensor, corners: tuple[tuple[float, float], ...]) -> Tensor:
    inside = torch.ones_like(x, dtype=torch.bool)
    for (x0, y0), (x1, y1) in zip(corners, (*corners[1:], corners[0]), strict=True):
        inside &= (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) >= 0
    return inside


def intersect(shape: Shape, o: Tensor, d: Tensor, near: float) -> Tensor:
    """Ray parameter of the nearest hit of rays (n, 3), in the frame of the shape; FAR where there is none."""
    ox, oy, oz = o.unbind(-1)
    dx, dy, dz = d.unbind(-1)
    flat = -oz / torch.where(dz == 0, torch.full_like(dz, 1e-300), dz)
    px, py = ox + flat * dx, oy + flat * dy
    always = torch.ones_like(ox, dtype=torch.bool)
    if isinstance(shape, Plane):
        return _nearest([(flat, always)], near)
    if isinstance(shape, Rectangle):
        return _nearest([(flat, (px.abs() <= shape.width / 2) & (py.abs() <= shape.height / 2))], near)
    if isinstance(shape, Disc | Circle):
        return _nearest([(flat, px * px + py * py <= shape.radius**2)], near)
    if isinstance(shape, Polygon):
        return _nearest([(flat, _inside_polygon(px, py, shape.vertices))], near)
    if isinstance(shape, Sphere):
        t0, t1, real = _roots((d * d).sum(-1), (o * d).sum(-1), (o * o).sum(-1) - shape.radius**2)
        return _nearest([(t0, real), (t1, real)], near)
    if isinstance(shape, Box):
        faces = []
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            for sign in (-1, 1):
                t = (sign * shape.size[k] / 2 - o[..., k]) / torch.where(d[..., k] == 0, 1e-300, d[..., k])
                p = o + t[..., None] * d
                faces.append((t, (p[..., i].abs() <= shape.size[i] / 2) & (p[..., j].abs() <= shape.size[j] / 2)))
        return _nearest(faces, near)
    assert isinstance(shape, Capsule | Cylinder)
    t0, t1, real = _roots(dx * dx + dy * dy, ox * dx + oy * dy, ox * ox + oy * oy - shape.radius**2)
    half = shape.length / 2
    hits = [(t, real & ((oz + t * dz).abs() <= half)) for t in (t0, t1)]
    for sign in (-1, 1):
        end = o - torch.tensor([0, 0, sign * half], dtype=o.dtype)
        if isinstance(shape, Cylinder):
            t = -end[..., 2] / torch.where(dz == 0, 1e-300, dz)
            p = end + t[..., None] * d
            hits.append((t, p[..., 0] ** 2 + p[..., 1] ** 2 <= shape.radius**2))
        else:
            a, b, real = _roots((d * d).sum(-1), (end * d).sum(-1), (end * end).sum(-1) - shape.radius**2)
            hits += [(t, real & (sign * (oz + t * dz) >= half)) for t in (a, b)]
    return _nearest(hits, near)


def _surface(shape: Shape, p: Tensor) -> tuple[Tensor, Tensor, Tensor, str | Tensor]:
    """Texture coordinates, unit normal, and how the texture goes on beyond its borders (a tensor: where it wraps)."""
    x, y, z = p.unbind(-1)
    up = torch.zeros_like(p)
    up[..., 2] = 1
    around = 0.5 + torch.atan2(y, x) / (2 * math.pi)
    side = torch.stack([x, y, torch.zeros_like(z)], -1)
    unit = torch.nn.functional.normalize
    if isinstance(shape, Plane):
        return x / shape.tile[0] + 0.5, 0.5 - y / shape.tile[1], up, "repeat"
    if isinstance(shape, Rectangle):
        return x / shape.width + 0.5, 0.5 - y / shape.height, up, "clamp"
    if isinstance(shape, Disc | Circle):
        return x / (2 * shape.radius) + 0.5, 0.5 - y / (2 * shape.radius), up, "clamp"
    if isinstance(shape, Polygon):
        xs, ys = zip(*shape.vertices, strict=True)
        return (x - min(xs)) / (max(xs) - min(xs)), (max(ys) - y) / (max(ys) - min(ys)), up, "clamp"
    if isinstance(shape, Sphere):
        return around, torch.atan2(torch.hypot(x, y), z) / math.pi, unit(p, dim=-1), "around"
    if isinstance(shape, Capsule):
        axis = torch.stack([torch.zeros_like(x), torch.zeros_like(x), z.clamp(-shape.length / 2, shape.length / 2)], -1)
        return around, 0.5 - z / (shape.length + 2 * shape.radius), unit(p - axis, dim=-1), "around"
    if isinstance(shape, Cylinder):
        cap = z.abs() >= shape.length / 2 * (1 - 1e-9)
        u = torch.where(cap, x / (2 * shape.radius) + 0.5, around)
        v = torch.where(cap, 0.5 - y / (2 * shape.radius), 0.5 - z / shape.length)
        return u, v, torch.where(cap[..., None], up, unit(side, dim=-1)), ~cap
    assert isinstance(shape, Box)
    size = torch.tensor(shape.size, dtype=p.dtype)
    k = (p.abs() / size).argmax(-1)
    i, j = (k + 1) % 3, (k + 2) % 3
    u = p.gather(-1, i[..., None])[..., 0] / size[i] + 0.5
    v = 0.5 - p.gather(-1, j[..., None])[..., 0] / size[j]
    return u, v, torch.nn.functional.one_hot(k, 3).to(p.dtype), "clamp"


def sample(texture: Tensor, u: Tensor, v: Tensor, beyond: str | Tensor) -> Tensor:
    """Bilinear interpolation of a (channels, h, w) texture; the center of texel i is at (i + ½)/w."""
    height, width = texture.shape[-2:]
    x, y = u * width - 0.5, v * height - 0.5
    x0, y0 = x.floor(), y.floor()

    def texel(column: Tensor, row: Tensor) -> Tensor:
        column, row = column.long(), row.long()
        if isinstance(beyond, Tensor):
            column = torch.where(beyond, column % width, column.clamp(0, width - 1))
        else:
            column = column.clamp(0, width - 1) if beyond == "clamp" else column % width
        repeats = isinstance(beyond, str) and beyond == "repeat"
        row = row % height if repeats else row.clamp(0, height - 1)
        return texture[:, row, column]

    fx, fy = x - x0, y - y0
    top = texel(x0, y0) * (1 - fx) + texel(x0 + 1, y0) * fx
    bottom = texel(x0, y0 + 1) * (1 - fx) + texel(x0 + 1, y0 + 1) * fx
    return top * (1 - fy) + bottom * fy


def rays(intrinsics: Tensor, extrinsics: Tensor, x: Tensor, y: Tensor, pinhole: bool) -> tuple[Tensor, Tensor]:
    """Origins and directions in the world of the rays through pixels (x, y); the parameter is depth along z."""
    a = (x - intrinsics[0, 2]) / intrinsics[0, 0]
    b = (y - intrinsics[1, 2]) / intrinsics[1, 1]
    zero, unit = torch.zeros_like(a), torch.ones_like(a)
    o = torch.stack([zero, zero, zero] if pinhole else [a, b, zero], -1)
    d = torch.stack([a, b, unit] if pinhole else [zero, zero, unit], -1)
    turn, shift = extrinsics[:3, :3], extrinsics[:3, 3]
    return (o - shift) @ turn, d @ turn


def render(
    shapes: list[Shape],
    poses: Tensor,
    textures: list[Tensor],
    background: Tensor,
    intrinsics: Tensor,
    extrinsics: Tensor,
    size: tuple[int, int],
    *,
    pinhole: bool = True,
    near: float = 1e-3,
    samples: int = 16,
    light: tuple[tuple[float, float, float], float, float] | None = None,
    window: tuple[int, int, int, int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Color (channels, height, width), nearest shape (−1: none) and depth of every sample.

    Args:
        background: (channels, height, width).
        samples: along each side of a pixel.
        light: direction towards it in the world, ambient, diffuse.
        window: rows and columns to render (top, bottom, left, right); all by default.
    """
    top, bottom, left, right = window or (0, size[0], 0, size[1])
    offset = (torch.arange(samples, dtype=torch.float64) + 0.5) / samples - 0.5
    row = (torch.arange(top, bottom, dtype=torch.float64)[:, None] + offset).flatten()
    column = (torch.arange(left, right, dtype=torch.float64)[:, None] + offset).flatten()
    y, x = torch.meshgrid(row, column, indexing="ij")
    o, d = rays(intrinsics, extrinsics, x.flatten(), y.flatten(), pinhole)
    depth = torch.full((x.numel(),), FAR, dtype=torch.float64)
    nearest = torch.full((x.numel(),), -1)
    ground = background.double()[:, top:bottom, left:right]
    color = ground.repeat_interleave(samples, 1).repeat_interleave(samples, 2).flatten(1).clone()
    for index, shape in enumerate(shapes):
        turn, shift = poses[index, :3, :3], poses[index, :3, 3]
        local_o, local_d = (o - shift) @ turn, d @ turn
        t = intersect(shape, local_o, local_d, near)
        # Of two at the same depth the later one is in front.
        closer = (t < FAR) & (t <= depth * (1 + 1e-9))
        depth, nearest = torch.where(closer, t, depth), torch.where(closer, index, nearest)
        p = (local_o + t[:, None] * local_d)[closer]
        u, v, normal, beyond = _surface(shape, p)
        surface_color = sample(textures[index].double(), u, v, beyond)
        if light is not None:
            direction = torch.nn.functional.normalize(torch.tensor(light[0], dtype=torch.float64), dim=0) @ turn
            facing = -torch.sign((normal * local_d[closer]).sum(-1, keepdim=True))
            surface_color = surface_color * (light[1] + light[2] * ((normal * facing) @ direction).clamp_min(0))
        color[:, closer] = surface_color
    height, width = bottom - top, right - left
    color = color.reshape(-1, height, samples, width, samples).mean((2, 4))
    shape_of = (height * samples, width * samples)
    return color, nearest.reshape(shape_of), depth.reshape(shape_of)
