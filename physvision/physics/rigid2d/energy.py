"""Poses and energies of a world, in plain torch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State
from physvision.physics.rigid2d.assembly import Assembly
from physvision.physics.rigid2d.properties import WorldProperties


def placements(
    assembly: Assembly, state: State, properties: WorldProperties
) -> Float[Tensor, "batch bodies_and_world 3"]:
    """x, y and angle of every body, the world last."""
    batch = state.batch
    # The world, the body after the last, is at the origin.
    every = list(state.q.new_zeros(batch, len(assembly.bodies) + 1, 3).unbind(1))
    static = properties.static_pose.to(state.q).expand(batch, -1, -1)
    for slot, number in enumerate(assembly.static):
        every[number] = static[:, slot]
    for slot, number in enumerate(assembly.moving):
        every[number] = state.q[:, 3 * slot : 3 * slot + 3]
    return torch.stack(every, 1)


def poses(assembly: Assembly, state: State, properties: WorldProperties) -> Float[Tensor, "batch bodies 4 4"]:
    """The frame of every body in the world, z out of the plane."""
    place = placements(assembly, state, properties)[:, :-1]
    c, s = torch.cos(place[..., 2]), torch.sin(place[..., 2])
    zero, one = torch.zeros_like(c), torch.ones_like(c)
    rows = [c, -s, zero, place[..., 0], s, c, zero, place[..., 1], zero, zero, one, zero, zero, zero, zero, one]
    return torch.stack(rows, -1).unflatten(-1, (4, 4))


def energy(
    assembly: Assembly, state: State, properties: WorldProperties
) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """Kinetic energy, and that of gravity, joint springs and springs."""
    p = properties.to(state.q)
    q, v = state.q.unflatten(1, (-1, 3)), state.v.unflatten(1, (-1, 3))
    inertia = torch.stack([p.mass, p.mass, p.mass * p.gyration.square()], -1)
    kinetic = 0.5 * (inertia * v.square()).sum((1, 2))
    potential = -(p.mass * (q[..., :2] * p.gravity.unsqueeze(-2)).sum(-1)).sum(-1)
    place = placements(assembly, state, p)
    if assembly.joints:
        first, second = zip(*(ends for _, ends in assembly.joints), strict=True)
        off = place[:, list(first), 2] - place[:, list(second), 2] - p.joint_angle
        potential = potential + 0.5 * (p.joint_stiffness * off.square()).sum(-1)
    if assembly.springs:
        first, second = zip(*(ends for _, ends in assembly.springs), strict=True)
        ends = [_points(place[:, list(side)], p.spring_anchors[..., k, :]) for k, side in enumerate((first, second))]
        stretch = (ends[0] - ends[1]).norm(dim=-1) - p.spring_length
        potential = potential + 0.5 * (p.spring_stiffness * stretch.square()).sum(-1)
    return kinetic, potential


def _points(place: Tensor, anchors: Tensor) -> Tensor:
    """Points of bodies, given in their frames, in the world."""
    c, s = torch.cos(place[..., 2]), torch.sin(place[..., 2])
    x, y = anchors[..., 0], anchors[..., 1]
    return torch.stack([place[..., 0] + c * x - s * y, place[..., 1] + s * x + c * y], -1)
