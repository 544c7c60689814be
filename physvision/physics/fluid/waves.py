"""Spectral time stepping of velocities on periodic axes, without dye and solids, in few launches.

There viscosity and projection commute, and together multiply each wave of velocity by a matrix of rank one,
S = F t tᴴ, with a unit vector t ⊥ ∇, F = 1/(1 − s λ), s = hν/2 and the eigenvalue λ of ∇²; the mean flow stays. The
step of step.py becomes

    r₁ = (1 + s ∇²) x₀ − h N(x₀) + h f                  x₁ = S r₁
    r₂ = (1 + s ∇²) x₀ − h (N(x₀) + N(x₁))/2 + h f      x₂ = S r₂

with convection rates N, and f equal in both stages. S and ∇² are symmetric, and ∂S r/∂s = S ∇² S r, so with the
adjoint x̄ and the derivative D of N

    r̄₂ = S x̄₂      r̄₁ = −h/2 S D(x₁)ᵀ r̄₂      x̄₀ = (1 + s ∇²)(r̄₁ + r̄₂) − h/2 D(x₀)ᵀ (2 r̄₁ + r̄₂)
    f̄ = h (r̄₁ + r̄₂)      s̄ = r̄₁ · ∇²x₁ + r̄₂ · ∇²x₂ + (r̄₁ + r̄₂) · ∇²x₀
"""

from __future__ import annotations

import torch
from torch import Tensor

from physvision.physics.fluid import kernels
from physvision.physics.fluid.grid import Separable
from physvision.physics.fluid.transport import Launch, periodic_launch


