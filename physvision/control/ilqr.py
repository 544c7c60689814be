"""Iterative linear-quadratic regulator (iLQR): trajectory optimization of any engine, all worlds at once.

Each iteration linearizes the motion about the current trajectory, solves the linear-quadratic problem within the bounds
(`kernels/riccati.py`), and rolls out its policy. A world takes the whole change if that lowers its cost by half of the
expected decrease, otherwise the step size that lowers it most. If none does, the problem is damped. References: Li and
Todorov, Iterative linear quadratic regulator design for nonlinear biological movement systems, 2004; Tassa, Mansard
and Todorov, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from physvision.control.cost import Objective, Residuals
from physvision.core import State, Trajectory
from physvision.core.checks import check_count
from physvision.kernels import precision
from physvision.kernels.launching import LaunchCache, RecordedLaunch, argument
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.physics.feedback import Bounds, ControlBounds, FeedbackPolicy, control_bounds
from physvision.physics.properties import Properties


class BackwardPass(NamedTuple):
    """Result of the backward pass.

    Attributes:
        change: Change of each step's feedforward control.
        gains: Feedback gains of each step.
        expected_decrease: Decrease of the cost that the change promises.
        status: If true, the quadratic problem has a solution.
    """

    change: Float[Tensor, "batch steps nu"]
    gains: Float[Tensor, "batch steps nu twice_nv"]
    expected_decrease: Float[Tensor, " batch"]
    status: Bool[Tensor, " batch"]


def backward_pass(
    engine: Engine,
    trajectory: Trajectory,
    controls: Float[Tensor, "batch steps nu"],
    residuals: Residuals,
    bounds: Bounds,
    damping: Float[Tensor, " batch"],
    properties: Overrides = None,
) -> BackwardPass:
    """Solve the linear-quadratic problem about a trajectory, in one launch for all worlds.

    Args:
        engine: Engine whose motion is linearized.
        trajectory: Trajectory about which it is linearized.
        controls: Controls that lead along the trajectory.
        residuals: Residuals of the cost about the trajectory.
        bounds: Bounds of the controls.
        damping: Number added to the cost's curvature in the controls, which makes changes smaller.
        properties: Overrides of the engine's properties, as in `Engine.rollout`.
    """
    A, B = engine.linearize(trajectory, controls, properties)
    inputs = [A, B, *residuals[:-1], controls, *bounds, damping]
    batch, steps, n, m = B.shape
    options = {"dtype": torch.float64, "device": B.device}
    outputs = [torch.empty(*sizes, **options) for sizes in ((batch, steps, m), (batch, steps, m, n), (batch,))]
    tensors = [
        *(value.to(torch.float64) for value in inputs),
        *outputs,
        torch.empty(batch, dtype=torch.int32, device=B.device),
    ]
    key = (residuals.control_weight, *((tensor.shape, tensor.stride()) for tensor in tensors))
    launch = _LAUNCH_CACHE.take(key, B.device, lambda: _launch(tensors, residuals.control_weight))
    for index, tensor in enumerate(tensors):
        launch.set_memory(index, tensor)
    launch.run()
    _LAUNCH_CACHE.give_back(key, B.device, launch)
    change, gains, expected_decrease = (output.to(controls) for output in outputs)
    return BackwardPass(change, gains, expected_decrease, tensors[-1] == 1)


_LAUNCH_CACHE = LaunchCache()


def _launch(tensors: list[Tensor], control_weight: float) -> RecordedLaunch:
    """Prepare the launch for tensors of these shapes."""
    kernels, B = _kernels(), tensors[1]
    batch, steps, n, m = B.shape
    num_scalars, num_integers = kernels.layout.lengths(n, m)
    scalars = torch.zeros(batch, -(-num_scalars // 4) * 4, dtype=torch.float64, device=B.device)
    integers = torch.empty(batch, num_integers, dtype=torch.int32, device=B.device)
    workspace = [argument(scalars), argument(scalars.unflatten(1, (-1, 4)), kernels.four), argument(integers)]
    inputs = [*map(argument, tensors), control_weight, *workspace]
    microseconds = 0.001 * batch * steps * (n + m) ** 3
    return RecordedLaunch(kernels.backward, batch, inputs, B.device, microseconds, (scalars, integers))


def _kernels() -> Any:
    precision.start_warp()
    from physvision.control import kernels

    return kernels


@dataclass(frozen=True)
class IlqrSettings:
    """Settings of the line search and of the damping. Defaults are those of Tassa's program, but for the step sizes.

    Attributes:
        step_sizes: Step sizes that are tried together if the whole change is not good enough; more of them find better
            steps and take more time.
        sufficient_decrease: Fraction of the expected decrease that accepts the whole change; a larger one searches
            more.
        initial_damping: Initial damping of Q_uu; a larger one starts with smaller changes.
        damping_growth: Factor of the damping after a failed iteration.
        damping_decay: Divisor of the damping after a successful iteration.
        min_damping: Smallest damping.
        max_damping: Largest damping, beyond which a world is given up.
        rounding: Expected decrease, relative to the cost, below which it is rounding and the search has converged.
    """

    step_sizes: tuple[float, ...] = (0.6, 0.3, 0.1, 0.03)
    sufficient_decrease: float = 0.5
    initial_damping: float = 1e-6
    damping_growth: float = 4.0
    damping_decay: float = 3.0
    min_damping: float = 1e-12
    max_damping: float = 1e10
    rounding: float = 1e-15


_SETTINGS = IlqrSettings()


@dataclass(frozen=True)
class IlqrResult:
    """Result of a trajectory optimization, beside its policy.

    Attributes:
        cost: Cost of each world's controls.
        converged: If true, the last iteration lowered the cost by less than the tolerance, or none was to gain.
        iterations: Number of iterations that lowered the cost.
        cost_history: Cost before the first iteration and after each.
    """

    cost: Float[Tensor, " batch"]
    converged: Bool[Tensor, " batch"]
    iterations: Int[Tensor, " batch"]
    cost_history: Float[Tensor, "iterations batch"]


@torch.no_grad()
def ilqr(
    engine: Engine,
    state: State,
    controls: Float[Tensor, "batch steps nu"],
    cost: Objective,
    bounds: ControlBounds = None,
    *,
    iterations: int = 100,
    tolerance: float = 1e-6,
    properties: Overrides = None,
    settings: IlqrSettings = _SETTINGS,
) -> tuple[FeedbackPolicy, IlqrResult]:
    """Optimize the controls of each world from an initial state.

    Method: Gauss–Newton second-order, with control bounds, a line search and damping. Use it for smooth engines and
    horizons of up to some hundred steps; it assumes that `Engine.linearize` is exact, and finds a local minimum.

    Args:
        engine: Engine of the mechanism.
        state: Initial state of each world.
        controls: Initial controls; those outside the bounds are clipped.
        cost: Cost function.
        bounds: Smallest and largest controls, numbers or (nu,), equal for a constant one, or both as a tensor (nu, 2),
            such as `engine.control_range`; None for no bounds.
        iterations: Largest number of iterations.
        tolerance: Relative decrease of the cost in an iteration below which a world has converged.
        properties: Overrides of the engine's properties, as in `Engine.rollout`.
        settings: Settings of the line search and of the damping.

    Raises:
        InputError: The bounds are no pair, or in the wrong order.
    """
    check_count("iterations", iterations)
    limits = control_bounds(bounds, engine.nu, controls)
    controls = controls.clamp(limits.low, limits.high)
    overrides = None if properties is None else engine.checked(properties, state.batch)
    trajectory = engine.rollout(state, controls.shape[1], controls, overrides)
    best = _Candidate(controls, trajectory, cost.value(trajectory, controls))
    search = _LineSearch(engine, cost, limits, overrides, settings)
    # Scalars of each world are in NumPy, which is faster with so few.
    value = best.costs()
    damping = np.full(state.batch, settings.initial_damping)
    active, history = np.isfinite(value), [best.value]
    successes = np.zeros(state.batch, dtype=np.int64)
    for _ in range(iterations):
        if not active.any():
            break
        residuals = cost.residuals(engine, best.trajectory, best.controls)
        rho = torch.from_numpy(damping).to(best.value.device)
        step = backward_pass(engine, best.trajectory, best.controls, residuals, limits, rho, overrides)
        expected, solved = step.expected_decrease.cpu().numpy(), step.status.cpu().numpy()
        active = active & ~(solved & (expected <= settings.rounding * value))
        candidate = search.run(best, step, value, expected, active & solved)
        new_value = candidate.costs()
        better = active & solved & (new_value < value)
        finished = better & (value - new_value <= tolerance * value)
        best = best.where(better, candidate)
        value = best.costs()
        decayed = np.maximum(damping / settings.damping_decay, settings.min_damping)
        damping = np.where(better, decayed, damping * settings.damping_growth)
        successes += better
        history.append(best.value)
        active = active & ~finished & (damping <= settings.max_damping)
    residuals = cost.residuals(engine, best.trajectory, best.controls)
    undamped = best.value.new_zeros(state.batch)
    gains = backward_pass(engine, best.trajectory, best.controls, residuals, limits, undamped, overrides).gains
    converged = torch.from_numpy(np.isfinite(value) & ~active).to(undamped.device)
    improvements = torch.from_numpy(successes).to(undamped.device)
    return best.policy(gains), IlqrResult(best.value, converged, improvements, torch.stack(history))


class _Candidate(NamedTuple):
    """Controls, their trajectory and its cost."""

    controls: Tensor
    trajectory: Trajectory
    value: Tensor

    def policy(self, gains: Tensor) -> FeedbackPolicy:
        """Return these controls with feedback gains."""
        return FeedbackPolicy(self.controls, self.trajectory, gains)

    def costs(self) -> NDArray[Any]:
        """Return the cost of each world as a NumPy array."""
        return self.value.cpu().numpy()

    def rows(self, worlds: Tensor) -> _Candidate:
        """Return the candidates of some worlds."""
        path = self.trajectory
        trajectory = Trajectory(path.q[worlds], path.v[worlds], None, path.dt)
        return _Candidate(self.controls[worlds], trajectory, self.value[worlds])

    def where(self, better: NDArray[np.bool_], new: _Candidate) -> _Candidate:
        """Return the new candidate in worlds where it is better, this one elsewhere."""
        if better.all():
            return new
        flags = torch.from_numpy(better).to(self.value.device)
        mask, path, new_path = flags[:, None, None], self.trajectory, new.trajectory
        q, v = torch.where(mask, new_path.q, path.q), torch.where(mask, new_path.v, path.v)
        controls = torch.where(mask, new.controls, self.controls)
        return _Candidate(controls, Trajectory(q, v, None, path.dt), torch.where(flags, new.value, self.value))

    def overwrite(self, worlds: Tensor, new: _Candidate) -> None:
        """Replace the candidates of some worlds."""
        path, new_path = self.trajectory, new.trajectory
        self.controls[worlds], self.value[worlds] = new.controls, new.value
        path.q[worlds], path.v[worlds] = new_path.q, new_path.v


class _LineSearch:
    """Search over step sizes: first the whole change, or all step sizes at once if most worlds needed shorter ones."""

    def __init__(
        self, engine: Engine, cost: Objective, limits: Bounds, properties: Properties | None, settings: IlqrSettings
    ) -> None:
        self._engine, self._cost, self._limits, self._properties = engine, cost, limits, properties
        self._settings, self._all_at_once = settings, False

    def run(
        self,
        best: _Candidate,
        step: BackwardPass,
        value: NDArray[Any],
        expected: NDArray[Any],
        active: NDArray[np.bool_],
    ) -> _Candidate:
        """Return the candidates of the whole change, or of the best step size in worlds where that is not enough."""
        policy, step_sizes = best.policy(step.gains), self._settings.step_sizes
        first_sizes = (1.0, *step_sizes) if self._all_at_once else (1.0,)
        whole_value, candidate = self._evaluate(policy, step.change, first_sizes, self._properties)
        insufficient = active & ~(value - whole_value >= self._settings.sufficient_decrease * expected)
        all_at_once, self._all_at_once = self._all_at_once, 2 * insufficient.sum() > active.sum()
        if all_at_once or not insufficient.any():
            return candidate
        rows = torch.from_numpy(insufficient.nonzero()[0]).to(best.value.device)
        properties = None if self._properties is None else self._properties.select_worlds(rows, self._engine.properties)
        row_policy = best.rows(rows).policy(step.gains[rows])
        _, shorter = self._evaluate(row_policy, step.change[rows], step_sizes, properties)
        whole = candidate.rows(rows)
        candidate.overwrite(rows, whole.where(shorter.costs() < whole.costs(), shorter))
        return candidate

    def _evaluate(
        self, policy: FeedbackPolicy, change: Tensor, step_sizes: tuple[float, ...], properties: Properties | None
    ) -> tuple[NDArray[Any], _Candidate]:
        """Return the costs of the first step size, and the best candidate of all of them in each world."""
        start = policy.trajectory.state(0)
        sizes = _tensor(step_sizes, change.dtype, change.device)
        path, controls = self._engine.rollout_feedback(start, policy, self._limits, change, sizes, properties)
        candidate = _Candidate(controls, path, self._cost.value(path, controls))
        if len(step_sizes) == 1:
            return candidate.costs(), candidate
        values = candidate.value.unflatten(0, (start.batch, len(step_sizes)))
        rows = torch.arange(start.batch, device=values.device) * len(step_sizes) + values.argmin(1)
        return values[:, 0].cpu().numpy(), candidate.rows(rows)


@cache
def _tensor(step_sizes: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(step_sizes, dtype=dtype, device=device)
