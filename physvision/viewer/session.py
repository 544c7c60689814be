"""Simulation that a viewer steers: its state, controls and properties, a spring that pulls, and a recorded motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from torch import Tensor

from physvision.core import InputError, State, Trajectory
from physvision.physics import Engine
from physvision.physics.engine import MechanicalEngine

SPRING_PERIOD_S = 0.35  # of a free body that hangs on the spring by which it is pulled
MAX_SOLVER_STEPS = 50  # of conjugate gradients, for the velocities that an impulse makes
SOLVER_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Pull:
    """Spring between a point of a body and a point in the world.

    Attributes:
        body: Row of the body in `engine.poses`.
        point: Point in the frame of the body, m.
        target: Other end of the spring in the world, m.
    """

    body: int
    point: NDArray[np.float64]
    target: NDArray[np.float64]


class Session:
    """Simulation of one world, step by step, that keeps a history for plots and for going back.

    It knows of an engine what every engine with bodies has: `rollout`, `poses`, `energy`, `integrate` and properties.

    Attributes:
        engine: Engine of the motion.
        mechanics: Mechanical engine inside.
        state: Current state, a batch of one.
        time: Simulated time since the start, s.
        control: Current controls, (nu,).
        overrides: Properties that replace the engine's own.
        pull: Spring that pulls a body; None for none.
        running: If true, `advance` simulates.
        failed: If true, the last step failed, and the state before it is kept.
        recording: Motion that is played instead of a simulation; None to simulate.
    """

    def __init__(self, engine: Engine, start: State | None = None, recording: Trajectory | None = None) -> None:
        if engine.mechanics is None:
            raise InputError(f"engine: {type(engine).__name__} has no bodies to look at; give one with mechanics")
        if recording is not None and recording.q.shape[-1] != engine.nq:
            raise InputError(f"trajectory: expected states of {engine.nq} positions, got {recording.q.shape[-1]}")
        self.engine: Engine = engine
        self.mechanics: MechanicalEngine = engine.mechanics
        self._start = engine.initial_state(dtype=torch.float64) if start is None else start.to(torch.float64)
        self.recording = recording
        self.control = torch.zeros(engine.nu, dtype=torch.float64)
        self.overrides: dict[str, Tensor] = {}
        self.pull: Pull | None = None
        self.running, self._remainder_s = False, 0.0
        self.reset()

    def reset(self) -> None:
        """Return to the start, with the controls and properties as they are."""
        self.state = self._start if self.recording is None else self.recording.state(0)
        self.time, self.failed, self._frame = 0.0, False, 0
        self.history: list[tuple[float, float, float]] = []
        self._record()

    def advance(self, seconds: float) -> int:
        """Simulate for a time, if the session is running, and return the number of steps."""
        if not self.running:
            return 0
        self._remainder_s += seconds
        steps = int(self._remainder_s / self.engine.dt + 1e-9)
        self._remainder_s -= steps * self.engine.dt
        for _ in range(steps):
            if not self.step():
                break
        return steps

    @property
    def step_control(self) -> torch.Tensor | None:
        """Controls of one world, (1, nu); None for an engine without controls."""
        return self.control[None] if self.engine.nu else None

    @torch.no_grad()
    def step(self) -> bool:
        """Simulate, or play, one step; return False if it failed or the recording is at its end."""
        if self.recording is not None:
            return self.seek(self._frame + 1)
        state = self._pulled(self.state) if self.pull is not None else self.state
        controls = None if self.step_control is None else self.step_control[None]
        end = self.engine.rollout(state, 1, controls, self.overrides or None)
        good = end.status is None or bool(end.status.converged.all())
        if not good or not bool(end.final.q.isfinite().all() and end.final.v.isfinite().all()):
            self.failed, self.running = True, False
            return False
        self.state, self.time, self.failed = end.final, self.time + self.engine.dt, False
        self._record()
        return True

    def seek(self, frame: int) -> bool:
        """Show a frame of the recording; return False if there is no such frame."""
        if self.recording is None or not 0 <= frame <= self.recording.steps:
            self.running = False
            return False
        self._frame, self.state = frame, self.recording.state(frame)
        self.time = frame * self.engine.dt
        return True

    def control_bounds(self, number: int, limits: Sequence[float]) -> tuple[float, float]:
        """Return the bounds of a control's slider: the engine's own range within the limits that are given.

        Args:
            number: Number of the control.
            limits: Largest value of each control; where there is none, 1 bounds a control without a range.
        """
        low, high = self.engine.control_range[number].tolist()
        limit = float(limits[number]) if number < len(limits) else (1.0 if high - low == float("inf") else float("inf"))
        return max(low, -limit), min(high, limit)

    def set_property(self, name: str, row: int, value: float) -> None:
        """Replace one value of a property, which the engine checks.

        Args:
            name: Name of the property.
            row: Index into its values.
            value: New value in SI units.
        """
        current = self.overrides.get(name, dict(self.engine.properties.items())[name])
        changed = current.detach().clone().double()
        changed.view(-1)[row] = value
        self.engine.checked({**self.overrides, name: changed})
        self.overrides[name] = changed

    @torch.no_grad()
    def body_point(self, pull: Pull) -> NDArray[np.float64]:
        """Position in the world of the point that is pulled, m."""
        pose = self.mechanics.poses(self.state, self.overrides or None)[0, pull.body].double().numpy()
        return pose[:3, :3] @ pull.point + pose[:3, 3]

    def _record(self) -> None:
        with torch.no_grad():
            kinetic, potential = self.mechanics.energy(self.state, self.overrides or None)
        self.history.append((self.time, float(kinetic[0]), float(potential[0])))
        del self.history[:-2000]

    def _pulled(self, state: State) -> State:
        """Return the state after the impulse of the spring over one step.

        A generalized impulse is Jᵀ f dt with the Jacobian J of the point. It changes velocities by M⁻¹ Jᵀ f dt; since
        the kinetic energy is v M v / 2, its gradient at a velocity x is M x, and conjugate gradients need no more. The
        spring is critically damped, with the mass m = 1 / (j M⁻¹ jᵀ) that the point has along the spring.
        """
        pull = self.pull
        assert pull is not None
        # In the plane, and for all that only reads it, a point has three coordinates.
        offset = torch.as_tensor(pull.target - self.body_point(pull), dtype=torch.float64)
        distance = float(offset.norm())
        if distance < 1e-9:
            return state
        direction = offset / distance
        row = self._point_gradient(state, pull, direction)
        response = self._solve_mass(state, row)
        mobility = float(row @ response)
        if not mobility > 1e-12:
            return state
        rate, dt = 2 * np.pi / SPRING_PERIOD_S, self.engine.dt
        speed = float(row @ state.v[0])
        # Implicit, so that the spring is stable at any step.
        acceleration = (rate * rate * distance - (2 * rate + rate * rate * dt) * speed) / (1 + rate * dt) ** 2
        return State(state.q, state.v + acceleration * dt / mobility * response[None])

    def _point_gradient(self, state: State, pull: Pull, direction: Tensor) -> Tensor:
        """Speed of a point along a direction, for each velocity, (nv,)."""
        with torch.enable_grad():
            change = torch.zeros(1, self.engine.nv, dtype=torch.float64, requires_grad=True)
            moved = State(self.engine.integrate(state.q, change), state.v)
            pose = self.mechanics.poses(moved, self.overrides or None)[0, pull.body]
            along = (pose[:3, :3] @ torch.as_tensor(pull.point).to(pose) + pose[:3, 3]) @ direction.to(pose)
            (gradient,) = torch.autograd.grad(along, change)
        return gradient[0]

    def _momentum(self, state: State, velocity: Tensor) -> Tensor:
        """Mass matrix times a velocity, (nv,)."""
        with torch.enable_grad():
            v = velocity[None].detach().requires_grad_()
            kinetic, _ = self.mechanics.energy(State(state.q, v), self.overrides or None)
            (gradient,) = torch.autograd.grad(kinetic.sum(), v)
        return gradient[0]

    def _solve_mass(self, state: State, impulse: Tensor) -> Tensor:
        """Velocities that a generalized impulse makes, by conjugate gradients, (nv,)."""

        def momentum(velocity: NDArray) -> NDArray:
            return self._momentum(state, torch.as_tensor(velocity)).numpy()

        size = len(impulse)
        mass = LinearOperator((size, size), momentum, dtype=np.float64)  # pyright: ignore[reportCallIssue]
        solution, _ = cg(mass, impulse.numpy(), rtol=SOLVER_TOLERANCE, maxiter=MAX_SOLVER_STEPS)
        return torch.as_tensor(solution)