class Waves:
    """Rollouts of both velocities as one tensor, (batch, 2, nx, ny).

    Args:
        pressure: Laplacian of the grid, equal for all fields here.
        spacing: Sizes of a cell, m.
        h: Length of a step, s.
        jets: Accelerations of all faces at a control of 1, (jets, 2, nx, ny).
    """

    def __init__(self, pressure: Separable, spacing: tuple[float, float], h: float, jets: Tensor) -> None:
        (nx, ny), self.spacing, self.h, self.jets = pressure.shape, spacing, h, jets
        self.shape, self.values = (nx, ny), pressure.values.flatten()
        phase_x, phase_y = (torch.exp(-2j * torch.pi * torch.arange(n, dtype=torch.float64) / n) for n in (nx, ny))
        slope_x = ((1 - phase_x) / spacing[0])[:, None].expand(nx, ny // 2 + 1)
        slope_y = ((1 - phase_y) / spacing[1])[: ny // 2 + 1].expand(nx, ny // 2 + 1)
        across = torch.stack([slope_y.conj(), -slope_x.conj()])
        size = across.abs().square().sum(0).sqrt()
        self.t = torch.view_as_real(across / size.where(size > 0.0, 1.0)).flatten().to(self.values.device)

    def forward(self, v: Tensor, controls: Tensor, viscosity: Tensor, gravity: Tensor) -> None:
        """Compute the velocities after each step in place, (batch, steps + 1, faces), from the first."""
        workspace = _Workspace(self, viscosity, gravity)
        workspace.x.copy_(v[:, 0].view_as(workspace.x))
        for step in range(controls.shape[1]):
            workspace.step(self._jet_changes(controls[:, step]))
            v[:, step + 1] = workspace.x.flatten(1)
        workspace.close()

    def backward(
        self, v: Tensor, bars: Tensor, controls: Tensor, viscosity: Tensor, gravity: Tensor, viscous: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients to the initial velocities, controls, viscosity (zero unless `viscous`) and gravity."""
        workspace, shape = _Workspace(self, viscosity, gravity), (2, *self.shape)
        controls_bar, viscous_bar = torch.zeros_like(controls), torch.zeros_like(viscosity)
        force_bar = torch.zeros_like(workspace.x)
        bar = bars[:, -1].unflatten(1, shape)
        for step in reversed(range(controls.shape[1])):
            workspace.x.copy_(v[:, step].unflatten(1, shape))
            before, first, second = workspace.adjoint_step(bar, self._jet_changes(controls[:, step]))
            total = first + second
            if viscous:
                after = v[:, step + 1].unflatten(1, shape)
                for a, b in ((first, workspace.between), (second, after), (total, workspace.x)):
                    viscous_bar += (a * self._laplacian(b)).sum((1, 2, 3))
            force_bar += total
            if len(self.jets):
                controls_bar[:, step] = self.h * torch.einsum("bcxy,jcxy->bj", total, self.jets)
            bar = before + bars[:, step].unflatten(1, shape)
        workspace.close()
        return bar.flatten(1), controls_bar, self.h / 2 * viscous_bar, self.h * force_bar.sum((2, 3))

    def _jet_changes(self, control: Tensor) -> Tensor | None:
        """Changes of velocities by jets in a step."""
        return self.h * torch.einsum("bj,jcxy->bcxy", control, self.jets) if len(self.jets) else None

    def _laplacian(self, x: Tensor) -> Tensor:
        hx, hy = self.spacing
        along_x, along_y = (x.roll(1, axis) + x.roll(-1, axis) - 2 * x for axis in (2, 3))
        return along_x / hx**2 + along_y / hy**2


class _Workspace:
    """Memory for the steps of a rollout, and launches bound to it.

    Attributes:
        x: Velocities before and, after `step`, behind a step.
        between: Velocities x₁ of the first stage.
    """

    def __init__(self, waves: Waves, viscosity: Tensor, gravity: Tensor) -> None:
        (nx, ny), self.h = waves.shape, waves.h
        new, batch, count = viscosity.new_empty, len(viscosity), len(waves.values)
        self.x, self.between, self.half, self.whole, self.adjoint = (new(batch, 2, nx, ny) for _ in range(5))
        self.waves = torch.empty(batch, 2, nx, ny // 2 + 1, dtype=torch.complex128, device=viscosity.device)
        s, shift, zeros = self.h / 2 * viscosity, self.h * gravity, torch.zeros_like(gravity)
        factors, modes = (waves.t, 1 / (1 - s[:, None] * waves.values)), torch.view_as_real(self.waves).flatten(1)
        numbers = (-self.h / 2, *waves.spacing)
        convect_backward = kernels.convect_backward
        self.filter = Launch(kernels.filtered, (), factors, (count,), (modes,), 2e-3 * count)
        self.start, self.diffuse = (
            periodic_launch(kernels.started, (x, s, force), (k, *waves.spacing), (self.half, self.whole))
            for x, force, k in ((self.x, shift, self.h / 2), (self.adjoint, zeros, 0.0))
        )
        self.convect = periodic_launch(kernels.convect, (self.between,), numbers, (self.half,))
        self.pull = periodic_launch(convect_backward, (self.between, self.adjoint), numbers, (self.whole,))
        self.pull_last = periodic_launch(convect_backward, (self.x, self.whole), numbers, (self.half,))

    def close(self) -> None:
        """Free the launches for other workspaces."""
        for launch in (self.filter, self.start, self.diffuse, self.convect, self.pull, self.pull_last):
            launch.close()

    def step(self, change: Tensor | None) -> None:
        """Advance the velocities by a step."""
        self._begin(change)
        self.convect.run()
        self._filter(self.half, self.x)

    def adjoint_step(self, bar: Tensor, change: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Adjoints of the velocities before a step, of r₁ and of r₂."""
        self._begin(change)
        self._filter(bar, self.adjoint)
        second = self.adjoint.clone()
        self.whole.zero_()
        self.pull.run()
        first = self._filter(self.whole, torch.empty_like(self.x))
        torch.add(first, second, out=self.adjoint)
        self.diffuse.run()
        torch.add(self.adjoint, first, out=self.whole)
        self.pull_last.run()
        return self.half, first, second

    def _begin(self, change: Tensor | None) -> None:
        self.start.run()
        if change is not None:
            self.half += change
            self.whole += change
        self._filter(self.whole, self.between)

    def _filter(self, r: Tensor, out: Tensor) -> Tensor:
        """Apply viscosity and projection, S r."""
        torch.fft.rfft2(r, out=self.waves)
        self.filter.run()
        return torch.fft.irfft2(self.waves, self.x.shape[2:], out=out)
