"""Operators of the staggered grid: unknown faces, ghost cells, and separable solvers.

Every operator here is a sum of one along x and one along y, A ⊗ 1 + 1 ⊗ B, with A and B symmetric and small. With
their eigenvectors Q and R and eigenvalues a and b, a function of it is

    f(A ⊗ 1 + 1 ⊗ B) X = Q [f(aᵢ + bⱼ) ∘ (Qᵀ X R)] Rᵀ

four products of small matrices, exact to rounding for every kind of boundary, and its own transpose. Where both axes
are periodic the eigenvectors are waves, and the products are fast Fourier transforms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

RELATIVE_ZERO = 1e-10  # of the largest eigenvalue, below which one is zero
Ends = str  # "periodic", "walls" or "channel"


class Axis(NamedTuple):
    """Symmetric operators along one axis, second differences over h².

    Attributes:
        faces: Operator on unknown velocities along the axis, at its faces.
        across: Operator on velocities across the axis, at cell centers: zero at walls, where the ghost is the negative.
        pressure: Divergence of the gradient: no flux through walls and inflow, pressure zero at the outflow.
        dye: Operator on dye, without flux through walls, inflow and outflow.
    """

    faces: np.ndarray
    across: np.ndarray
    pressure: np.ndarray
    dye: np.ndarray


def axis_operators(cells: int, h: float, ends: Ends) -> Axis:
    """Operators of an axis with a number of cells of size h."""
    if ends == "periodic":
        ring = np.roll(np.eye(cells), 1, 0) + np.roll(np.eye(cells), -1, 0) - 2 * np.eye(cells)
        return Axis(*(4 * [ring / h**2]))
    unknown = cells - 1 if ends == "walls" else cells
    faces, across, pressure, dye = (_second_difference(count) for count in (unknown, cells, cells, cells))
    across[0, 0] = across[-1, -1] = -3.0
    for free in (pressure, dye):
        free[0, 0] = free[-1, -1] = -1.0
    if ends == "channel":
        faces[-1, -1] = across[-1, -1] = -1.0
        pressure[-1, -1] = -3.0
    return Axis(*(operator / h**2 for operator in (faces, across, pressure, dye)))


def _second_difference(count: int) -> np.ndarray:
    return np.eye(count, k=1) + np.eye(count, k=-1) - 2 * np.eye(count)


class Separable:
    """Functions of an operator A ⊗ 1 + 1 ⊗ B, which are circulant if `periodic`."""

    def __init__(self, along_x: np.ndarray, along_y: np.ndarray, periodic: bool, device: torch.device) -> None:
        self.periodic, self.shape = periodic, (len(along_x), len(along_y))
        if periodic:
            # Transform of a circulant matrix's first column; real fields need half of the waves.
            a, b = np.fft.fft(along_x[0]).real, np.fft.rfft(along_y[0]).real
        else:
            (a, q), (b, r) = np.linalg.eigh(along_x), np.linalg.eigh(along_y)
            self.q, self.r = (torch.from_numpy(vectors).to(device) for vectors in (q, r))
            self.q_inverse, self.r_inverse = (vectors.mT.contiguous() for vectors in (self.q, self.r))
        values = torch.from_numpy(a[:, None] + b).to(device)
        # The constant pressure of a closed box is undetermined: its eigenvalue is rounding, or zero.
        self.values = torch.where(values.abs() < RELATIVE_ZERO * values.abs().max(), 0.0, values)
        self.inverse = torch.where(self.values == 0.0, 0.0, 1.0 / torch.where(self.values == 0.0, 1.0, self.values))

    def apply(self, factors: Tensor, field: Tensor) -> Tensor:
        """Apply the operator with these eigenvalues to a field."""
        if self.periodic and not field.numel():
            return field  # transforms of empty fields raise
        if self.periodic:
            return torch.fft.irfft2(factors * torch.fft.rfft2(field), self.shape)
        return self.q @ (factors * (self.q_inverse @ field @ self.r)) @ self.r_inverse


class Bases(NamedTuple):
    """Separable operators of a grid."""

    u: Separable
    v: Separable
    pressure: Separable
    dye: Separable


def grid_bases(x: Axis, y: Axis, periodic: bool, device: torch.device) -> Bases:
    """Separable operators of all fields, by Fourier transforms if both axes are periodic."""
    pairs = ((x.faces, y.across), (x.across, y.faces), (x.pressure, y.pressure), (x.dye, y.dye))
    return Bases(*(Separable(along_x, along_y, periodic, device) for along_x, along_y in pairs))


def pad_along(unknown: Tensor, ends: Ends, inflow: Tensor | float) -> Tensor:
    """Velocities along the first axis at faces −1 to n + 1, from the unknown ones."""
    if ends == "periodic":
        return torch.cat([unknown[:, -1:], unknown, unknown[:, :2]], 1)
    first = torch.zeros_like(unknown[:, :1])
    if ends == "walls":
        # Values beyond a wall's face do not reach unknown ones, and their mean with the face is zero.
        return torch.cat([-unknown[:, :1], first, unknown, first, -unknown[:, -1:]], 1)
    first = first + inflow
    return torch.cat([first, first, unknown, unknown[:, -1:]], 1)


def pad_across(field: Tensor, ends: Ends, low: Tensor | float, high: Tensor | float) -> Tensor:
    """Velocities across the first axis at cells −1 to n, whose values at the walls are `low` and `high`."""
    if ends == "periodic":
        return torch.cat([field[:, -1:], field, field[:, :1]], 1)
    last = field[:, -1:] if ends == "channel" else 2 * high - field[:, -1:]
    return torch.cat([2 * low - field[:, :1], field, last], 1)


def with_ghosts(cells: Tensor, ends: Ends, inflow: Tensor | float) -> Tensor:
    """Dye of cells −3 to n + 2 along the first axis, mirrored at walls."""
    if ends == "periodic":
        return torch.cat([cells[:, -3:], cells, cells[:, :3]], 1)
    first = cells[:, :3].flip(1) if ends == "walls" else torch.zeros_like(cells[:, :3]) + inflow
    return torch.cat([first, cells, cells[:, -3:].flip(1)], 1)


def unknown_faces(faces: Tensor, ends: Ends) -> Tensor:
    """Select the unknown faces among the faces 0 to n along the first axis."""
    return faces[:, :-1] if ends == "periodic" else faces[:, 1:-1] if ends == "walls" else faces[:, 1:]


def flux_difference(unknown: Tensor, ends: Ends, inflow: Tensor | float, h: float) -> Tensor:
    """Increase of velocities along the first axis over each cell, divided by its size."""
    if ends == "periodic":
        return (unknown.roll(-1, 1) - unknown) / h
    if ends == "walls":
        return torch.nn.functional.pad(unknown, (0, 0, 1, 1)).diff(dim=1) / h
    return torch.cat([torch.zeros_like(unknown[:, :1]) + inflow, unknown], 1).diff(dim=1) / h


def gradient(pressure: Tensor, ends: Ends, h: float) -> Tensor:
    """Gradient at the unknown faces along the first axis."""
    if ends == "periodic":
        return (pressure - pressure.roll(1, 1)) / h
    inside = (pressure[:, 1:] - pressure[:, :-1]) / h
    return inside if ends == "walls" else torch.cat([inside, -2 * pressure[:, -1:] / h], 1)
