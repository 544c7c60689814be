"""A flow's gradient against differences, over steps of the difference and over horizons, as Mosaic checks solvers.

    python benchmarks/fluid_gradients.py [--cells 32]

The flow is a Taylor–Green vortex with a random disturbance, in a periodic box; the loss is the mean square of the
velocity along x at the end plus its product with a fixed random field. The derivative along a random direction of the
start, and to the viscosity, is compared with central differences of steps from 1e-1 to 1e-8: Mosaic asks for a relative
error below 1e-3 at the best step. The horizon is doubled until something is not finite.
"""

from __future__ import annotations

import math

import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State
from physvision.physics.fluid import Boundary, Flow, FluidMaterial

BAR = 1e-3
SIZES = tuple(10.0**-k for k in range(1, 9))


class Case:
    """Case of a vortex flow.

    Args:
        cells: along each axis.
        viscosity: m²/s.
    """

    def __init__(self, cells: int, viscosity: float) -> None:
        side = 2 * math.pi
        self.flow = Flow(
            (cells, cells),
            (side, side),
            FluidMaterial(viscosity),
            boundary=Boundary(("periodic", "periodic")),
            dt=0.3 * side / cells,
        )
        (x, y), (a, b) = self.flow.faces(0), self.flow.faces(1)
        u, v = torch.cos(x) * torch.sin(y), -torch.sin(a) * torch.cos(b)
        generator = torch.Generator().manual_seed(0)
        clean = self.flow.flow_state(u[None], v[None])
        rough = torch.randn(clean.v.shape, generator=generator, dtype=torch.float64)
        self.start = self.flow.step(State(clean.q, clean.v + 0.1 * rough))
        self.along, self.weights = (
            torch.randn(clean.v.shape, generator=generator, dtype=torch.float64) for _ in range(2)
        )
        self.viscosity = torch.tensor(viscosity, dtype=torch.float64)

    def loss(self, v: Tensor, viscosity: Tensor, steps: int) -> Tensor:
        """Loss of the final velocities."""
        end = self.flow.rollout(State(self.start.q, v), steps, properties={"viscosity": viscosity}).final.v
        return end.square().mean() + (end * self.weights).mean()

    def gradients(self, steps: int) -> tuple[float, float, float]:
        """Along the direction, to the viscosity, and the norm of that to the start."""
        v, viscosity = self.start.v.clone().requires_grad_(), self.viscosity.clone().requires_grad_()
        result = torch.autograd.grad(self.loss(v, viscosity, steps), (v, viscosity))
        return float((result[0] * self.along).sum()), float(result[1]), float(result[0].norm())

    def differences(self, steps: int, size: float) -> tuple[float, float]:
        """Gradients by central differences, of step sizes proportional to `size`."""
        with torch.no_grad():
            ahead, back = (
                self.loss(self.start.v + sign * size * self.along, self.viscosity, steps) for sign in (1, -1)
            )
            step = size * self.viscosity
            thick, thin = (self.loss(self.start.v, self.viscosity + sign * step, steps) for sign in (1, -1))
        return float(ahead - back) / (2 * size), float(thick - thin) / (2 * float(step))


def main(cells: int = 32, viscosity: float = 0.01, steps: int = 20, longest: int = 320) -> bool:
    """Print both tables; whether the bar is met.

    Args:
        cells: along each axis.
        viscosity: m²/s.
        steps: Steps of the first table.
        longest: horizon, steps.
    """
    torch.set_num_threads(1)
    case = Case(cells, viscosity)
    exact = case.gradients(steps)[:2]
    print("| step of the difference | along a direction of the start | to the viscosity |")
    print("|---|---|---|")
    best = [math.inf, math.inf]
    for size in SIZES:
        errors = [abs(entry / true - 1) for entry, true in zip(case.differences(steps, size), exact, strict=True)]
        best = [min(pair) for pair in zip(best, errors, strict=True)]
        print(f"| {size:.0e} | {errors[0]:.1e} | {errors[1]:.1e} |")
    print("\n| horizon, steps | size of the gradient | energy left | relative error at 1e-5 |")
    print("|---|---|---|---|")
    horizon, fine = 10, True
    while horizon <= longest:
        along, to_viscosity, norm = case.gradients(horizon)
        pairs = zip(case.differences(horizon, 1e-5), (along, to_viscosity), strict=True)
        off = max(abs(entry / true - 1) for entry, true in pairs)
        kinetic, _ = case.flow.energy(case.flow.rollout(case.start, horizon))
        left = float(kinetic[0, -1] / kinetic[0, 0])
        fine = fine and math.isfinite(norm) and off < BAR
        print(f"| {horizon} | {norm:.2e} | {left:.3f} | {off:.1e} |", flush=True)
        horizon *= 2
    met = fine and max(best) < BAR
    print(f"relative error at the best step {max(best):.1e}, bar {BAR:.0e}: {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    auto_cli(main)
