"""The configuration manifold of a tree: displacements in the tangent space of positions that hold quaternions."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.articulated.model.bodies import JOINT_KINDS
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.settings import SETTINGS


class ConfigurationManifold:
    """Positions of a tree with the conventions of MuJoCo's mj_integratePos and mj_differentiatePos.

    Quaternions are (w, x, y, z).
    """

    def __init__(self, tree: KinematicTree) -> None:
        self._spans: list[tuple[bool, slice, slice]] = []  # is a quaternion, where in q, where in v
        scalar = (JOINT_KINDS["revolute"].code, JOINT_KINDS["prismatic"].code)
        for kind, p, d in zip(tree.kind, tree.first_position[:-1], tree.first_velocity[:-1], strict=True):
            p, d = int(p), int(d)
            if kind in scalar:
                self._spans.append((False, slice(p, p + 1), slice(d, d + 1)))
            elif kind == JOINT_KINDS["free"].code:
                self._spans.append((False, slice(p, p + 3), slice(d, d + 3)))
                self._spans.append((True, slice(p + 3, p + 7), slice(d + 3, d + 6)))
            elif kind == JOINT_KINDS["ball"].code:
                self._spans.append((True, slice(p, p + 4), slice(d, d + 3)))
        self._is_vector_space = not any(is_quaternion for is_quaternion, _, _ in self._spans)

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """Position reached from `q` by the displacement `dv`."""
        if self._is_vector_space:
            return q + dv
        return torch.cat(
            [
                _product(q[..., p], _exp(dv[..., d])) if is_quaternion else q[..., p] + dv[..., d]
                for is_quaternion, p, d in self._spans
            ],
            -1,
        )

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """Displacement from `q0` to `q1`, with rotation angles of at most π."""
        if self._is_vector_space:
            return q1 - q0
        return torch.cat(
            [
                _log(_product(_conjugate(q0[..., p]), q1[..., p])) if is_quaternion else q1[..., p] - q0[..., p]
                for is_quaternion, p, _ in self._spans
            ],
            -1,
        )


def _conjugate(p: Tensor) -> Tensor:
    return torch.cat([p[..., :1], -p[..., 1:]], -1)


def _product(a: Tensor, b: Tensor) -> Tensor:
    a_real, a_vector = a[..., :1], a[..., 1:]
    b_real, b_vector = b[..., :1], b[..., 1:]
    return torch.cat(
        [
            a_real * b_real - (a_vector * b_vector).sum(-1, keepdim=True),
            a_real * b_vector + b_real * a_vector + torch.linalg.cross(a_vector, b_vector),
        ],
        -1,
    )


def _exp(rotation: Tensor) -> Tensor:
    """Quaternion of a rotation vector; both branches of `where` stay finite, and so do their gradients."""
    squared = (rotation * rotation).sum(-1, keepdim=True)
    small = squared < SETTINGS.small_angle_squared
    angle = torch.where(small, 1.0, squared).sqrt()
    sine = torch.where(small, 0.5 - squared / 48, torch.sin(angle / 2) / angle)
    cosine = torch.where(small, 1 - squared / 8, torch.cos(angle / 2))
    return torch.cat([cosine, sine * rotation], -1)


def _log(p: Tensor) -> Tensor:
    """Rotation vector of a quaternion, shorter than π."""
    p = torch.where(p[..., :1] < 0, -p, p)
    squared = (p[..., 1:] ** 2).sum(-1, keepdim=True)
    small = squared < SETTINGS.small_angle_squared
    sine = torch.where(small, 1.0, squared).sqrt()
    factor = torch.where(small, 2 + squared / 3, 2 * torch.atan2(sine, p[..., :1]) / sine)
    # Where rounding leaves p off the unit sphere, atan2 is still accurate to rounding.
    return factor * p[..., 1:]
