"""Launches without gradients: linearization of trajectories and rollouts under feedback, recorded and reused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from physvision.kernels.launching import RecordedLaunch, argument, fill
from physvision.physics.articulated.compiler.device_model import DeviceModel
from physvision.physics.articulated.model.integrators import Integrator
from physvision.physics.articulated.settings import SETTINGS
from physvision.physics.feedback import FeedbackSearch


class ControlMap(NamedTuple):
    """Map from controls to generalized forces: clamp, then multiply.

    Attributes:
        gain: Force per unit of control, (nu, nv).
        low: Lower limits of the controls, (nu,).
        high: Upper limits of the controls, (nu,).
        is_identity: If true, each control is the force of a velocity.
        driver: Control that drives each velocity, (nv,); None if several controls drive a velocity.
    """

    gain: Tensor
    low: Tensor
    high: Tensor
    is_identity: bool
    driver: Tensor | None

    def forces(self, controls: Tensor) -> Tensor:
        """Generalized forces of controls."""
        if self.is_identity:
            return controls
        clamped = controls.clamp(self.low, self.high)
        if self.driver is None:
            return clamped @ self.gain
        # Threads that share a small matrix product wait for each other a thousand times as long.
        return clamped.index_select(-1, self.driver) * self.gain.sum(0)

    def chain(self, B: Tensor, controls: Tensor) -> Tensor:
        """Derivatives with respect to controls from those with respect to generalized forces."""
        if self.is_identity:
            return B
        return (B @ self.gain.mT) * ((controls >= self.low) & (controls <= self.high)).unsqueeze(-2)


@dataclass(frozen=True, eq=False)
class TrajectoryLauncher:
    """Launcher of kernels that step a tree without contact.

    Attributes:
        model: Kernels and constant arrays.
        tree: Struct of the tree with its parameters.
        references: Owners of the memory behind the struct.
        integrator: Integrator of a substep.
        substeps: Number of substeps in a step.
        dt: Length of a step, s.
        shared: If true, all worlds have the same parameters.
    """

    model: DeviceModel
    tree: Any
    references: Any
    integrator: Integrator
    substeps: int
    dt: float
    shared: bool

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the dynamics in a step."""
        return self.integrator.stages * self.substeps

    @property
    def schedule(self) -> Any:
        """Struct `Schedule` of a step."""
        return self.model.schedule_struct(self.integrator, self.substeps, self.dt)

    def linearize(self, q: Tensor, v: Tensor, torque: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the derivatives (A, B) of steps with respect to states and generalized forces.

        Args:
            q: Positions at which the steps start, (batch, steps or more, nq).
            v: Velocities at which the steps start, (batch, steps or more, nv).
            torque: Generalized forces, (batch, steps, nv).
        """
        batch, steps, _ = torque.shape
        if self.model.device.type == "cuda" and steps > 1 and self.shared:
            # One thread a step: a GPU has enough of them.
            flat = (values[:, :steps].flatten(0, 1).unsqueeze(1) for values in (q, v, torque))
            A, B = self.linearize(*flat)
            return A.unflatten(0, (batch, steps))[:, :, 0], B.unflatten(0, (batch, steps))[:, :, 0]
        A, B = (self.model.allocator.empty(batch, steps, 2 * self._nv, count) for count in (2 * self._nv, self._nv))
        with self._launch("linearize", (q, v, torque, A, B), self._record_linearization) as launch:
            launch.set_memory(2, torque, "torque")
            for k, tensor in enumerate((q, v, A, B)):
                launch.set_memory(k - 4, tensor)
            launch.run()
        return A, B

    def rollout_feedback(
        self, start: tuple[Tensor, Tensor], search: FeedbackSearch, controls: ControlMap
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Simulate under feedback, once for each step size.

        Args:
            start: Positions and velocities at the start.
            search: Policy, bounds of the controls, change and step sizes.
            controls: Map from controls to generalized forces.

        Returns:
            Positions, velocities and controls.
        """
        model, policy = self.model, search.policy
        path, (batch, steps, nu) = policy.trajectory, policy.feedforward.shape
        worlds = batch * len(search.step_sizes)
        counts = (start[0].shape[1], self._nv)
        positions, velocities = (model.allocator.trajectory(worlds, steps + 1, count) for count in counts)
        for states, initial in zip((positions, velocities), start, strict=True):
            states[:, 0].unflatten(0, (batch, -1)).copy_(initial.unsqueeze(1))
        used = model.allocator.empty(worlds, steps, nu)
        states_and_gains = path.q, path.v, policy.feedforward, search.change, policy.gains
        inputs = (search.step_sizes, *states_and_gains, *search.bounds, *controls[:3])
        tensors = (*(value.to(model.dtype) for value in inputs), positions, velocities, used)
        with self._launch("follow", tensors, self._record_feedback_rollout) as launch:
            for k, tensor in enumerate(tensors):
                launch.set_memory(k - len(tensors), tensor)
            launch.run()
        return positions, velocities, used

    @property
    def _nv(self) -> int:
        return self.model.tree.nv

    @contextmanager
    def _launch(
        self, name: str, tensors: Sequence[Tensor], record: Callable[..., RecordedLaunch]
    ) -> Iterator[RecordedLaunch]:
        """Launch recorded for tensors of these shapes, or a new one."""
        shapes = ((tensor.shape, tensor.stride()) for tensor in tensors)
        key = (name, self.integrator, self.substeps, self.dt, *shapes)
        launch = self.model.recorded.take(key, self.model.device, lambda: record(*tensors))
        launch.replace(0, self.tree)
        yield launch
        self.model.recorded.give_back(key, self.model.device, launch)

    def _record_linearization(self, q: Tensor, v: Tensor, torque: Tensor, A: Tensor, B: Tensor) -> RecordedLaunch:
        model, nv, (batch, steps, _) = self.model, self._nv, torque.shape
        gradients = model.kernels.GradientsStruct()
        # All steps share the memory of one.
        torque_bar = model.allocator.zeros(batch, 1, nv).expand(batch, steps, nv)
        fill(gradients, "torque", torque_bar)
        workspace = model.workspaces.allocate(batch, self.evaluations + 1, "backward")
        inputs = [self.tree, workspace.struct, model.forces_struct(torque, None), gradients, self.schedule, steps]
        inputs += [argument(tensor) for tensor in (q, v, A, B)]
        # Semi-implicit Euler needs an adjoint for each velocity only.
        rows = nv if self.evaluations == 1 else 2 * nv
        cost = (SETTINGS.forward_cost + SETTINGS.backward_cost * rows) * self.evaluations
        cost *= model.tree.links * batch * steps
        return RecordedLaunch(model.kernels.linearize, batch, inputs, model.device, cost, (workspace, torque_bar))

    def _record_feedback_rollout(self, *tensors: Tensor) -> RecordedLaunch:
        model, controls = self.model, tensors[-1]
        worlds, steps, _ = controls.shape
        deviation = model.allocator.zeros(worlds, 2 * self._nv)
        torque = model.allocator.zeros(worlds, 1, self._nv).expand(worlds, steps, self._nv)
        workspace = model.workspaces.allocate(worlds, self.evaluations + 1, "forward")
        inputs = [self.tree, workspace.struct, model.forces_struct(torque, None), self.schedule, steps]
        inputs += [argument(tensor) for tensor in (deviation, *tensors)]
        cost = SETTINGS.forward_cost * self.evaluations * model.tree.links * worlds * steps
        return RecordedLaunch(
            model.kernels.rollout_feedback, worlds, inputs, model.device, cost, (workspace, torque, deviation)
        )
