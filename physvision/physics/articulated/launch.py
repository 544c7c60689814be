"""Linearised trajectories and motion under feedback, each a launch without gradients; what repeats of it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from physvision.kernels.launching import Repeated, argument, fill
from physvision.physics.articulated.compiler.device_model import BACKWARD_COST, FORWARD_COST, Program
from physvision.physics.articulated.model.integrators import Integrator
from physvision.physics.feedback import Bounds, Plan


class Actuation(NamedTuple):
    """How controls become forces of velocities, (nu, nv): those between `low` and `high`, (nu), count."""

    gain: Tensor
    low: Tensor
    high: Tensor
    plain: bool  # whether each control is the force of a velocity
    driver: Tensor | None  # of each velocity the control that drives it; None where several drive one

    def forces(self, controls: Tensor) -> Tensor:
        """The forces of velocities."""
        if self.plain:
            return controls
        held = controls.clamp(self.low, self.high)
        if self.driver is None:
            return held @ self.gain
        # Not as a product of matrices: threads that share a small one wait a thousand times as long for each other.
        return held.index_select(-1, self.driver) * self.gain.sum(0)

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
        A, B = (self.program.empty(batch, steps, 2 * self._n, count) for count in (2 * self._n, self._n))
        with self._launch("linearize", (q, v, torque, A, B), self._linearization) as launch:
            launch.move(2, torque, "torque")
            for back, tensor in enumerate((q, v, A, B)):
                launch.move(back - 4, tensor)
            launch.run()
        return A, B

    def follow(
        self, q: Tensor, v: Tensor, plan: Plan, bounds: Bounds, change: Tensor, shares: Tensor, actuation: Actuation
    ) -> tuple[Tensor, Tensor, Tensor]:
        """States and controls from q and v under a plan, once for each share of a change of its controls."""
        program, path, (batch, steps, nu) = self.program, plan.trajectory, plan.controls.shape
        worlds = batch * len(shares)
        positions, velocities = (program.empty_trajectory(worlds, steps + 1, count) for count in (q.shape[1], self._n))
        for states, start in ((positions, q), (velocities, v)):
            states[:, 0].unflatten(0, (batch, -1)).copy_(start.unsqueeze(1))
        controls = program.empty(worlds, steps, nu)
        given = (shares, path.q, path.v, plan.controls, change, plan.gains, *bounds, *actuation[:3])
        moving = (*(each.to(program.dtype) for each in given), positions, velocities, controls)
        with self._launch("follow", moving, self._pursuit) as launch:
            for back, tensor in enumerate(moving):
                launch.move(back - len(moving), tensor)
            launch.run()
        return positions, velocities, controls

    @property
    def _n(self) -> int:
        return self.program.model.nv

    @contextmanager
    def _launch(self, name: str, moving: Sequence[Tensor], make: Callable[..., Repeated]) -> Iterator[Repeated]:
        """The launch of a kernel that was made last for tensors of these shapes, or a new one."""
        key = (name, self.integrator, self.substeps, self.dt, *((each.shape, each.stride()) for each in moving))
        shelf = self.program.shelf
        launch = shelf.take(key, self.program.device, lambda: make(*moving))
        launch.replace(0, self.tree)
        yield launch
        shelf.give(key, self.program.device, launch)

    def _linearization(self, q: Tensor, v: Tensor, torque: Tensor, A: Tensor, B: Tensor) -> Repeated:
        program, n, (batch, steps, _) = self.program, self._n, torque.shape
        gradients = program.kernels.GradientsStruct()
        # Of one step at a time.
        summed = program.zeros(batch, 1, n).expand(batch, steps, n)
        fill(gradients, "torque", summed)
        work = program.workspace(batch, self.evaluations + 1, True)
        inputs = [self.tree, work[0], program.forces(torque, None), gradients, self.schedule, steps]
        inputs += [argument(each) for each in (q, v, A, B)]
        # Semi-implicit Euler needs rows for velocities alone.
        rows = n if self.evaluations == 1 else 2 * n
        cost = (FORWARD_COST + BACKWARD_COST * rows) * self.evaluations * program.model.links * batch * steps
        return Repeated(program.kernels.linearize, batch, inputs, program.device, cost, (work, summed))

    def _pursuit(self, *moving: Tensor) -> Repeated:
        program, controls = self.program, moving[-1]
        worlds, steps, _ = controls.shape
        apart = program.zeros(worlds, 2 * self._n)
        torque = program.zeros(worlds, 1, self._n).expand(worlds, steps, self._n)
        work = program.workspace(worlds, self.evaluations + 1, False)
        inputs = [self.tree, work[0], program.forces(torque, None), self.schedule, steps]
        inputs += [argument(each) for each in (apart, *moving)]
        cost = FORWARD_COST * self.evaluations * program.model.links * worlds * steps
        return Repeated(program.kernels.follow, worlds, inputs, program.device, cost, (work, torque, apart))
