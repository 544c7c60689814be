"""Engine for incompressible flow in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Appearance, InputError, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.kernels import batched_function
from physvision.kernels.launching import outside_transforms
from physvision.physics.engine import Energies, MechanicalEngine, Overrides
from physvision.physics.failures import FailureTexts
from physvision.physics.fluid.grid import axis_operators, grid_bases
from physvision.physics.fluid.properties import FlowProperties
from physvision.physics.fluid.rollout import Rollout
from physvision.physics.fluid.step import Stepper
from physvision.physics.fluid.waves import Waves
from physvision.physics.properties import Properties
from physvision.physics.truncation import first_marked_step, truncated_rollout

SOLID_ROUNDS = 4  # alternations of stopping the flow in solids and of projection in a step
ENDS = (("periodic", "walls", "channel"), ("periodic", "walls"))


@dataclass(frozen=True)
class Jet:
    """A region in which a control accelerates the fluid.

    Attributes:
        center: Center, m.
        radius: Radius at which the acceleration falls to 61 %, m.
        direction: Direction of the acceleration, whose length multiplies it.
    """

    center: Sequence[float]
    radius: float
    direction: Sequence[float]


@dataclass(frozen=True)
class FluidMaterial:
    """Material of a fluid and of the dye in it.

    Attributes:
        viscosity: Kinematic viscosity, m²/s.
        diffusivity: Diffusivity of dye, m²/s.
        density: Density, kg/m³.
        excess_density: Relative increase of the density by dye of concentration one.
    """

    viscosity: float
    diffusivity: float = 0.0
    density: float = 1000.0
    excess_density: float = 0.0


@dataclass(frozen=True)
class Boundary:
    """Boundary conditions of the rectangle.

    Attributes:
        ends: Ends of x: "periodic", "walls" or "channel" (inflow on the left, outflow on the right); then of y:
            "periodic" or "walls".
        wall_speed: Tangential velocities of the left, right, lower and upper walls, m/s.
        inflow: Inflow velocity of a channel, m/s; one for all rows, or one for each.
        inflow_dye: Concentration of dye in the inflow; one for all rows, or one for each.
    """

    ends: tuple[str, str] = ("walls", "walls")
    wall_speed: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    inflow: Any = 0.0
    inflow_dye: Any = 0.0

    def __post_init__(self) -> None:
        if len(self.ends) != 2 or any(end not in allowed for end, allowed in zip(self.ends, ENDS, strict=True)):
            raise InputError(f"ends: expected one of {ENDS[0]} for x and one of {ENDS[1]} for y, got {self.ends!r}")


class Flow(MechanicalEngine):
    """Incompressible flow in a rectangle of cells on a staggered grid, with dye and fixed solids.

    A velocity holds those of the unknown faces: between cells along x, then along y, y running fastest. A position
    holds the dye of all cells, in the same order; its displacements are the first numbers of a velocity. A control is
    the strength of each jet, m/s², held over a step. All arithmetic is in float64, whatever the dtype of the state.

    Steps are of second order: Heun's method for advection, Crank–Nicolson's for viscosity, with projections to a
    divergence of zero. They are stable while the flow passes at most half a cell in a step. Gradients are adjoints of
    the steps.

    Args:
        cells: Numbers of cells along x and y, at least 3 each.
        size: Sizes of the rectangle, m; its lower left corner is the origin.
        material: Material of the fluid.
        dt: Length of a step, s.
        boundary: Boundary conditions; walls at rest by default.
        gravity: Gravity, m/s².
        solid: Solid fraction of each cell, (cells along x, along y); None for none. Then a leaf `solid` of a call is
            simulated less accurately, in one round.
        solid_time: Time constant in which a solid stops the flow, s; None for a hundredth of a step.
        dye: Initial dye, (cells along x, along y); None for none.
        jets: Regions in which controls accelerate the fluid.
    """

    def __init__(
        self,
        cells: tuple[int, int],
        size: tuple[float, float],
        material: FluidMaterial,
        *,
        dt: float,
        boundary: Boundary | None = None,
        gravity: Sequence[float] = (0.0, 0.0),
        solid: Any = None,
        solid_time: float | None = None,
        dye: Any = None,
        jets: Sequence[Jet] = (),
    ) -> None:
        super().__init__()
        boundary = Boundary() if boundary is None else boundary
        if len(cells) != 2 or len(size) != 2:
            raise InputError(f"cells, size: expected two numbers each, got {cells!r} and {size!r}")
        nx, ny = (check_count("cells", count, 3) for count in cells)
        self.cells, self.size = (nx, ny), (check_positive("size", size[0]), check_positive("size", size[1]))
        self.dt, self.jets = check_positive("dt", dt), tuple(jets)
        self.ends = ends = (boundary.ends[0], boundary.ends[1])
        self.spacing = (self.size[0] / nx, self.size[1] / ny)
        self.shapes = ((nx, ny), (nx - (ends[0] == "walls"), ny), (nx, ny - (ends[1] == "walls")))
        self.rounds = 1 if solid is None else SOLID_ROUNDS
        self.nq, self.nu = nx * ny, len(self.jets)
        self.nv = sum(a * b for a, b in self.shapes[1:])
        self.body_names, self.joint_names, self.geometry = (), (), ()
        values = {
            "viscosity": (material.viscosity, ()),
            "diffusivity": (material.diffusivity, ()),
            "density": (material.density, ()),
            "gravity": (gravity, (2,)),
            "excess_density": (material.excess_density, ()),
            "wall_speed": (boundary.wall_speed, (4,)),
            "inflow": (boundary.inflow, (ny,)),
            "inflow_dye": (boundary.inflow_dye, (ny,)),
            "solid": (0.0 if solid is None else solid, (nx, ny)),
            "solid_time": (self.dt / 100 if solid_time is None else solid_time, ()),
        }
        leaves = {name: _as_shape(name, value, shape) for name, (value, shape) in values.items()}
        self._store("dye", _as_shape("dye", 0.0 if dye is None else dye, (nx, ny)))
        self.set_properties(FlowProperties(**leaves))

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """Fluid at rest with the initial dye."""
        dye = self.get_buffer("_dye").to(dtype).reshape(1, -1).repeat(check_count("batch", batch), 1)
        return State(dye, dye.new_zeros(batch, self.nv))

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """Dye changed by the first numbers of `dv`."""
        return q + dv[..., : self.nq]

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """Difference of the dye, followed by zeros."""
        return torch.nn.functional.pad(q1 - q0, (0, self.nv - self.nq))

    def velocities(self, state: State | Trajectory) -> tuple[Tensor, Tensor]:
        """Velocities of the unknown faces along x, (batch, *times, …, …), and along y, m/s."""
        count = self.shapes[1][0] * self.shapes[1][1]
        return state.v[..., :count].unflatten(-1, self.shapes[1]), state.v[..., count:].unflatten(-1, self.shapes[2])

    def flow_state(
        self, u: Float[Tensor, "batch x y"], v: Float[Tensor, "batch w z"], dye: Tensor | None = None
    ) -> State:
        """State with velocities of the unknown faces, and dye in the cells, none by default."""
        q = u.new_zeros(len(u), self.nq) if dye is None else dye.flatten(1)
        return State(q, torch.cat([u.flatten(1), v.flatten(1)], 1))

    def faces(self, axis: int) -> tuple[Tensor, Tensor]:
        """Positions x and y of the unknown faces along x (0) or along y (1), m."""
        first = [0.0 if ends == "periodic" else 1.0 for ends in self.ends]
        coordinates = [
            (torch.arange(count, dtype=torch.float64) + (first[k] if k == axis else 0.5)) * self.spacing[k]
            for k, count in enumerate(self.shapes[1 + axis])
        ]
        x, y = torch.meshgrid(*coordinates, indexing="ij")
        return x, y

    def picture(self, state: State | Trajectory) -> Float[Tensor, "batch *times one height width"]:
        """Dye as frames with y up."""
        return state.q.unflatten(-1, self.cells).mT.flip(-2).unsqueeze(-3)

    def divergence(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch x y"]:
        """Divergence of all cells, 1/s, zero to rounding after every step."""
        leaves = self._leaves(properties, state)
        u, v = self.velocities(State(state.q.double(), state.v.double()))
        operation = self._operation(state.q.device)
        return operation.stepper.divergence(u, v, operation.prepare(tuple(leaves.values())))

    def drag(
        self, state: State, control: Float[Tensor, "batch nu"] | None = None, properties: Overrides = None
    ) -> Float[Tensor, "batch two"]:
        """Force of the flow on solids in the next step, N per meter of depth."""
        leaves, operation = self._leaves(properties, state), self._operation(state.q.device)
        control = state.q.new_zeros(state.batch, self.nu) if control is None else control
        fields = operation.fields(state.q.double(), state.v.double())
        *_, rounds = operation.stepper(
            *fields, operation.accelerations(control.double()), operation.prepare(tuple(leaves.values()))
        )
        pairs = [zip(before, after, strict=True) for before, after in rounds]
        momentum_loss = sum(torch.stack([(a - b).sum((1, 2)) for a, b in pair], 1) for pair in pairs)
        cell = self.spacing[0] * self.spacing[1]
        return (momentum_loss * (leaves["density"] * cell / self.dt)[:, None]).to(state.q)

    def _leaves(self, properties: Overrides, state: State) -> dict[str, Tensor]:
        """Values of all leaves for each world."""
        checked = self.checked(properties, state.batch, state.q.device)
        per_world = checked.per_world(self.properties)
        return {
            name: (value if name in per_world else value.expand(state.batch, *value.shape)).double()
            for name, value in checked.items()
        }

    def _operation(self, device: torch.device) -> Rollout:
        if device not in self._cached:
            with outside_transforms():
                (nx, ny), (hx, hy), (x, y) = self.cells, self.spacing, self.ends
                stepper = Stepper(
                    grid_bases(axis_operators(nx, hx, x), axis_operators(ny, hy, y), x == y == "periodic", device),
                    self.ends,
                    self.spacing,
                    self.dt,
                    self.rounds,
                )
                jets = (self._jet_accelerations(0).to(device), self._jet_accelerations(1).to(device))
                names, waves = tuple(FlowProperties.leaves()), None
                if x == y == "periodic":
                    waves = Waves(stepper.bases.pressure, self.spacing, self.dt, torch.stack(jets, 1))
                self._cached[device] = Rollout(stepper, waves, self.shapes, jets, names)
        return self._cached[device]

    def _jet_accelerations(self, axis: int) -> Tensor:
        """Accelerations of the jets at the unknown faces along one axis."""
        x, y = self.faces(axis)
        accelerations = [torch.zeros(0, *x.shape, dtype=torch.float64)]
        for k, jet in enumerate(self.jets):
            squared = (x - jet.center[0]).square() + (y - jet.center[1]).square()
            radius = check_positive(f"jets[{k}].radius", jet.radius)
            accelerations.append((jet.direction[axis] * torch.exp(-squared / (2 * radius**2)))[None])
        return torch.cat(accelerations)

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        leaves = self._leaves(properties, state)
        operation = self._operation(state.q.device)

        def run(q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, ...]:
            return batched_function.apply(operation, q, v, u, *leaves.values())

        q, v, reports, starts = truncated_rollout(run, state, steps, controls, self.nu, truncate)
        failed, fast = (first_marked_step(starts, marks) for marks in zip(*reports, strict=True))
        converged = failed < 0
        residual = torch.where(converged, 0.0, torch.inf).to(state.q)
        underresolved = torch.where(converged, fast, -1)
        status = Status(converged, residual, torch.ones_like(failed), failed, first_underresolved_step=underresolved)
        return Trajectory(q, v, status, self.dt)

    def _explain_failure(self, trajectory: Trajectory, properties: Overrides) -> FailureTexts:
        return FailureTexts(
            advice="The flow should pass at most half a cell in a step: reduce dt, or raise the viscosity. "
        )

    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        return state.q.new_zeros(state.batch, 0, 4, 4)

    def _appearance(self, state: State, properties: Properties) -> Appearance:
        return Appearance(self._poses(state, properties), state.q.new_zeros(state.batch, 0, 3))

    def _energy(self, state: State, properties: Properties) -> Energies:
        """Kinetic energy, and potential energy of heavy dye in gravity."""
        leaves = self._leaves(properties, state)
        weight = leaves["density"] * self.spacing[0] * self.spacing[1]
        x, y = (
            (torch.arange(count, device=state.q.device) + 0.5) * h
            for count, h in zip(self.cells, self.spacing, strict=True)
        )
        dye, gravity = state.q.double().unflatten(-1, self.cells), leaves["gravity"]
        height = (dye.sum(2) @ x.double()) * gravity[:, 0] + (dye.sum(1) @ y.double()) * gravity[:, 1]
        kinetic = weight * state.v.double().square().sum(-1) / 2
        return kinetic.to(state.q), (-weight * leaves["excess_density"] * height).to(state.q)

    def extra_repr(self) -> str:
        """Cells, ends and step, for `print(engine)`."""
        return f"{self.cells[0]} × {self.cells[1]} cells, {' and '.join(self.ends)}, dt={self.dt:g}"


def _as_shape(name: str, value: Any, shape: tuple[int, ...]) -> Tensor:
    """Numbers of a shape, or one number for all of them."""
    numbers = torch.as_tensor(np.asarray(value) if isinstance(value, Sequence) else value, dtype=torch.float64)
    if numbers.shape not in ((), shape) or not bool(torch.isfinite(numbers).all()):
        raise InputError(f"{name}: expected one finite number or shape {shape}, got shape {tuple(numbers.shape)}")
    return numbers.expand(shape).clone()
