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

import torch
from torch import Tensor

from physvision.physics.fluid import kernels
from physvision.physics.fluid.grid import Separable
from physvision.physics.fluid.transport import Launch, on_ring


class Waves:
    """Rollouts of both velocities as one tensor, (batch, 2, nx, ny).

    Args:
        pressure: the operator of the grid, which is that of all fields here.
        spacing: size of a cell, m.
        h: seconds of a step.
        jets: acceleration of all faces at a control of 1, (jets, 2, nx, ny).
    """

    def __init__(self, pressure: Separable, spacing: tuple[float, float], h: float, jets: Tensor) -> None:
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
        room = _Room(self, viscosity, gravity)
        room.x.copy_(v[:, 0].view_as(room.x))
        for step in range(controls.shape[1]):
            room.step(self._pushed(controls[:, step]))
            v[:, step + 1] = room.x.flatten(1)
        room.close()

    def backward(
        self, v: Tensor, bars: Tensor, controls: Tensor, viscosity: Tensor, gravity: Tensor, viscous: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Cotangents of the first velocities, controls, viscosity (zero unless `viscous`) and gravity."""
        room, shape = _Room(self, viscosity, gravity), (2, *self.shape)
        controls_bar, shares_bar = torch.zeros_like(controls), torch.zeros_like(viscosity)
        forces_bar = torch.zeros_like(room.x)
        bar = bars[:, -1].unflatten(1, shape)
        for step in reversed(range(controls.shape[1])):
            room.x.copy_(v[:, step].unflatten(1, shape))
            before, first, second = room.back(bar, self._pushed(controls[:, step]))
            both = first + second
            if viscous:
                after = v[:, step + 1].unflatten(1, shape)
                for a, b in ((first, room.between), (second, after), (both, room.x)):
                    shares_bar += (a * self._laplacian(b)).sum((1, 2, 3))
            forces_bar += both
            if len(self.jets):
                controls_bar[:, step] = self.h * torch.einsum("bcxy,jcxy->bj", both, self.jets)
            bar = before + bars[:, step].unflatten(1, shape)
        room.close()
        return bar.flatten(1), controls_bar, self.h / 2 * shares_bar, self.h * forces_bar.sum((2, 3))

    def _pushed(self, control: Tensor) -> Tensor | None:
        """By how much jets change velocities in a step."""
        return self.h * torch.einsum("bj,jcxy->bcxy", control, self.jets) if len(self.jets) else None

    def _laplacian(self, x: Tensor) -> Tensor:
        hx, hy = self.spacing
        along_x, along_y = (x.roll(1, axis) + x.roll(-1, axis) - 2 * x for axis in (2, 3))
        return along_x / hx**2 + along_y / hy**2


class _Room:
    """Memory for the steps of a rollout, and the launches that work on it.

    Attributes:
        x: velocities before and, after `step`, behind a step.
        between: those in between.
    """

    def __init__(self, waves: Waves, viscosity: Tensor, gravity: Tensor) -> None:
        (nx, ny), self.h = waves.shape, waves.h
        new, batch, count = viscosity.new_empty, len(viscosity), len(waves.values)
        self.x, self.between, self.half, self.whole, self.other = (new(batch, 2, nx, ny) for _ in range(5))
        self.waves = torch.empty(batch, 2, nx, ny // 2 + 1, dtype=torch.complex128, device=viscosity.device)
        share, shift, none = self.h / 2 * viscosity, self.h * gravity, torch.zeros_like(gravity)
        given, found = (waves.t, 1 / (1 - share[:, None] * waves.values)), torch.view_as_real(self.waves).flatten(1)
        numbers = (-self.h / 2, *waves.spacing)
        back = kernels.convect_backward
        self.filter = Launch(kernels.filtered, (), given, (count,), (found,), 2e-3 * count)
        self.start, self.spread = (
            on_ring(kernels.started, (x, share, push), (k, *waves.spacing), (self.half, self.whole))
            for x, push, k in ((self.x, shift, self.h / 2), (self.other, none, 0.0))
        )
        self.convect = on_ring(kernels.convect, (self.between,), numbers, (self.half,))
        self.pull = on_ring(back, (self.between, self.other), numbers, (self.whole,))
        self.pull_last = on_ring(back, (self.x, self.whole), numbers, (self.half,))

    def close(self) -> None:
        """Nothing is done here any more."""
        for launch in (self.filter, self.start, self.spread, self.convect, self.pull, self.pull_last):
            launch.close()

    def step(self, push: Tensor | None) -> None:
        """Go a step on."""
        self._begin(push)
        self.convect.run()
        self._filtered(self.half, self.x)

    def back(self, bar: Tensor, push: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The cotangents of the velocities before a step, r₁ and r₂."""
        self._begin(push)
        self._filtered(bar, self.other)
        second = self.other.clone()
        self.whole.zero_()
        self.pull.run()
        first = self._filtered(self.whole, torch.empty_like(self.x))
        torch.add(first, second, out=self.other)
        self.spread.run()
        torch.add(self.other, first, out=self.whole)
        self.pull_last.run()
        return self.half, first, second

    def _begin(self, push: Tensor | None) -> None:
        self.start.run()
        if push is not None:
            self.half += push
            self.whole += push
        self._filtered(self.whole, self.between)

    def _filtered(self, r: Tensor, found: Tensor) -> Tensor:
        """S r."""
        torch.fft.rfft2(r, out=self.waves)
        self.filter.run()
        return torch.fft.irfft2(self.waves, self.x.shape[2:], out=found)
