"""Engine for a particle with a driving force, a restoring force and drag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
import warp as wp
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from physvision.core import Appearance, InputError, Placed, Sphere, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.kernels import batched_function
from physvision.kernels.launching import argument, launch
from physvision.physics.engine import Energies, MechanicalEngine, Overrides
from physvision.physics.particle import kernels
from physvision.physics.particle.properties import ParticleProperties, pack
from physvision.physics.truncation import first_marked_step, truncated_rollout

DRAWN_RADIUS = 0.05  # of the sphere that stands for the particle, m
_STEP_COST = 0.5  # estimated time of a step forward, µs


class Particle(MechanicalEngine):
    """Particle with the equation of motion q̈ = a − k f(q − rest_position) − velocity_decay · q̇ − drag · |q̇| q̇.

    Here a is the constant `acceleration` and k the `restoring_coefficient`. On a line and in the plane q is a position
    and f(d) = d, a spring's force; on a circle q is the angle from the lowest point and f(d) = sin d, a pendulum's.
    Steps are of the classical fourth-order Runge–Kutta method, in float64 for any dtype of the state. A control is an
    acceleration, held over a step.

    The plane has x to the right and z up; a line is along x. On a circle the particle is at length · (sin q, −cos q).
    """

    def __init__(
        self,
        path: Literal["line", "plane", "circle"],
        *,
        dt: float,
        substeps: int = 1,
        acceleration: Sequence[float] | float = 0.0,
        rest_position: Sequence[float] | float = 0.0,
        restoring_coefficient: float = 0.0,
        velocity_decay: float = 0.0,
        drag: float = 0.0,
        mass: float = 1.0,
        length: float = 1.0,
    ) -> None:
        """Make a particle on a path.

        Args:
            path: Set of positions: "line", "plane" or "circle".
            dt: Length of a step, s.
            substeps: Number of Runge–Kutta steps in a step of the engine.
            acceleration: Constant acceleration, m/s² or rad/s².
            rest_position: Position without restoring force, m or rad.
            restoring_coefficient: Restoring coefficient, 1/s².
            velocity_decay: Linear drag, 1/s.
            drag: Quadratic drag, 1/m or 1/rad.
            mass: Mass, kg, which scales energies only.
            length: Radius of the circle, m.
        """
        super().__init__()
        if path not in ("line", "plane", "circle"):
            raise InputError(f"path: expected line, plane or circle, got {path!r}")
        self.path, self.dt, self.substeps = path, check_positive("dt", dt), check_count("substeps", substeps)
        self.nq = self.nv = self.nu = 2 if path == "plane" else 1
        self.body_names, self.joint_names = ("particle",), (path,)
        self.geometry = (Placed(Sphere(DRAWN_RADIUS), 0),)
        pairs = {"acceleration": acceleration, "rest_position": rest_position}
        pair = {name: torch.as_tensor(value, dtype=torch.float64).expand(self.nv) for name, value in pairs.items()}
        numbers = {
            "restoring_coefficient": restoring_coefficient,
            "velocity_decay": velocity_decay,
            "drag": drag,
            "mass": mass,
        }
        numbers |= {"length": length, "radius": DRAWN_RADIUS}
        single = {name: torch.tensor(float(value), dtype=torch.float64) for name, value in numbers.items()}
        self.set_properties(ParticleProperties(**pair, **single))

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """Particle at rest at its rest position."""
        rest = self.get_buffer("_rest_position").to(dtype).repeat(check_count("batch", batch), 1)
        return State(rest, torch.zeros_like(rest))

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        checked = self.checked(properties, state.batch, state.q.device)
        assert isinstance(checked, ParticleProperties)
        numbers = pack(checked, state.batch, self.nv)
        operation = _Rollout(self.path == "circle", self.dt, self.substeps)

        def run(q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, ...]:
            return batched_function.apply(operation, q, v, u, numbers)

        q, v, reports, starts = truncated_rollout(run, state, steps, controls, self.nu, truncate)
        failed = first_marked_step(starts, [step for (step,) in reports])
        residual = torch.where(failed < 0, 0.0, torch.inf).to(state.q)
        return Trajectory(q, v, Status(failed < 0, residual, torch.ones_like(failed), failed), self.dt)

    def _positions(self, state: State, properties: ParticleProperties) -> Float[Tensor, "batch 2"]:
        """Coordinates x and z of the particle, m."""
        if self.path == "circle":
            return properties.length.to(state.q).reshape(-1, 1) * torch.cat([state.q.sin(), -state.q.cos()], 1)
        return functional.pad(state.q, (0, 2 - self.nq))

    def _poses(self, state: State, properties: ParticleProperties) -> Float[Tensor, "batch bodies 4 4"]:
        position = self._positions(state, properties)
        angle = -state.q[:, :1] if self.path == "circle" else torch.zeros_like(state.q[:, :1])
        c, s, zero, unit = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
        x, z = position[:, :1], position[:, 1:]
        rows = [c, zero, s, x, zero, unit, zero, zero, -s, zero, c, z, zero, zero, zero, unit]
        return torch.cat(rows, 1).reshape(-1, 1, 4, 4)

    def _appearance(self, state: State, properties: ParticleProperties) -> Appearance:
        radius = properties.radius.to(state.q).reshape(-1, 1, 1).expand(state.batch, 1, 1)
        return Appearance(self._poses(state, properties), functional.pad(radius, (0, 2)))

    def _energy(self, state: State, properties: ParticleProperties) -> Energies:
        p = properties.to(state.q)
        displacement = state.q - p.rest_position
        is_circle = self.path == "circle"
        squared = 2 * (1 - displacement.cos()) if is_circle else displacement.square()
        potential = p.restoring_coefficient * squared.sum(-1) / 2 - (p.acceleration * state.q).sum(-1)
        inertia = p.mass * (p.length.square() if is_circle else 1.0)
        return inertia * state.v.square().sum(-1) / 2, inertia * potential

    def extra_repr(self) -> str:
        """Path and step, for `print(engine)`."""
        return f"{self.path}, dt={self.dt:g}"


class _Rollout(batched_function.Operation):
    """Rollout: (q, v, controls, numbers) → trajectories of q and v, first failed step; all in float64."""

    differentiable = 2

    def __init__(self, circle: bool, dt: float, substeps: int) -> None:
        self.circle, self.h, self.substeps = int(circle), dt / substeps, substeps

    def _run(self, kernel: Any, q: Tensor, numbers: Tensor, controls: Tensor, outputs: list[Any], cost: float) -> None:
        padded = functional.pad(controls, (0, 2 - controls.shape[2]))
        inputs = [argument(numbers.contiguous()), argument(padded), self.circle, self.h, self.substeps, *outputs]
        launch(kernel, len(q), inputs, q.device, cost * _STEP_COST * controls.shape[1] * self.substeps * len(q))

    @override
    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        q, v, controls, numbers = inputs
        size = q.shape[1]
        states = q.new_empty(len(q), controls.shape[1] + 1, 4)
        states[:, 0] = _to_vectors(q, v)
        failed = torch.empty(len(q), dtype=torch.int32, device=q.device)
        self._run(kernels.forward, q, numbers, controls, [argument(states, wp.vec4d), argument(failed)], 1.0)
        return states[..., :size].contiguous(), states[..., 2 : 2 + size].contiguous(), failed

    @override
    def backward(self, inputs: Any, outputs: Any, gradients: Any, needed: tuple[bool, ...]) -> Any:
        _, _, controls, numbers = inputs
        q, v = outputs[:2]
        size, batch = q.shape[2], len(q)
        bars = [torch.zeros_like(q) if bar is None else bar for bar in gradients]
        start_bar, numbers_bar = q.new_empty(batch, 4), torch.empty(batch, 7, dtype=q.dtype, device=q.device)
        control_bar = q.new_empty(batch, controls.shape[1], 2)
        states = [argument(_to_vectors(*pair), wp.vec4d) for pair in ((q, v), bars)]
        outputs_bar = [argument(start_bar, wp.vec4d), argument(numbers_bar), argument(control_bar)]
        self._run(kernels.backward, q, numbers, controls, [*states, *outputs_bar], 3.0)
        return start_bar[:, :size], start_bar[:, 2 : 2 + size], control_bar[..., :size], numbers_bar


def _to_vectors(q: Tensor, v: Tensor) -> Tensor:
    """States as vectors (q, v) with two coordinates each."""
    padding = (0, 2 - q.shape[-1])
    return torch.cat([functional.pad(q, padding), functional.pad(v, padding)], -1).contiguous()
