"""The same step where both axes are periodic and there is neither dye nor solid: by waves, and in few launches.

Viscosity and projection then commute, and together multiply each wave of velocity by a matrix of rank one: by
S = F t tᴴ, with t ⊥ ∇ a unit vector, F = 1/(1 − s λ), s = hν/2 and λ the eigenvalue of ∇²; the mean flow stays. Of
step.py remains

    r₁ = (1 + s ∇²) x₀ − h N(x₀) + h f                  x₁ = S r₁
    r₂ = (1 + s ∇²) x₀ − h (N(x₀) + N(x₁))/2 + h f      x₂ = S r₂

where N are whole rates and f is the same in both stages. S and ∇² are symmetric, and ∂S r/∂s = S ∇² S r, so with a
cotangent x̄ and D the derivative of N

    r̄₂ = S x̄₂      r̄₁ = −h/2 S D(x₁)ᵀ r̄₂      x̄₀ = (1 + s ∇²)(r̄₁ + r̄₂) − h/2 D(x₀)ᵀ (2 r̄₁ + r̄₂)
    f̄ = h (r̄₁ + r̄₂)      s̄ = r̄₁ · ∇²x₁ + r̄₂ · ∇²x₂ + (r̄₁ + r̄₂) · ∇²x₀
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from physvision.physics.fluid import kernels
from physvision.physics.fluid.grid import Separable
from physvision.physics.fluid.transport import launched, on_ring

Spacing = tuple[float, float]


class Known(NamedTuple):
    """What all steps of a rollout share.

    Attributes:
        share: s of each world.
        factor: F of each world and wave, (batch, waves).
        gravity: (batch, 2, 1, 1).
    """

    share: Tensor
    factor: Tensor
    gravity: Tensor


class Waves:
    """Steps of both velocities as one tensor, (batch, 2, nx, ny).

    Args:
        pressure: the operator of the grid, which is that of all fields here.
        spacing: size of a cell, m.
        h: seconds of a step.
        jets: acceleration of all faces at a control of 1, (jets, 2, nx, ny).
    """

    def __init__(self, pressure: Separable, spacing: Spacing, h: float, jets: Tensor) -> None:
        (nx, ny), self.spacing, self.h, self.jets = pressure.shape, spacing, h, jets
        self.shape, self.values = (nx, ny), pressure.values.flatten()
        turn_x, turn_y = (torch.exp(-2j * torch.pi * torch.arange(n, dtype=torch.float64) / n) for n in (nx, ny))
        slope_x = ((1 - turn_x) / spacing[0])[:, None].expand(nx, ny // 2 + 1)
        slope_y = ((1 - turn_y) / spacing[1])[: ny // 2 + 1].expand(nx, ny // 2 + 1)
        across = torch.stack([slope_y.conj(), -slope_x.conj()])
        size = across.abs().square().sum(0).sqrt()
        self.t = torch.view_as_real(across / size.where(size > 0.0, 1.0)).flatten().to(self.values.device)

    def forward(self, v: Tensor, controls: Tensor, viscosity: Tensor, gravity: Tensor) -> None:
        """Fill in the velocities after each step, (batch, steps + 1, faces), from the first."""
        known, x = self._known(viscosity, gravity), v[:, 0].unflatten(1, (2, *self.shape)).contiguous()
        for step in range(controls.shape[1]):
            x, _ = self._step(x, self._push(controls[:, step], known), known)
            v[:, step + 1] = x.flatten(1)

    def backward(
        self, v: Tensor, bars: Tensor, controls: Tensor, viscosity: Tensor, gravity: Tensor, viscous: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Cotangents of the first velocities, controls, viscosity (zero unless `viscous`) and gravity."""
        known, controls_bar = self._known(viscosity, gravity), torch.zeros_like(controls)
        viscosity_bar, gravity_bar = torch.zeros_like(viscosity), torch.zeros_like(gravity)
        all, all_bars = (each.unflatten(2, (2, *self.shape)) for each in (v, bars))
        bar = all_bars[:, -1]
        for step in reversed(range(controls.shape[1])):
            x = all[:, step].contiguous()
            between = self._step(x, self._push(controls[:, step], known), known)[1]
            second = self._filtered(bar, known)
            first = self._filtered(self._pulled(between, second).mul_(-self.h / 2), known)
            both = first + second
            if viscous:
                for a, b in ((first, between), (second, all[:, step + 1].contiguous()), (both, x)):
                    viscosity_bar += self.h / 2 * (a * self._laplacian(b)).sum((1, 2, 3))
            gravity_bar += self.h * both.sum((2, 3))
            if len(self.jets):
                controls_bar[:, step] = self.h * torch.einsum("bcxy,jcxy->bj", both, self.jets)
            pulled = self._pulled(x, both + first)
            bar = self._started(both, known.share, 0.0)[0].sub_(pulled, alpha=self.h / 2) + all_bars[:, step]
        return bar.flatten(1), controls_bar, viscosity_bar, gravity_bar

    def _known(self, viscosity: Tensor, gravity: Tensor) -> Known:
        share = self.h / 2 * viscosity
        return Known(share.contiguous(), 1 / (1 - share[:, None] * self.values), gravity[:, :, None, None])

    def _push(self, control: Tensor, n: Known) -> Tensor:
        """By how much forces change velocities in a step."""
        if not len(self.jets):
            return self.h * n.gravity
        return self.h * (n.gravity + torch.einsum("bj,jcxy->bcxy", control, self.jets))

    def _step(self, x: Tensor, push: Tensor, n: Known) -> tuple[Tensor, Tensor]:
        """Velocities a step later, and those in between."""
        half, whole = self._started(x, n.share, self.h / 2)
        between = self._filtered(whole.add_(push), n)
        return self._filtered(half.add_(push).sub_(self._convect(between), alpha=self.h / 2), n), between

    def _filtered(self, r: Tensor, n: Known) -> Tensor:
        """S r."""
        z = torch.fft.rfft2(r)
        count = n.factor.shape[1]
        parts = count if r.is_cuda else 1
        rows = torch.view_as_real(z).flatten(1)
        launched(kernels.filtered, (parts,), (self.t, n.factor), (count, parts), (rows,), 2e-3 * count)
        return torch.fft.irfft2(z, self.shape)

    def _started(self, x: Tensor, share: Tensor, k: float) -> tuple[Tensor, Tensor]:
        """(1 + s ∇²) x − k N(x), and the same less k N(x) once more."""
        found = torch.empty_like(x), torch.empty_like(x)
        on_ring(kernels.started, (x, share), (k, *self.spacing), found)
        return found

    def _convect(self, x: Tensor) -> Tensor:
        """N(x)."""
        found = torch.empty_like(x)
        on_ring(kernels.convect, (x,), self.spacing, (found,))
        return found

    def _pulled(self, x: Tensor, bar: Tensor) -> Tensor:
        """D(x)ᵀ bar."""
        found = torch.empty_like(x)
        on_ring(kernels.convect_backward, (x, bar), self.spacing, (found,))
        return found

    def _laplacian(self, x: Tensor) -> Tensor:
        return self._started(x, torch.ones_like(x[:, 0, 0, 0]), 0.0)[0] - x
