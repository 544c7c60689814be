"""Positions that hold quaternions (w, x, y, z): displacements along the tangent and back, in torch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.articulated.model.kinematic_tree import KINDS, Model

_SMALL_SQUARED = 1e-6


class Manifold:
    """The positions of one model; the conventions are those of MuJoCo's mj_integratePos and mj_differentiatePos."""

    def __init__(self, model: Model) -> None:
        self._spans: list[tuple[bool, slice, slice]] = []
        linear = (KINDS["revolute"][0], KINDS["prismatic"][0])
        for kind, p, d in zip(model.kind, model.first_position[:-1], model.first_velocity[:-1], strict=True):
            p, d = int(p), int(d)
            if kind in linear:
                self._spans.append((False, slice(p, p + 1), slice(d, d + 1)))
            elif kind == KINDS["free"][0]:
                self._spans.append((False, slice(p, p + 3), slice(d, d + 3)))
                self._spans.append((True, slice(p + 3, p + 7), slice(d + 3, d + 6)))
            elif kind == KINDS["ball"][0]:
                self._spans.append((True, slice(p, p + 4), slice(d, d + 3)))
        self._flat = not any(turning for turning, _, _ in self._spans)

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """The position reached from `q` by the displacement `dv`."""
        if self._flat:
            return q + dv
        return torch.cat(
            [
                _product(q[..., p], _exp(dv[..., d])) if turning else q[..., p] + dv[..., d]
                for turning, p, d in self._spans
            ],
            -1,
        )

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """The displacement that leads from `q0` to `q1`, turns at most π long."""
        if self._flat:
            return q1 - q0
        return torch.cat(
            [
                _log(_product(_conjugate(q0[..., p]), q1[..., p])) if turning else q1[..., p] - q0[..., p]
                for turning, p, _ in self._spans
            ],
            -1,
        )


def _conjugate(p: Tensor) -> Tensor:
    return torch.cat([p[..., :1], -p[..., 1:]], -1)


def _product(a: Tensor, b: Tensor) -> Tensor:
    real, imaginary = a[..., :1], a[..., 1:]
    other_real, other = b[..., :1], b[..., 1:]
    return torch.cat(
        [
            real * other_real - (imaginary * other).sum(-1, keepdim=True),
            real * other + other_real * imaginary + torch.linalg.cross(imaginary, other),
        ],
        -1,
    )


def _exp(turn: Tensor) -> Tensor:
    """Series near zero; both branches of `where` stay finite, so that the gradient does."""
    squared = (turn * turn).sum(-1, keepdim=True)
    small = squared < _SMALL_SQUARED
    angle = torch.where(small, 1.0, squared).sqrt()
    sine = torch.where(small, 0.5 - squared / 48, torch.sin(angle / 2) / angle)
    cosine = torch.where(small, 1 - squared / 8, torch.cos(angle / 2))
    return torch.cat([cosine, sine * turn], -1)


def _log(p: Tensor) -> Tensor:
    p = torch.where(p[..., :1] < 0, -p, p)
    squared = (p[..., 1:] ** 2).sum(-1, keepdim=True)
    small = squared < _SMALL_SQUARED
    sine = torch.where(small, 1.0, squared).sqrt()
    factor = torch.where(small, 2 + squared / 3, 2 * torch.atan2(sine, p[..., :1]) / sine)
    # With p off the unit sphere by rounding only, atan2 is right to rounding as well.
    return factor * p[..., 1:]
