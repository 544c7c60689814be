"""A step of incompressible flow: Heun's method for advection, Crank–Nicolson's for viscosity, and two projections.

With N = ∇·(u u), accelerations f and Laplacian L, from u₀,

    (1 − hν/2 L) u* = u₀ + hν/2 L u₀ − h N(u₀) + h f₀                          u₁ = stopped(u*) − ∇φ₁
    (1 − hν/2 L) u° = u₀ + hν/2 L u₀ − h (N(u₀) + N(u₁))/2 + h (f₀ + f₁)/2 − ∇φ₁   u₂ = stopped(u°) − ∇φ₂

(as u* + u₀ = (1 − hν/2 L)⁻¹ (2u₀ + …), so that L itself is not needed)

and φ such that ∇·u = 0, to rounding. The second stage starts from the pressure of the first, so that no error of first
order remains at walls. `stopped` divides by 1 + h χ/τ with the solid fraction χ. With solids, stopping and projection
alternate, each with a fraction of h: their limit has no divergence and is at rest in the solid. Dye c is advected
by u₀, then u₁, then their mean ū, by Shu and Osher's third-order method, with an Euler step C,

    c₁ = C(c₀, u₀)        c₂ = (3 c₀ + C(c₁, u₁))/4        c₃ = (c₀ + 2 C(c₂, ū))/3

and diffuses by the exact exp(h κ L). All operators are symmetric:
torch's backward pass solves with the same eigenvectors, and the kernels have their adjoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from physvision.physics.fluid.grid import (
    Bases,
    Ends,
    flux_difference,
    gradient,
    pad_across,
    pad_along,
    unknown_faces,
    with_ghosts,
)
from physvision.physics.fluid.transport import advect, convect

Rounds = list[tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]]  # velocities before and after each stop


class StepData(NamedTuple):
    """Data that all steps of a rollout share, computed from the properties; (batch, 1, 1) by default.

    Attributes:
        gravity: Gravity along x and y.
        excess_density: Relative increase of the density by dye.
        wall_speed: Velocities of the left, right, lower and upper walls.
        inflow: Inflow velocity, (batch, 1, ny).
        inflow_dye: Dye of the inflow, (batch, 1, ny).
        walls: Contributions of moving walls and inflow to hν∇²u, of each velocity.
        viscous: Eigenvalues of (1 − hν/2 ∇²)⁻¹, of each velocity.
        diffusion: Eigenvalues of exp(hκ∇²).
        stops: Factors of each velocity in a round of stopping.
    """

    gravity: tuple[Tensor, Tensor]
    excess_density: Tensor
    wall_speed: tuple[Tensor, Tensor, Tensor, Tensor]
    inflow: Tensor
    inflow_dye: Tensor
    walls: tuple[Tensor, Tensor]
    viscous: tuple[Tensor, Tensor]
    diffusion: Tensor
    stops: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Stepper:
    """Time stepping on a grid.

    Attributes:
        bases: Operators of the grid.
        ends: Ends of both axes.
        spacing: Sizes of a cell, m.
        h: Length of a step, s.
        rounds: Number of rounds of stopping and projection.
    """

    bases: Bases
    ends: tuple[Ends, Ends]
    spacing: tuple[float, float]
    h: float
    rounds: int

    def prepare(self, leaves: dict[str, Tensor], shapes: tuple[tuple[int, int], ...]) -> StepData:
        """Compute the data of steps from the leaves of the properties, with a value for each world."""

        def single(value: Tensor) -> Tensor:
            return value[:, None, None]

        left, right, low, high = (single(side) for side in leaves["wall_speed"].unbind(1))
        half = self.h / 2 * single(leaves["viscosity"])
        at_rest = [leaves["solid"].new_zeros(len(half), *shape) for shape in shapes[1:]]
        inflow = leaves["inflow"][:, None]
        padded = self._ghosts(at_rest[0], at_rest[1], inflow, (left, right, low, high))
        wall_u, wall_v = self.laplacian(*padded)
        decay_u, decay_v = self.at_faces(leaves["solid"] * (self.h / self.rounds / single(leaves["solid_time"])))
        base = self.bases
        return StepData(
            gravity=(single(leaves["gravity"][:, 0]), single(leaves["gravity"][:, 1])),
            excess_density=single(leaves["excess_density"]),
            wall_speed=(left, right, low, high),
            inflow=inflow,
            inflow_dye=leaves["inflow_dye"][:, None],
            walls=(2 * half * wall_u, 2 * half * wall_v),
            viscous=(1 / (1 - half * base.u.values), 1 / (1 - half * base.v.values)),
            diffusion=(self.h * single(leaves["diffusivity"]) * base.dye.values).exp(),
            stops=(1 / (1 + decay_u), 1 / (1 + decay_v)),
        )

    def ghosts(self, u: Tensor, v: Tensor, data: StepData) -> tuple[Tensor, Tensor]:
        """Both velocities with ghost cells."""
        return self._ghosts(u, v, data.inflow, data.wall_speed)

    def _ghosts(
        self, u: Tensor, v: Tensor, inflow: Tensor, wall_speed: tuple[Tensor, Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        (x, y), (left, right, low, high) = self.ends, wall_speed
        padded_u = pad_across(pad_along(u, x, inflow).mT, y, low, high).mT
        padded_v = pad_across(pad_along(v.mT, y, 0.0).mT, x, left, right)
        return padded_u, padded_v

    def laplacian(self, padded_u: Tensor, padded_v: Tensor) -> tuple[Tensor, Tensor]:
        """Laplacian of fields with ghost cells, at the unknown faces."""
        x, y = self.ends
        return unknown_faces(self._five_points(padded_u), x), unknown_faces(self._five_points(padded_v).mT, y).mT

    def _five_points(self, f: Tensor) -> Tensor:
        hx, hy = self.spacing
        center = f[:, 1:-1, 1:-1]
        along_x = (f[:, 2:, 1:-1] + f[:, :-2, 1:-1] - 2 * center) / hx**2
        return along_x + (f[:, 1:-1, 2:] + f[:, 1:-1, :-2] - 2 * center) / hy**2

    def divergence(self, u: Tensor, v: Tensor, data: StepData) -> Tensor:
        """Divergence in all cells, 1/s."""
        (x, y), (hx, hy) = self.ends, self.spacing
        return flux_difference(u, x, data.inflow, hx) + flux_difference(v.mT, y, 0.0, hy).mT

    def project(self, u: Tensor, v: Tensor, data: StepData) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Project velocities to zero divergence, and return the subtracted gradient with them."""
        potential = self.bases.pressure.apply(self.bases.pressure.inverse, self.divergence(u, v, data))
        difference = (
            gradient(potential, self.ends[0], self.spacing[0]),
            gradient(potential.mT, self.ends[1], self.spacing[1]).mT,
        )
        return u - difference[0], v - difference[1], difference

    def at_faces(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Means of the two cells at each unknown face."""
        padded_x, padded_y = (
            with_ghosts(part, ends, 0.0) for part, ends in zip((cells, cells.mT), self.ends, strict=True)
        )
        means = ((padded[:, 2:-3] + padded[:, 3:-2]) / 2 for padded in (padded_x, padded_y))
        mean_x, mean_y = (unknown_faces(mean, ends) for mean, ends in zip(means, self.ends, strict=True))
        return mean_x, mean_y.mT

    def forces(self, dye: Tensor | None, jets: tuple[Tensor, Tensor], data: StepData) -> tuple[Tensor, Tensor]:
        """Accelerations at the unknown faces by gravity, the weight of dye, and jets."""
        (g_x, g_y), (jet_x, jet_y) = data.gravity, jets
        if dye is None:
            return g_x + jet_x, g_y + jet_y
        load_x, load_y = self.at_faces(dye)
        return g_x * (1 + data.excess_density * load_x) + jet_x, g_y * (1 + data.excess_density * load_y) + jet_y

    def advected(self, dye: Tensor, padded: tuple[Tensor, Tensor], data: StepData) -> Tensor:
        """Dye after an Euler step of advection."""
        return dye + self.h * advect(
            with_ghosts(with_ghosts(dye, self.ends[0], data.inflow_dye).mT, self.ends[1], 0.0).mT, *padded, self.spacing
        )

    def __call__(
        self, dye: Tensor | None, u: Tensor, v: Tensor, jets: tuple[Tensor, Tensor], data: StepData
    ) -> tuple[Tensor | None, Tensor, Tensor, Rounds]:
        """Advance dye, which may be None, and velocities by a step, and return the rounds of stopping with them."""
        old = (u, v)
        padded = self.ghosts(u, v, data)
        first, force = self._convection(padded), self.forces(dye, jets, data)
        rates = [f - t for f, t in zip(force, first, strict=True)]
        u, v, pressure, _ = self._stop(self._diffuse(old, rates, data.walls, data), data)
        next_padded = self.ghosts(u, v, data)
        predicted_dye = None
        if dye is not None:
            predicted_dye = self.advected(dye, padded, data)
            force = [(a + b) / 2 for a, b in zip(force, self.forces(predicted_dye, jets, data), strict=True)]
        rates = [f - (a + b) / 2 for f, a, b in zip(force, first, self._convection(next_padded), strict=True)]
        boundaries = [wall - g for wall, g in zip(data.walls, pressure, strict=True)]
        u, v, _, rounds = self._stop(self._diffuse(old, rates, boundaries, data), data)
        if dye is None or predicted_dye is None:
            return None, u, v, rounds
        mean = ((padded[0] + next_padded[0]) / 2, (padded[1] + next_padded[1]) / 2)
        half_step_dye = 0.75 * dye + 0.25 * self.advected(predicted_dye, next_padded, data)
        advected = dye / 3 + 2 / 3 * self.advected(half_step_dye, mean, data)
        return self.bases.dye.apply(data.diffusion, advected), u, v, rounds

    def _diffuse(
        self, old: tuple[Tensor, Tensor], rates: list[Tensor], boundaries: Sequence[Tensor], data: StepData
    ) -> list[Tensor]:
        """Velocities after a viscous step with these rates of change."""
        parts = zip(self.bases[:2], data.viscous, old, rates, boundaries, strict=True)
        return [basis.apply(factor, 2 * w + self.h * rate + boundary) - w for basis, factor, w, rate, boundary in parts]

    def _stop(self, velocities: list[Tensor], data: StepData) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor], Rounds]:
        """Stop velocities in solids and project them; return the subtracted gradient and the rounds with them."""
        u, v = velocities
        gradient_x, gradient_y, rounds = 0.0, 0.0, []
        for _ in range(self.rounds):
            slowed = u * data.stops[0], v * data.stops[1]
            rounds.append(((u, v), slowed))
            u, v, difference = self.project(*slowed, data)
            gradient_x, gradient_y = gradient_x + difference[0], gradient_y + difference[1]
        assert isinstance(gradient_x, Tensor)
        assert isinstance(gradient_y, Tensor)
        return u, v, (gradient_x, gradient_y), rounds

    def _convection(self, padded: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Momentum flux divergence ∇·(u u) at the unknown faces."""
        along_x, along_y = convect(*padded, self.spacing)
        return unknown_faces(along_x, self.ends[0]), unknown_faces(along_y.mT, self.ends[1]).mT
