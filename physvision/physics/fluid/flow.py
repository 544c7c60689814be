"""Incompressible flow of the plane, as an Engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from physvision.core import InputError, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.kernels import batched_function
from physvision.kernels.launching import outside_transforms
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.physics.fluid.grid import axis, bases
from physvision.physics.fluid.properties import FlowProperties
from physvision.physics.fluid.rollout import Rollout
from physvision.physics.fluid.step import Stepper
from physvision.physics.fluid.waves import Waves
from physvision.physics.properties import Properties
from physvision.physics.truncation import first_marked_step, truncated_rollout

ROUNDS = 4  # of stopping what flows into solids
ENDS = (("periodic", "walls", "channel"), ("periodic", "walls"))


@dataclass(frozen=True)
class Jet:
    """A place where a control pushes the fluid: with that acceleration, m/s², at its middle.

    Attributes:
        centre: m.
        radius: m, at which it has fallen to 61 %.
        direction: of the push, whose length multiplies it.
    """

    centre: Sequence[float]
    radius: float
    direction: Sequence[float]


class Flow(MechanicalEngine):
    """Incompressible flow in a rectangle of square or oblong cells, with dye in it and solids that stand still.

    A velocity holds those of the unknown faces: between cells along x, then along y, y running fastest. A position
    holds the dye of all cells, in the same order; its displacements are the first numbers of a velocity. A control is
    the strength of each jet, held over a step. All arithmetic is in float64, whatever the dtype of the state.

    Args:
        cells: along x and y, at least 3 each.
        size: of the rectangle, m; its lower left corner is the origin.
        dt: seconds of a step; what flows should pass no more than half a cell in it.
        ends: of x, `periodic`, `walls` or `channel` (inflow on the left, outflow on the right); of y `periodic` or
            `walls`.
        viscosity: kinematic, m²/s.
        diffusivity: of dye, m²/s.
        density: kg/m³.
        gravity: m/s².
        heaviness: by how much full dye makes fluid heavier.
        wall_speed: of the left, right, lower and upper walls along themselves, m/s.
        inflow: m/s; one for all rows, or each row's own.
        inflow_dye: dye that comes with it; one for all rows, or each row's own.
        solid: share of each cell that stands still, (cells along x, along y); none if not given, and then a leaf
            `solid` of a call is met less exactly, in one round.
        solid_time: in which a solid stops what flows into it, s; a hundredth of a step if not given.
        dye: at the start, (cells along x, along y); none if not given.
        jets: where controls push.
    """

    def __init__(
        self,
        cells: tuple[int, int],
        size: tuple[float, float],
        *,
        dt: float,
        ends: tuple[str, str] = ("walls", "walls"),
        viscosity: float,
        diffusivity: float = 0.0,
        density: float = 1000.0,
        gravity: Sequence[float] = (0.0, 0.0),
        heaviness: float = 0.0,
        wall_speed: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        inflow: Any = 0.0,
        inflow_dye: Any = 0.0,
        solid: Any = None,
        solid_time: float | None = None,
        dye: Any = None,
        jets: Sequence[Jet] = (),
    ) -> None:
        super().__init__()
        if len(ends) != 2 or any(end not in known for end, known in zip(ends, ENDS, strict=True)):
            raise InputError(f"ends: expected one of {ENDS[0]} for x and one of {ENDS[1]} for y, got {ends!r}")
        if len(cells) != 2 or len(size) != 2:
            raise InputError(f"cells, size: expected two numbers each, got {cells!r} and {size!r}")
        nx, ny = (check_count("cells", each, 3) for each in cells)
        self.cells, self.size = (nx, ny), (check_positive("size", size[0]), check_positive("size", size[1]))
        self.dt, self.ends, self.jets = check_positive("dt", dt), (ends[0], ends[1]), tuple(jets)
        self.spacing = (self.size[0] / nx, self.size[1] / ny)
        self.shapes = ((nx, ny), (nx - (ends[0] == "walls"), ny), (nx, ny - (ends[1] == "walls")))
        self.rounds = 1 if solid is None else ROUNDS
        self.nq, self.nu = nx * ny, len(self.jets)
        self.nv = sum(a * b for a, b in self.shapes[1:])
        self.body_names, self.joint_names, self.geometry = (), (), ()
        given = {
            "viscosity": (viscosity, ()),
            "diffusivity": (diffusivity, ()),
            "density": (density, ()),
            "gravity": (gravity, (2,)),
            "heaviness": (heaviness, ()),
            "wall_speed": (wall_speed, (4,)),
            "inflow": (inflow, (ny,)),
            "inflow_dye": (inflow_dye, (ny,)),
            "solid": (0.0 if solid is None else solid, (nx, ny)),
            "solid_time": (self.dt / 100 if solid_time is None else solid_time, ()),
        }
        leaves = {name: _shaped(name, value, shape) for name, (value, shape) in given.items()}
        self._store("dye", _shaped("dye", 0.0 if dye is None else dye, (nx, ny)))
        self.set_properties(FlowProperties(**leaves))

    @override
    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """At rest, with the dye that was given."""
        dye = self.get_buffer("_dye").to(dtype).reshape(1, -1).repeat(check_count("batch", batch), 1)
        return State(dye, dye.new_zeros(batch, self.nv))

    @override
    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """The dye changed by the first numbers of `dv`."""
        return q + dv[..., : self.nq]

    @override
    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """By how much the dye differs, and zeros."""
        return torch.nn.functional.pad(q1 - q0, (0, self.nv - self.nq))

    def velocities(self, state: State | Trajectory) -> tuple[Tensor, Tensor]:
        """Of the unknown faces along x, (batch, *times, …, …), and along y."""
        count = self.shapes[1][0] * self.shapes[1][1]
        return state.v[..., :count].unflatten(-1, self.shapes[1]), state.v[..., count:].unflatten(-1, self.shapes[2])

    def flow_state(
        self, u: Float[Tensor, "batch x y"], v: Float[Tensor, "batch w z"], dye: Tensor | None = None
    ) -> State:
        """The state of these velocities of unknown faces, and of dye in the cells, none if not given."""
        q = u.new_zeros(len(u), self.nq) if dye is None else dye.flatten(1)
        return State(q, torch.cat([u.flatten(1), v.flatten(1)], 1))

    def faces(self, which: int) -> tuple[Tensor, Tensor]:
        """Places x and y of the unknown faces along x (0) or along y (1), m."""
        first = [0.0 if ends == "periodic" else 1.0 for ends in self.ends]
        places = [
            (torch.arange(count, dtype=torch.float64) + (first[k] if k == which else 0.5)) * self.spacing[k]
            for k, count in enumerate(self.shapes[1 + which])
        ]
        x, y = torch.meshgrid(*places, indexing="ij")
        return x, y

    def picture(self, state: State | Trajectory) -> Float[Tensor, "batch *times one height width"]:
        """The dye as frames, y up."""
        return state.q.unflatten(-1, self.cells).mT.flip(-2).unsqueeze(-3)

    def divergence(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch x y"]:
        """Of all cells, 1/s: zero to rounding after every step."""
        leaves = self._leaves(properties, state)
        u, v = self.velocities(State(state.q.double(), state.v.double()))
        operation = self._operation(state.q.device)
        return operation.stepper.divergence(u, v, operation.prepared(tuple(leaves.values())))

    def drag(
        self, state: State, control: Float[Tensor, "batch nu"] | None = None, properties: Overrides = None
    ) -> Float[Tensor, "batch two"]:
        """The force of the flow on what is solid in the next step, N a metre of depth."""
        leaves, operation = self._leaves(properties, state), self._operation(state.q.device)
        control = state.q.new_zeros(state.batch, self.nu) if control is None else control
        fields = operation.parts(state.q.double(), state.v.double())
        *_, rounds = operation.stepper(
            *fields, operation.pushes(control.double()), operation.prepared(tuple(leaves.values()))
        )
        pairs = [zip(before, after, strict=True) for before, after in rounds]
        lost = sum(torch.stack([(a - b).sum((1, 2)) for a, b in pair], 1) for pair in pairs)
        cell = self.spacing[0] * self.spacing[1]
        return (lost * (leaves["density"] * cell / self.dt)[:, None]).to(state.q)

    def _leaves(self, properties: Overrides, state: State) -> dict[str, Tensor]:
        """All leaves, with a value for each world."""
        known, own = self.checked(properties, state.batch, state.q.device), self.properties
        apart = known.per_world(own)
        return {
            name: (value if name in apart else value.expand(state.batch, *value.shape)).double()
            for name, value in known.items()
        }

    def _operation(self, device: torch.device) -> Rollout:
        if device not in self._cached:
            with outside_transforms():
                (nx, ny), (hx, hy), (x, y) = self.cells, self.spacing, self.ends
                stepper = Stepper(
                    bases(axis(nx, hx, x), axis(ny, hy, y), x == y == "periodic", device),
                    self.ends,
                    self.spacing,
                    self.dt,
                    self.rounds,
                )
                jets = (self._pushes(0).to(device), self._pushes(1).to(device))
                names, waves = tuple(FlowProperties.leaves()), None
                if x == y == "periodic":
                    waves = Waves(stepper.bases.pressure, self.spacing, self.dt, torch.stack(jets, 1))
                self._cached[device] = Rollout(stepper, waves, self.shapes, jets, names)
        return self._cached[device]

    def _pushes(self, which: int) -> Tensor:
        """Accelerations of the jets at the unknown faces along one axis."""
        x, y = self.faces(which)
        found = [torch.zeros(0, *x.shape, dtype=torch.float64)]
        for k, jet in enumerate(self.jets):
            far = (x - jet.centre[0]).square() + (y - jet.centre[1]).square()
            radius = check_positive(f"jets[{k}].radius", jet.radius)
            found.append((jet.direction[which] * torch.exp(-far / (2 * radius**2)))[None])
        return torch.cat(found)

    @override
    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        leaves = self._leaves(properties, state)
        operation = self._operation(state.q.device)

        def run(q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, ...]:
            return batched_function.apply(operation, q, v, u, *leaves.values())

        q, v, found, starts = truncated_rollout(run, state, steps, controls, self.nu, truncate)
        bad, coarse = (first_marked_step(starts, each) for each in zip(*found, strict=True))
        good = bad < 0
        residual = torch.where(good, 0.0, torch.inf).to(state.q)
        coarse = torch.where(good, coarse, -1)
        status = Status(good, residual, torch.ones_like(bad), bad, first_underresolved_step=coarse)
        return Trajectory(q, v, status, self.dt)

    @override
    def _failure_advice(self) -> str:
        return "What flows should pass at most half a cell in a step: take a smaller dt, or more viscosity. "

    @override
    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        return state.q.new_zeros(state.batch, 0, 4, 4)

    @override
    def _appearance(
        self, state: State, properties: Properties
    ) -> tuple[Float[Tensor, "batch shapes 4 4"], Float[Tensor, "batch shapes 3"]]:
        return self._poses(state, properties), state.q.new_zeros(state.batch, 0, 3)

    @override
    def _energy(self, state: State, properties: Properties) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Of motion, and of heavy dye in gravity."""
        leaves = self._leaves(properties, state)
        weight = leaves["density"] * self.spacing[0] * self.spacing[1]
        x, y = (
            (torch.arange(count, device=state.q.device) + 0.5) * h
            for count, h in zip(self.cells, self.spacing, strict=True)
        )
        dye, gravity = state.q.double().unflatten(-1, self.cells), leaves["gravity"]
        height = (dye.sum(2) @ x.double()) * gravity[:, 0] + (dye.sum(1) @ y.double()) * gravity[:, 1]
        kinetic = weight * state.v.double().square().sum(-1) / 2
        return kinetic.to(state.q), (-weight * leaves["heaviness"] * height).to(state.q)

    def extra_repr(self) -> str:
        """What `print(engine)` says."""
        return f"{self.cells[0]} × {self.cells[1]} cells, {' and '.join(self.ends)}, dt={self.dt:g}"


def _shaped(name: str, value: Any, shape: tuple[int, ...]) -> Tensor:
    """Numbers of this shape, or one for all of them."""
    found = torch.as_tensor(np.asarray(value) if isinstance(value, Sequence) else value, dtype=torch.float64)
    if found.shape not in ((), shape) or not bool(torch.isfinite(found).all()):
        raise InputError(f"{name}: expected one finite number or shape {shape}, got shape {tuple(found.shape)}")
    return found.expand(shape).clone()
