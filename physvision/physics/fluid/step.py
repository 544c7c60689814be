"""One step of incompressible flow: Heun's method for what is carried, Crank–Nicolson's for viscosity, two projections.

With N = ∇·(u u), f the accelerations and L the Laplacian, from u₀ and with the pressure found on the way,

    (1 − hν/2 L) u* = u₀ + hν/2 L u₀ − h N(u₀) + h f₀                          u₁ = stopped(u*) − ∇φ₁
    (1 − hν/2 L) u° = u₀ + hν/2 L u₀ − h (N(u₀) + N(u₁))/2 + h (f₀ + f₁)/2 − ∇φ₁   u₂ = stopped(u°) − ∇φ₂

(as u* + u₀ = (1 − hν/2 L)⁻¹ (2u₀ + …), so that L itself is not needed)

and φ such that ∇·u = 0, to rounding. The second stage starts from the first one's pressure, so that no error of first
order is left at walls. `stopped` divides by 1 + h χ/τ where a solid's share is χ. Where there are solids, stopping and
projecting take turns, each time by a share of h: what they tend to has no divergence and stands still in the solid.
Dye c is carried by u₀, then u₁, then their mean ū, by Shu and Osher's method of third order, C being a plain step,

    c₁ = C(c₀, u₀)        c₂ = (3 c₀ + C(c₁, u₁))/4        c₃ = (c₀ + 2 C(c₂, ū))/3

and diffuses by the exact exp(h κ L). All operators are symmetric:
torch's own reverse of these lines solves with the same eigenvectors, and the kernels have their adjoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from physvision.physics.fluid.grid import Bases, Ends, across, along, beside, gradient, passing, unknown
from physvision.physics.fluid.transport import carry, convect

Rounds = list[tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]]  # velocities before and after each stop


class Prepared(NamedTuple):
    """What all steps of a rollout share, made once of the properties of each world; (batch, 1, 1) but where said.

    Attributes:
        gravity: along x and y.
        heaviness: of full dye.
        wall_speed: left, right, low and high.
        inflow: (batch, 1, ny).
        inflow_dye: (batch, 1, ny).
        walls: what moving walls and inflow add to hν∇²u, of each velocity.
        viscous: eigenvalues of (1 − hν/2 ∇²)⁻¹, of each velocity.
        spread: eigenvalues of exp(hκ∇²).
        stops: by what a round of stopping multiplies each velocity.
    """

    gravity: tuple[Tensor, Tensor]
    heaviness: Tensor
    wall_speed: tuple[Tensor, Tensor, Tensor, Tensor]
    inflow: Tensor
    inflow_dye: Tensor
    walls: tuple[Tensor, Tensor]
    viscous: tuple[Tensor, Tensor]
    spread: Tensor
    stops: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Stepper:
    """Steps on one grid.

    Attributes:
        bases: its operators.
        ends: of its two axes.
        spacing: size of a cell, m.
        h: seconds of a step.
        rounds: in which stopping and projecting take turns.
    """

    bases: Bases
    ends: tuple[Ends, Ends]
    spacing: tuple[float, float]
    h: float
    rounds: int

    def prepare(self, leaves: dict[str, Tensor], shapes: tuple[tuple[int, int], ...]) -> Prepared:
        """What steps need of the leaves of the properties, which have a value for each world."""

        def single(value: Tensor) -> Tensor:
            return value[:, None, None]

        left, right, low, high = (single(side) for side in leaves["wall_speed"].unbind(1))
        half = self.h / 2 * single(leaves["viscosity"])
        still = [leaves["solid"].new_zeros(len(half), *shape) for shape in shapes[1:]]
        inflow = leaves["inflow"][:, None]
        wide = self._ghosts(still[0], still[1], inflow, (left, right, low, high))
        outer_u, outer_v = self.laplacian(*wide)
        share_u, share_v = self.at_faces(leaves["solid"] * (self.h / self.rounds / single(leaves["solid_time"])))
        base = self.bases
        return Prepared(
            gravity=(single(leaves["gravity"][:, 0]), single(leaves["gravity"][:, 1])),
            heaviness=single(leaves["heaviness"]),
            wall_speed=(left, right, low, high),
            inflow=inflow,
            inflow_dye=leaves["inflow_dye"][:, None],
            walls=(2 * half * outer_u, 2 * half * outer_v),
            viscous=(1 / (1 - half * base.u.values), 1 / (1 - half * base.v.values)),
            spread=(self.h * single(leaves["diffusivity"]) * base.dye.values).exp(),
            stops=(1 / (1 + share_u), 1 / (1 + share_v)),
        )

    def ghosts(self, u: Tensor, v: Tensor, n: Prepared) -> tuple[Tensor, Tensor]:
        """Both velocities with what stands around them."""
        return self._ghosts(u, v, n.inflow, n.wall_speed)

    def _ghosts(
        self, u: Tensor, v: Tensor, inflow: Tensor, wall_speed: tuple[Tensor, Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        (x, y), (left, right, low, high) = self.ends, wall_speed
        wide_u = across(along(u, x, inflow).mT, y, low, high).mT
        wide_v = across(along(v.mT, y, 0.0).mT, x, left, right)
        return wide_u, wide_v

    def laplacian(self, wide_u: Tensor, wide_v: Tensor) -> tuple[Tensor, Tensor]:
        """Of fields with ghosts, at the unknown faces."""
        x, y = self.ends
        return unknown(self._five(wide_u), x), unknown(self._five(wide_v).mT, y).mT

    def _five(self, f: Tensor) -> Tensor:
        hx, hy = self.spacing
        middle = f[:, 1:-1, 1:-1]
        along_x = (f[:, 2:, 1:-1] + f[:, :-2, 1:-1] - 2 * middle) / hx**2
        return along_x + (f[:, 1:-1, 2:] + f[:, 1:-1, :-2] - 2 * middle) / hy**2

    def divergence(self, u: Tensor, v: Tensor, n: Prepared) -> Tensor:
        """In all cells, 1/s."""
        (x, y), (hx, hy) = self.ends, self.spacing
        return passing(u, x, n.inflow, hx) + passing(v.mT, y, 0.0, hy).mT

    def project(self, u: Tensor, v: Tensor, n: Prepared) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Velocities without divergence, and the gradient that was taken off."""
        potential = self.bases.pressure.apply(self.bases.pressure.inverse, self.divergence(u, v, n))
        taken = (
            gradient(potential, self.ends[0], self.spacing[0]),
            gradient(potential.mT, self.ends[1], self.spacing[1]).mT,
        )
        return u - taken[0], v - taken[1], taken

    def at_faces(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Means of the two cells beside each unknown face."""
        wide_x, wide_y = (beside(part, ends, 0.0) for part, ends in zip((cells, cells.mT), self.ends, strict=True))
        means = ((wide[:, 2:-3] + wide[:, 3:-2]) / 2 for wide in (wide_x, wide_y))
        mean_x, mean_y = (unknown(mean, ends) for mean, ends in zip(means, self.ends, strict=True))
        return mean_x, mean_y.mT

    def forces(self, dye: Tensor | None, pushes: tuple[Tensor, Tensor], n: Prepared) -> tuple[Tensor, Tensor]:
        """Accelerations at the unknown faces: gravity, on dye by its weight, and what is pushed from outside."""
        (g_x, g_y), (push_x, push_y) = n.gravity, pushes
        if dye is None:
            return g_x + push_x, g_y + push_y
        load_x, load_y = self.at_faces(dye)
        return g_x * (1 + n.heaviness * load_x) + push_x, g_y * (1 + n.heaviness * load_y) + push_y

    def carried(self, dye: Tensor, wide: tuple[Tensor, Tensor], n: Prepared) -> Tensor:
        """Dye that flow has carried for a step at its present rate."""
        return dye + self.h * carry(
            beside(beside(dye, self.ends[0], n.inflow_dye).mT, self.ends[1], 0.0).mT, *wide, self.spacing
        )

    def __call__(
        self, dye: Tensor | None, u: Tensor, v: Tensor, pushes: tuple[Tensor, Tensor], n: Prepared
    ) -> tuple[Tensor | None, Tensor, Tensor, Rounds]:
        """Dye and velocities a step later, and what solids did to the velocities; there may be no dye."""
        old = (u, v)
        wide = self.ghosts(u, v, n)
        first, push = self._turned(wide), self.forces(dye, pushes, n)
        rates = [f - t for f, t in zip(push, first, strict=True)]
        u, v, taken, _ = self._stopped(self._smoothed(old, rates, n.walls, n), n)
        later = self.ghosts(u, v, n)
        ahead = None
        if dye is not None:
            ahead = self.carried(dye, wide, n)
            push = [(a + b) / 2 for a, b in zip(push, self.forces(ahead, pushes, n), strict=True)]
        rates = [f - (a + b) / 2 for f, a, b in zip(push, first, self._turned(later), strict=True)]
        outer = [wall - g for wall, g in zip(n.walls, taken, strict=True)]
        u, v, _, slowed = self._stopped(self._smoothed(old, rates, outer, n), n)
        if dye is None or ahead is None:
            return None, u, v, slowed
        middle = ((wide[0] + later[0]) / 2, (wide[1] + later[1]) / 2)
        half = 0.75 * dye + 0.25 * self.carried(ahead, later, n)
        carried = dye / 3 + 2 / 3 * self.carried(half, middle, n)
        return self.bases.dye.apply(n.spread, carried), u, v, slowed

    def _smoothed(
        self, old: tuple[Tensor, Tensor], rates: list[Tensor], outer: Sequence[Tensor], n: Prepared
    ) -> list[Tensor]:
        """What viscosity makes of velocities that change at these rates."""
        parts = zip(self.bases[:2], n.viscous, old, rates, outer, strict=True)
        return [basis.apply(factor, 2 * w + self.h * rate + more) - w for basis, factor, w, rate, more in parts]

    def _stopped(self, velocities: list[Tensor], n: Prepared) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor], Rounds]:
        """Velocities without divergence that solids have stopped, the gradient taken off, and what solids did."""
        u, v = velocities
        gradient_x, gradient_y, slowed = 0.0, 0.0, []
        for _ in range(self.rounds):
            slower = u * n.stops[0], v * n.stops[1]
            slowed.append(((u, v), slower))
            u, v, taken = self.project(*slower, n)
            gradient_x, gradient_y = gradient_x + taken[0], gradient_y + taken[1]
        assert isinstance(gradient_x, Tensor)
        assert isinstance(gradient_y, Tensor)
        return u, v, (gradient_x, gradient_y), slowed

    def _turned(self, wide: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """∇·(u u) at the unknown faces."""
        along_x, along_y = convect(*wide, self.spacing)
        return unknown(along_x, self.ends[0]), unknown(along_y.mT, self.ends[1]).mT
