"""Linearised trajectories and motion under feedback, each a launch without gradients; what repeats of it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from physvision.kernels.launching import Recorded, argument, array
from physvision.physics.articulated.integrators import Integrator
from physvision.physics.articulated.program import BACKWARD_COST, FORWARD_COST, Program
from physvision.physics.feedback import Bounds, Plan


class Actuation(NamedTuple):
    """How controls become forces of velocities, (nu, nv): those between `low` and `high`, (nu), count."""

    gain: Tensor
    low: Tensor
    high: Tensor
    plain: bool  # whether each control is the force of a velocity

    def forces(self, controls: Tensor) -> Tensor:
        """The forces of velocities."""
        return controls if self.plain else controls.clamp(self.low, self.high) @ self.gain

    def slopes(self, B: Tensor, controls: Tensor) -> Tensor:
        """Derivatives to controls from those to forces."""
        if self.plain:
            return B
        return (B @ self.gain.mT) * ((controls >= self.low) & (controls <= self.high)).unsqueeze(-2)


@dataclass(frozen=True, eq=False)
class Stepping:
    """A model, its numbers, and how it is stepped.

    Attributes:
        program: the kernels.
        tree: their `Tree`.
        held: what the tree points into.
        integrator: of a substep.
        substeps: in a step.
        dt: of a step.
        shared: whether all worlds have the same numbers.
    """

    program: Program
    tree: Any
    held: Any
    integrator: Integrator
    substeps: int
    dt: float
    shared: bool

    @property
    def evaluations(self) -> int:
        """Of the dynamics in a step."""
        return self.integrator.stages * self.substeps

    @property
    def schedule(self) -> Any:
        """The kernels' `Schedule`."""
        return self.program.schedule(self.integrator, self.substeps, self.dt / self.substeps)

    def linearize(self, q: Tensor, v: Tensor, torque: Tensor) -> tuple[Tensor, Tensor]:
        """(A, B), forces for controls, of the steps from the states q and v under the torques (batch, steps, nv)."""
        batch, steps, _ = torque.shape
        if self.program.device.type == "cuda" and steps > 1 and self.shared:
            # A thread a step: here there are threads enough.
            A, B = self.linearize(*(each[:, :steps].flatten(0, 1).unsqueeze(1) for each in (q, v, torque)))
            return A.unflatten(0, (batch, steps))[:, :, 0], B.unflatten(0, (batch, steps))[:, :, 0]
        A, B = self._launched("linearize", (batch, steps), q[:, :steps], v[:, :steps], torque)
        return A, B

    def follow(
        self, q: Tensor, v: Tensor, plan: Plan, bounds: Bounds, change: Tensor, shares: Tensor, actuation: Actuation
    ) -> tuple[Tensor, Tensor, Tensor]:
        """States and controls from q and v under a plan, once for each share of a change of its controls."""
        path, sizes = plan.trajectory, (*plan.controls.shape, len(shares))
        planned = (path.q, path.v, plan.controls, change, plan.gains, *bounds, *actuation[:3])
        positions, velocities, controls = self._launched(
            "follow", sizes, q.unsqueeze(1), v.unsqueeze(1), shares, *planned
        )
        return positions, velocities, controls

    def _launched(self, name: str, sizes: tuple[int, ...], *given: Tensor) -> list[Tensor]:
        """What a kernel finds, in memory that is kept for the next call."""
        key = (name, self.integrator, self.substeps, self.dt, *sizes)
        shelf = self.program.shelf
        make = self._linearization if name == "linearize" else self._pursuit
        recorded = shelf.take(key, self.program.device, lambda: make(*sizes))
        recorded.replace(0, self.tree)
        found = recorded(*given)
        shelf.give(key, self.program.device, recorded)
        return found

    def _linearization(self, batch: int, steps: int) -> Recorded:
        program, model = self.program, self.program.model
        n = model.nv
        given = [program.zeros(batch, steps, count) for count in (model.nq, n, n)]
        found = [program.zeros(batch, steps, 2 * n, count) for count in (2 * n, n)]
        gradients = program.kernels.GradientsStruct()
        # Of one step at a time.
        summed = program.zeros(batch, 1, n).expand(batch, steps, n)
        gradients.torque = array(summed)
        work = program.workspace(batch, self.evaluations + 1, True)
        inputs = [self.tree, work[0], program.forces(given[2], None), gradients, self.schedule, steps]
        inputs += [argument(each) for each in (*given[:2], *found)]
        # Semi-implicit Euler needs rows for velocities alone.
        rows = n if self.evaluations == 1 else 2 * n
        cost = (FORWARD_COST + BACKWARD_COST * rows) * self.evaluations * model.links * batch * steps
        return Recorded(program.kernels.linearize, batch, inputs, given, found, cost, (work, summed))

    def _pursuit(self, batch: int, steps: int, nu: int, shares: int) -> Recorded:
        program, model = self.program, self.program.model
        nq, nv, worlds = model.nq, model.nv, batch * shares
        positions, velocities = (program.zeros(worlds, steps + 1, count) for count in (nq, nv))
        controls, apart = program.zeros(worlds, steps, nu), program.zeros(worlds, 2 * nv)
        starts = [each[:, 0].unflatten(0, (batch, shares)) for each in (positions, velocities)]
        path = [program.zeros(batch, steps + 1, count) for count in (nq, nv)]
        planned = [*path, *(program.zeros(batch, steps, nu) for _ in range(2)), program.zeros(batch, steps, nu, 2 * nv)]
        limits = [program.zeros(nu) for _ in range(2)]
        actuation = [program.zeros(nu, nv), *(program.zeros(nu) for _ in range(2))]
        given = [program.zeros(shares), *planned, *limits, *actuation]
        torque = program.zeros(worlds, 1, nv).expand(worlds, steps, nv)
        work = program.workspace(worlds, self.evaluations + 1, False)
        inputs = [self.tree, work[0], program.forces(torque, None), self.schedule, steps]
        inputs += [argument(each) for each in (*given, apart, positions, velocities, controls)]
        found = [positions, velocities, controls]
        cost = FORWARD_COST * self.evaluations * model.links * worlds * steps
        return Recorded(program.kernels.follow, worlds, inputs, [*starts, *given], found, cost, (work, torque, apart))
