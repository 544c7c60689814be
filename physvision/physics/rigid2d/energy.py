"""Poses and energies of a planar world, in torch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State
from physvision.physics.engine import Energies
from physvision.physics.rigid2d.compiler import Model
from physvision.physics.rigid2d.properties import WorldProperties


def planar_poses(model: Model, state: State, properties: WorldProperties) -> Float[Tensor, "batch bodies_and_world 3"]:
    """Return x, y and angle of every body, the world last."""
    batch = state.batch
    # The world, the body after the last, is at the origin.
    bodies = list(state.q.new_zeros(batch, len(model.bodies) + 1, 3).unbind(1))
    static = properties.static_pose.to(state.q).expand(batch, -1, -1)
    for slot, number in enumerate(model.static):
        bodies[number] = static[:, slot]
    for slot, number in enumerate(model.moving):
        bodies[number] = state.q[:, 3 * slot : 3 * slot + 3]
    return torch.stack(bodies, 1)


def poses(model: Model, state: State, properties: WorldProperties) -> Float[Tensor, "batch bodies 4 4"]:
    """Return the frame of every body in the world, z out of the plane."""
    pose = planar_poses(model, state, properties)[:, :-1]
    c, s = torch.cos(pose[..., 2]), torch.sin(pose[..., 2])
    zero, unit = torch.zeros_like(c), torch.ones_like(c)
    rows = [c, -s, zero, pose[..., 0], s, c, zero, pose[..., 1], zero, zero, unit, zero, zero, zero, zero, unit]
    return torch.stack(rows, -1).unflatten(-1, (4, 4))


def energy(model: Model, state: State, properties: WorldProperties) -> Energies:
    """Return the kinetic energy, and that of gravity, joint springs and springs."""
    p = properties.to(state.q)
    q, v = state.q.unflatten(1, (-1, 3)), state.v.unflatten(1, (-1, 3))
    inertia = torch.stack([p.mass, p.mass, p.mass * p.gyration.square()], -1)
    kinetic = 0.5 * (inertia * v.square()).sum((1, 2))
    potential = -(p.mass * (q[..., :2] * p.gravity.unsqueeze(-2)).sum(-1)).sum(-1)
    pose = planar_poses(model, state, p)
    if model.joints:
        first, second = zip(*(ends for _, ends in model.joints), strict=True)
        error = pose[:, list(first), 2] - pose[:, list(second), 2] - p.joint_angle
        potential = potential + 0.5 * (p.joint_stiffness * error.square()).sum(-1)
    if model.springs:
        first, second = zip(*(ends for _, ends in model.springs), strict=True)
        ends = [
            points_in_world(pose[:, list(side)], p.spring_anchors[..., k, :]) for k, side in enumerate((first, second))
        ]
        stretch = (ends[0] - ends[1]).norm(dim=-1) - p.spring_length
        potential = potential + 0.5 * (p.spring_stiffness * stretch.square()).sum(-1)
    return kinetic, potential


def points_in_world(pose: Tensor, anchors: Tensor) -> Tensor:
    """Return points in the world, given in the frames of bodies."""
    c, s = torch.cos(pose[..., 2]), torch.sin(pose[..., 2])
    x, y = anchors[..., 0], anchors[..., 1]
    return torch.stack([pose[..., 0] + c * x - s * y, pose[..., 1] + s * x + c * y], -1)
