"""Penetration of bodies at the start: an error that names them, or their separation."""

from __future__ import annotations

import math

from physvision.core import ModelError
from physvision.physics.rigid2d.bodies import Body, Circle, Polygon
from physvision.physics.rigid2d.compiler import Model

Pose = tuple[float, float, float]

# Passes over all pairs in which bodies are moved apart, before there is no room for them.
MAX_PASSES = 1000


def _corners(body: Polygon, pose: Pose) -> list[tuple[float, float]]:
    c, s = math.cos(pose[2]), math.sin(pose[2])
    return [(pose[0] + c * x - s * y, pose[1] + s * x + c * y) for x, y in body.corners]


def _interval(body: Body, pose: Pose, axis: tuple[float, float]) -> tuple[float, float]:
    """Return the interval that a body covers along an axis."""
    if isinstance(body, Circle):
        center = pose[0] * axis[0] + pose[1] * axis[1]
        return center - body.radius, center + body.radius
    assert isinstance(body, Polygon)
    along = [x * axis[0] + y * axis[1] for x, y in _corners(body, pose)]
    return min(along), max(along)


def _axes(a: Body, pose_a: Pose, b: Body, pose_b: Pose) -> list[tuple[float, float]]:
    """Return the candidate separating axes of two convex bodies."""
    axes = []
    polygons = [(body, pose) for body, pose in ((a, pose_a), (b, pose_b)) if isinstance(body, Polygon)]
    for body, pose in polygons:
        corners = _corners(body, pose)
        for p, r in zip(corners, corners[1:] + corners[:1], strict=True):
            axes.append((r[1] - p[1], p[0] - r[0]))
    for body, pose in ((a, pose_a), (b, pose_b)):
        if isinstance(body, Circle):
            points = [point for polygon, place in polygons for point in _corners(polygon, place)]
            points = points or [(pose_b if body is a else pose_a)[:2]]
            axes += [(x - pose[0], y - pose[1]) for x, y in points]
    scaled = [(x / math.hypot(x, y), y / math.hypot(x, y)) for x, y in axes if math.hypot(x, y) > 0]
    return scaled or [(1.0, 0.0)]


def penetration(a: Body, pose_a: Pose, b: Body, pose_b: Pose) -> tuple[float, tuple[float, float]]:
    """Return the penetration of two bodies (negative if separate), and the direction from b to a to part them."""
    smallest, direction = math.inf, (1.0, 0.0)
    for axis in _axes(a, pose_a, b, pose_b):
        low_a, high_a = _interval(a, pose_a, axis)
        low_b, high_b = _interval(b, pose_b, axis)
        for amount, sign in ((high_b - low_a, 1.0), (high_a - low_b, -1.0)):
            if amount < smallest:
                smallest, direction = amount, (sign * axis[0], sign * axis[1])
    return smallest, direction


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
