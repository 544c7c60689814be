"""Quadrupeds with other lengths and masses: the engine's properties, where they stand, and their model in MuJoCo."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable

import mujoco
import torch
from quadruped import MASS, Gait
from torch import Tensor

from physvision.core import State

FOOT = 0.03  # m
# By which share each may differ. A robot whose hind legs are longer by a tenth stumbles.
DESIGN = {
    "legs' length": 0.25,
    "thighs' length, of it": 0.25,
    "hind legs' length, of those in front": 0.05,
    "torso's length": 0.25,
    "legs' mass a meter": 0.25,
    "torso's center of mass, of half its length": 0.1,
}
ENGINE = Gait(0.01).engine
OWN = {name: value.double() for name, value in ENGINE.properties.items()}
TORSO = OWN["shape_size"][1]


def relative_design(design: Tensor) -> Tensor:
    """By which shares lengths and masses differ, (robots, 6), of numbers without bounds."""
    return design.tanh() * design.new_tensor(list(DESIGN.values()))


def built(design: Tensor) -> dict[str, Tensor]:
    """The engine's properties with a design, (robots, 6).

    Shapes stay alike: links are rods whose mass grows with their length, the torso is a box as long as its shoulders
    are apart. The torso has the mass that the legs have not, so that all together stays.
    """
    fraction = relative_design(design)
    long, thigh, hind, torso, density, forward = (1 + fraction).unbind(1)
    pair = torch.stack([thigh, 2 - thigh], 1)
    leg = [long[:, None] * side[:, None] * pair for side in (2 / (1 + hind), 2 * hind / (1 + hind))]
    links, density = torch.cat([leg[0], leg[0], leg[1], leg[1]], 1), density[:, None]
    thighs, shanks = links[:, ::2], links[:, 1::2]
    properties = {
        name: OWN[name].expand(len(design), *OWN[name].shape).clone()
        for name in ("mass", "center_of_mass", "inertia", "position", "shape_pose", "shape_size")
    }
    mass, center, inertia, position, pose, size = properties.values()
    legs = links * density
    mass[:, 1:] *= legs
    mass[:, 0] = MASS - mass[:, 1:].sum(1)
    center[:, 1:, 2] *= links
    center[:, 0, 0] = (forward - 1) * torso * TORSO[0] / 2
    inertia[:, 1:] *= (legs * links**2)[..., None, None]
    inertia[:, 1:, 2, 2] /= links**2
    squares = (TORSO * torch.stack([torso, *[torch.ones_like(torso)] * 2], 1)).square()
    inertia[:, 0] = torch.diag_embed((squares.sum(1, keepdim=True) - squares) * mass[:, :1] / 12)
    position[:, 1::2, 0] *= torso[:, None]
    position[:, 2::2, 2] *= thighs
    # The ground, the torso and its four spheres; then of each leg thigh, shank and foot.
    pose[:, 2:6, 0, 3] *= torso[:, None]
    size[:, 1, 0] *= torso
    for number, factor in enumerate((thighs, shanks, shanks)):
        pose[:, 6 + number :: 3, 2, 3] *= factor
        if number < 2:
            size[:, 6 + number :: 3, 2] *= factor
    return properties


def standing(properties: dict[str, Tensor]) -> State:
    """At rest on four straight legs, the torso tilted where those in front are longer or shorter."""
    position, pose = properties["position"], properties["shape_pose"]
    half = position[:, 1, 0]
    front, hind = (-position[:, 2 + leg, 2] - pose[:, 8 + 3 * leg // 2, 2, 3] for leg in (0, 4))
    tilt = -torch.atan2(front - hind, 2 * half)
    height = half * (front + hind) / ((2 * half).square() + (front - hind).square()).sqrt() + FOOT
    at = ENGINE.initial_state(len(half), torch.float64)
    zero = torch.zeros_like(half)
    pieces = [zero, zero, height, (tilt / 2).cos(), zero, (tilt / 2).sin(), zero]
    return State(torch.cat([torch.stack(pieces, 1), at.q[:, 7:]], 1), at.v)


def remodeled(properties: dict[str, Tensor]) -> Callable[[mujoco.MjSpec], None]:
    """Function that sets the properties of the first robot in MuJoCo's model."""
    mass, center, inertia, position, pose = (
        properties[name][0].tolist() for name in ("mass", "center_of_mass", "inertia", "position", "shape_pose")
    )

    def change(model: mujoco.MjSpec) -> None:
        for number, body in enumerate(model.bodies[1:]):
            body.explicitinertial, body.mass, body.ipos = True, mass[number], center[number]
            body.iquat, body.inertia = [1, 0, 0, 0], [inertia[number][axis][axis] for axis in range(3)]
            if number:
                body.pos = position[number]
        for geom, frame in zip(model.geoms, pose, strict=True):
            if geom.type == mujoco.mjtGeom.mjGEOM_SPHERE:
                geom.pos = [row[3] for row in frame[:3]]

    return change


def described(design: Tensor) -> str:
    """A design in words."""
    lines = (
        f"{name} {100 * entry:+.0f} %" for name, entry in zip(DESIGN, relative_design(design).tolist(), strict=True)
    )
    return ", ".join(lines)
