"""Penetration of bodies at the start: an error that names them, or their separation."""

from __future__ import annotations

import math

from physvision.core import ModelError
from physvision.physics.rigid2d.bodies import Body, Circle, Polygon
from physvision.physics.rigid2d.compiler import Model

Point = tuple[float, float]
Pose = tuple[float, float, float]

# Passes over all pairs in which bodies are moved apart, before there is no room for them.
MAX_PASSES = 1000


def _outline(body: Body, pose: Pose) -> tuple[list[Point], float]:
    """Return the corners of a body at a pose, or the center of a circle, and the radius about them."""
    if isinstance(body, Circle):
        return [pose[:2]], body.radius
    assert isinstance(body, Polygon)
    c, s = math.cos(pose[2]), math.sin(pose[2])
    return [(pose[0] + c * x - s * y, pose[1] + s * x + c * y) for x, y in body.corners], 0.0


def _axes(a: list[Point], b: list[Point]) -> list[Point]:
    """Return the candidate separating axes of two bodies: the normals of edges, and lines to a circle's center."""
    axes = []
    for points, others in ((a, b), (b, a)):
        if len(points) == 1:
            axes += [(x - points[0][0], y - points[0][1]) for x, y in others]
        else:
            axes += [(r[1] - p[1], p[0] - r[0]) for p, r in zip(points, points[1:] + points[:1], strict=True)]
    scaled = [(x / math.hypot(x, y), y / math.hypot(x, y)) for x, y in axes if math.hypot(x, y) > 0]
    return scaled or [(1.0, 0.0)]


def penetration(a: Body, pose_a: Pose, b: Body, pose_b: Pose) -> tuple[float, Point]:
    """Return the penetration of two bodies (negative if separate), and the direction from b to a to part them."""
    (points_a, radius_a), (points_b, radius_b) = _outline(a, pose_a), _outline(b, pose_b)
    smallest, direction = math.inf, (1.0, 0.0)
    for axis in _axes(points_a, points_b):
        along_a, along_b = ([x * axis[0] + y * axis[1] for x, y in points] for points in (points_a, points_b))
        for amount, sign in ((max(along_b) - min(along_a), 1.0), (max(along_a) - min(along_b), -1.0)):
            if amount < smallest:
                smallest, direction = amount, (sign * axis[0], sign * axis[1])
    return smallest + radius_a + radius_b, direction


def separate(model: Model, start: list[Pose], tolerance: float, move: bool) -> list[Pose]:
    """Return the poses of moving bodies without penetration.

    Args:
        model: Bodies of the world.
        start: Pose of each moving body.
        tolerance: Penetration that is accepted.
        move: If true, bodies that penetrate are moved apart.

    Raises:
        ModelError: if bodies penetrate and are not to be moved apart, or cannot be.
    """
    poses = {i: model.pose(i) for i in range(len(model.bodies))}
    poses.update(zip(model.moving, start, strict=True))
    radii = [body.bounding_radius for body in model.bodies]
    weights = {i: 0.0 if body.static else 1.0 / body.mass for i, body in enumerate(model.bodies)}
    max_penetration, names = 0.0, ""
    for _ in range(MAX_PASSES if move else 1):
        max_penetration = 0.0
        for a, b in model.pairs:
            if math.dist(poses[a][:2], poses[b][:2]) > radii[a] + radii[b]:
                continue
            amount, direction = penetration(model.bodies[a], poses[a], model.bodies[b], poses[b])
            if amount <= tolerance:
                continue
            if amount > max_penetration:
                max_penetration, names = amount, f"{model.names[a]!r} and {model.names[b]!r}"
            for body, sign in ((a, 1.0), (b, -1.0)):
                shift = sign * amount * weights[body] / (weights[a] + weights[b]) if move else 0.0
                x, y, angle = poses[body]
                poses[body] = (x + shift * direction[0], y + shift * direction[1], angle)
        if max_penetration == 0.0:
            return [poses[i] for i in model.moving]
    remedy = "there is no room to separate them" if move else "move them, or use initial_penetration='separate'"
    raise ModelError(f"{names} penetrate by {max_penetration:.6g} at the start; {remedy}")
