"""Overlapping starts: found, named, and refused or pushed apart."""

from __future__ import annotations

import math

from physvision.core import ModelError
from physvision.physics.rigid2d.assembly import Assembly
from physvision.physics.rigid2d.bodies import Body, Circle, Polygon

Pose = tuple[float, float, float]


def _corners(body: Polygon, pose: Pose) -> list[tuple[float, float]]:
    c, s = math.cos(pose[2]), math.sin(pose[2])
    return [(pose[0] + c * x - s * y, pose[1] + s * x + c * y) for x, y in body.corners]


def _spread(body: Body, pose: Pose, axis: tuple[float, float]) -> tuple[float, float]:
    """The interval that a body covers along an axis."""
    if isinstance(body, Circle):
        middle = pose[0] * axis[0] + pose[1] * axis[1]
        return middle - body.radius, middle + body.radius
    assert isinstance(body, Polygon)
    along = [x * axis[0] + y * axis[1] for x, y in _corners(body, pose)]
    return min(along), max(along)


def _axes(a: Body, at: Pose, b: Body, to: Pose) -> list[tuple[float, float]]:
    """Directions along which two convex bodies are apart if they are apart at all."""
    found = []
    polygons = [(body, pose) for body, pose in ((a, at), (b, to)) if isinstance(body, Polygon)]
    for body, pose in polygons:
        corners = _corners(body, pose)
        for p, r in zip(corners, corners[1:] + corners[:1], strict=True):
            found.append((r[1] - p[1], p[0] - r[0]))
    for body, pose in ((a, at), (b, to)):
        if isinstance(body, Circle):
            points = [point for other, there in polygons for point in _corners(other, there)]
            points = points or [(to if body is a else at)[:2]]
            found += [(x - pose[0], y - pose[1]) for x, y in points]
    scaled = [(x / math.hypot(x, y), y / math.hypot(x, y)) for x, y in found if math.hypot(x, y) > 0]
    return scaled or [(1.0, 0.0)]


def depth(a: Body, at: Pose, b: Body, to: Pose) -> tuple[float, tuple[float, float]]:
    """By how much two bodies overlap (negative: are apart), and the direction from b to a to part them along."""
    best, way = math.inf, (1.0, 0.0)
    for axis in _axes(a, at, b, to):
        low_a, high_a = _spread(a, at, axis)
        low_b, high_b = _spread(b, to, axis)
        for overlap, sign in ((high_b - low_a, 1.0), (high_a - low_b, -1.0)):
            if overlap < best:
                best, way = overlap, (sign * axis[0], sign * axis[1])
    return best, way


def separate(assembly: Assembly, start: list[Pose], tolerance: float, push: bool) -> list[Pose]:
    """The poses of moving bodies, without overlap: as given where there is none.

    Raises:
        ModelError: if bodies overlap and are not to be pushed apart, or cannot be.
    """
    poses = {i: assembly.pose(i) for i in range(len(assembly.bodies))}
    poses.update(zip(assembly.moving, start, strict=True))
    shares = {i: 0.0 if body.static else 1.0 / body.mass for i, body in enumerate(assembly.bodies)}
    deepest, named = 0.0, ""
    for _ in range(1000 if push else 1):
        deepest = 0.0
        for a, b in assembly.pairs:
            overlap, way = depth(assembly.bodies[a], poses[a], assembly.bodies[b], poses[b])
            if overlap <= tolerance:
                continue
            if overlap > deepest:
                deepest, named = overlap, f"{assembly.names[a]!r} and {assembly.names[b]!r}"
            for body, sign in ((a, 1.0), (b, -1.0)):
                move = sign * overlap * shares[body] / (shares[a] + shares[b]) if push else 0.0
                x, y, angle = poses[body]
                poses[body] = (x + move * way[0], y + move * way[1], angle)
        if deepest == 0.0:
            return [poses[i] for i in assembly.moving]
    remedy = "there is no room to push them apart" if push else "move them, or use overlap='push'"
    raise ModelError(f"{named} overlap by {deepest:.6g} at the start; {remedy}")
