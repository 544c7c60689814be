"""Fit of the clip: states and physical parameters of the engine's motion closest to the encoder's observations.

The clip is cut into windows, of which a bounded number is kept, evenly spaced; their states and the parameters of the
clip are fitted together (`estimation.window_fit`). Each frame's state is that of the fit to the window that ends there,
and, where later frames are at hand, to the window that ends half a window later.

A parameter is kept at the checkpoint's value where it is within some standard deviations of it: with B these and A the
others, the estimates z_A follow from z_B = 0 by conditioning the Gaussian of all, z_A − Σ_AB Σ_BB⁻¹ z_B, with the
covariance Σ_AA − Σ_AB Σ_BB⁻¹ Σ_BA. So a clip of the checkpoint's physics is predicted by exactly that physics.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Coordinates, State, Trajectory
from physvision.estimation.window_fit import WindowEstimate, WindowProblem
from physvision.models import PredictiveAutoencoder
from physvision.prediction.clip_parameters import ParameterEstimate, clip_parameters
from physvision.prediction.observation_noise import ObservationNoise
from physvision.prediction.settings import FIT_SETTINGS

# Fraction of a normal distribution within one standard deviation.
_ONE_STD = 0.683


@dataclass(frozen=True)
class FittedStates:
    """States of consecutive frames by the fit.

    Attributes:
        filtered: State of each frame, from frames up to it.
        filtered_covariance: Covariance of the observed coordinates' positions and velocities.
        smoothed: State of each frame, also from later frames of the batch.
        smoothed_std: Standard deviations of the smoothed state.
        is_explained: Mask of the frames whose window the engine's motion explains; the encoder's state elsewhere.
    """

    filtered: State
    filtered_covariance: Float[Tensor, "frames phase phase"]
    smoothed: State
    smoothed_std: State
    is_explained: Tensor


class ClipFit:
    """States and parameters of a clip that comes in batches of frames.

    Attributes:
        parameters: Parameters that clips of this kind may determine.
        windows: Observed positions of the windows that were kept, and the number of the first frame of each.
        estimate: Fit of these windows; None before there is a whole one.
        noise: Errors of the encoder's observations.
    """

    def __init__(self, model: PredictiveAutoencoder) -> None:
        """Start the fit of a clip.

        Args:
            model: Model with a scene, whose engine has parameters that a clip may determine.
        """
        parameters, scene, settings = clip_parameters(model), model.scene, FIT_SETTINGS
        assert parameters is not None
        assert scene is not None
        self.parameters, self.settings, self.engine = parameters, settings, model.engine
        units = list(scene.coordinates.values())
        self.angles = "px" not in units
        per_object = [index for index, unit in enumerate(units) if self.angles or unit == "px"]
        self.coordinates = tuple(
            item * len(units) + index for item in range(len(scene.objects)) for index in per_object
        )
        self.per_object, count = len(per_object), len(self.coordinates)
        self.space = Coordinates(count, tuple(range(count)) if self.angles else ())
        self.length = settings.angle_window if self.angles else settings.pixel_window
        self.recent: tuple[Tensor, Tensor] | None = None
        self.windows: list[tuple[int, Tensor, Tensor]] = []
        self.estimate: WindowEstimate | None = None
        self.noise = ObservationNoise(scene, count, settings, self.angles)
        self.z = torch.zeros(len(parameters), dtype=torch.float64)
        self.covariance = torch.zeros(len(parameters), len(parameters), dtype=torch.float64)
        self._is_fitted = torch.zeros(len(parameters), dtype=torch.bool)
        self._frames, self._stride, self._next_fit = 0, self.length, self.length
        # First frames of the windows of the estimate, and the number of windows that it does not explain.
        self._first_frames: list[int] = []
        self._unexplained = 0
        self._future: tuple[tuple[int, int], tuple[Trajectory, Trajectory]] | None = None

    @torch.no_grad()
    def update(self, observed: State, confidence: Tensor) -> FittedStates:
        """Add consecutive frames; fit parameters if enough frames are new, and states of these frames.

        Args:
            observed: States that the encoder estimates.
            confidence: Confidence in each object, 0 to 1; an object without any is not observed.
        """
        coordinates = list(self.coordinates)
        q, v = (part[:, coordinates].double().cpu() for part in (observed.q, observed.v))
        is_hidden = (confidence.cpu() < self.settings.min_confidence).repeat_interleave(self.per_object, 1)
        encoder_q, q = q, torch.where(is_hidden, torch.nan, q) if is_hidden.shape == q.shape else q
        earlier = 0
        if self.recent is not None:
            earlier = len(self.recent[0])
            q, v = torch.cat([self.recent[0], q]), torch.cat([self.recent[1], v])
        first = self._frames - earlier
        self._frames += len(q) - earlier
        self._keep_windows(q, v, first)
        if self._frames >= self._next_fit:
            self.fit()
        fitted = self._states(q, v, encoder_q)
        self.recent = (q[-self.length :], v[-self.length :])
        return fitted

    def _keep_windows(self, q: Tensor, v: Tensor, first: int) -> None:
        """Keep whole windows that begin at multiples of the stride; double it when there are too many."""
        first_frame = self.windows[-1][0] + self._stride if self.windows else 0
        while first_frame + self.length <= first + len(q):
            part = slice(first_frame - first, first_frame - first + self.length)
            self.windows.append((first_frame, q[part], v[part]))
            first_frame += self._stride
            if len(self.windows) > self.settings.max_windows:
                self._stride *= 2
                self.windows = [window for window in self.windows if window[0] % self._stride == 0]
                first_frame = self.windows[-1][0] + self._stride

    @torch.no_grad()
    def fit(self) -> None:
        """Fit the windows that were kept, and decide which parameters the clip contradicts."""
        if not self.windows:
            return
        settings = self.settings
        self._next_fit = math.ceil(settings.refit_ratio * self._frames)
        q = torch.stack([window[1] for window in self.windows])
        self.noise.measure(q)
        problem = self._problem(q)
        guesses = torch.stack([self._guesses(*window[1:], 0) for window in self.windows], 1)
        estimate = self._continue_fit(problem, guesses) or self._search(problem, guesses)
        estimate = self._calibrate_noise(problem, estimate)
        self.estimate, self._first_frames, self._future = estimate, [window[0] for window in self.windows], None
        self._unexplained = self._count_unexplained(problem, estimate)
        self._select(estimate)

    def _continue_fit(self, problem: WindowProblem, guesses: Tensor) -> WindowEstimate | None:
        """Fit from the estimate so far; None if there is none, or if it leaves more windows unexplained than before."""
        previous = self.estimate
        if previous is None:
            return None
        x, rows = self._cheapest(problem, guesses, previous.z), dict(zip(self._first_frames, previous.x, strict=True))
        for row, (begin, *_) in enumerate(self.windows):
            x[row] = rows.get(begin, x[row])
        estimate = problem.fit(x, previous.z, self.settings.joint_iterations)
        if self._count_unexplained(problem, estimate) > self._unexplained:
            x = self._renew_states(problem, guesses, estimate)
            estimate = problem.fit(x, estimate.z, self.settings.joint_iterations)
        return estimate if self._count_unexplained(problem, estimate) <= self._unexplained else None

    def _search(self, problem: WindowProblem, guesses: Tensor) -> WindowEstimate:
        """Fit from several guesses of the parameters, and return the best."""
        # Walls that a disc seems to turn at are a guess: a disc may also have come to rest, or met another one there.
        starts = [torch.zeros_like(self.z), self.parameters.first_guess(problem.observed)]
        starts = starts if bool((starts[0] != starts[1]).any()) else starts[:1]
        estimates = [self._fit_from(problem, guesses, z) for z in starts]
        return min(estimates, key=lambda item: float(item.cost.sum() + 0.5 * item.z.square().sum()))

    def _fit_from(self, problem: WindowProblem, guesses: Tensor, z: Tensor) -> WindowEstimate:
        """Fit from first guesses; each round starts anew the states that the parameters so far do not explain."""
        estimate = problem.fit(self._cheapest(problem, guesses, z), z, self.settings.joint_iterations)
        for _ in range(self.settings.rounds - 1):
            x = self._renew_states(problem, guesses, estimate)
            estimate = problem.fit(x, estimate.z, self.settings.joint_iterations)
        return self._fit_without_unexplained(problem, guesses, estimate)

    def _renew_states(self, problem: WindowProblem, guesses: Tensor, estimate: WindowEstimate) -> Tensor:
        """Cheapest states of all windows: first guesses, those of a fit, and where the window before leads on."""
        ends = torch.cat([part[:, -1][:, list(self.coordinates)] for part in estimate.motion], 1)
        q, v = problem.rollout(ends, estimate.z.expand(len(ends), -1), 1)
        following = torch.cat([part[:-1, -1][:, list(self.coordinates)] for part in (q, v)], 1)
        following = torch.cat([estimate.x[:1], following])
        return self._cheapest(problem, torch.cat([guesses, estimate.x[None], following[None]]), estimate.z)

    def _fit_without_unexplained(
        self, problem: WindowProblem, guesses: Tensor, estimate: WindowEstimate
    ) -> WindowEstimate:
        """Fit parameters without the windows that they leave unexplained; to half of all windows at least.

        A window without a motion, be it because a hand came in or because its search went wrong, says nothing of
        parameters; whether it has one is then judged at the parameters of the others.
        """
        explained, half = self._explained_windows(problem, estimate), (len(estimate.cost) + 1) // 2
        if len(explained) == len(estimate.cost):
            return estimate
        start = torch.zeros_like(estimate.z)
        if len(explained) < half:
            explained, start = estimate.cost.argsort()[:half], estimate.z
        part = problem.select(explained).fit(estimate.x[explained], start, 10)
        x = self._renew_states(problem, guesses, replace(estimate, z=part.z))
        return problem.fit(x, part.z, self.settings.joint_iterations, part.covariance)

    def _explained_windows(self, problem: WindowProblem, estimate: WindowEstimate) -> Tensor:
        """Rows of the windows that a motion explains so well that they take part in the fit of parameters."""
        limit = self.settings.max_fitted_cost * problem.observed.isfinite().sum((1, 2))
        return (estimate.cost < limit).nonzero()[:, 0]

    def _count_unexplained(self, problem: WindowProblem, estimate: WindowEstimate) -> int:
        return len(estimate.cost) - len(self._explained_windows(problem, estimate))

    def _select(self, estimate: WindowEstimate) -> None:
        """Condition on the checkpoint's values of the parameters that the clip does not contradict; see the module."""
        std = estimate.covariance.diagonal().sqrt()
        is_fitted = (estimate.z.abs() > self.settings.min_deviation * std) & self._is_determined(estimate)
        self.z, self.covariance = torch.zeros_like(self.z), torch.zeros_like(self.covariance)
        gain = estimate.covariance[is_fitted][:, ~is_fitted] @ torch.linalg.pinv(
            estimate.covariance[~is_fitted][:, ~is_fitted]
        )
        self.z[is_fitted] = estimate.z[is_fitted] - gain @ estimate.z[~is_fitted]
        block = estimate.covariance[is_fitted][:, is_fitted] - gain @ estimate.covariance[~is_fitted][:, is_fitted]
        index = is_fitted.nonzero()[:, 0]
        self.covariance[index[:, None], index] = block
        self._is_fitted = is_fitted

    def _is_determined(self, estimate: WindowEstimate) -> Tensor:
        return estimate.covariance.diagonal().sqrt() < self.settings.max_relative_std

    def _calibrate_noise(self, problem: WindowProblem, estimate: WindowEstimate) -> WindowEstimate:
        """Measure errors by the residuals of the windows that a fit explains, and fit these again with them."""
        explained = self._explained_windows(problem, estimate)
        if 2 * len(explained) < len(estimate.cost):
            return estimate
        valid = problem.observed.isfinite()[explained]
        std = problem.std[explained]
        self.noise.calibrate(estimate.residuals[explained], std, valid, estimate.x.shape[1])
        problem = self._problem(problem.observed)
        part = problem.select(explained).fit(estimate.x[explained], estimate.z, 3)
        if len(explained) == len(estimate.cost):
            return part
        return problem.fit(estimate.x, part.z, 3, part.covariance)

    def _problem(self, q: Tensor) -> WindowProblem:
        parameters, std = self.parameters, self.noise.observation_std(q)
        bounds = parameters.low, parameters.high
        return WindowProblem(self.engine, parameters.leaves, q, std, self.coordinates, self.space, *bounds)

    def _guesses(self, q: Tensor, v: Tensor, frame: int) -> Float[Tensor, "guesses unknowns"]:
        """States at a frame: each object has the encoder's velocity, or the step to the next frame.

        An impact just before the frame spoils the first, one just after it the second.
        """
        next_frame = min(frame + 1, len(q) - 1)
        step = self.space.difference(q[frame], q[next_frame])
        forward = torch.where(step.isfinite(), step / self.engine.dt, v[frame]) if next_frame > frame else v[frame]
        position = q[frame].nan_to_num(0.0)
        objects = len(v[frame]) // self.per_object
        choices = itertools.product((False, True), repeat=objects) if not self.angles else ((False,), (True,))
        rows = []
        for choice in choices:
            mask = torch.tensor(choice).repeat_interleave(len(v[frame]) // len(choice))
            rows.append(torch.cat([position, torch.where(mask, forward, v[frame])]))
        return torch.stack(rows)

    @staticmethod
    def _cheapest(
        problem: WindowProblem, candidates: Float[Tensor, "candidates windows unknowns"], z: Tensor
    ) -> Tensor:
        """Candidate of each window with the smallest cost."""
        costs = problem.costs_of(candidates, z)
        return candidates[costs.argmin(0), torch.arange(candidates.shape[1])]

    def _states(self, q: Tensor, v: Tensor, encoder_q: Tensor) -> FittedStates:
        """Fit the window that ends at each of the last frames, with the encoder's positions `encoder_q`."""
        settings, length = self.settings, self.length
        ends = torch.arange(len(q) - len(encoder_q), len(q))
        starts = (ends - length + 1).clamp_min(0)
        rows = starts[:, None] + torch.arange(length)
        observed = torch.where((rows <= ends[:, None])[..., None], q[rows.clamp_max(len(q) - 1)], torch.nan)
        problem = self._problem(observed)
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        guesses = torch.stack([self._guesses(q[: end + 1], v, start) for start, end in pairs], 1)
        x = self._cheapest(problem, guesses, self.z)
        count = len(self.coordinates)
        estimate = problem.fit(x, self.z, settings.state_iterations, self.covariance)
        # The motion of the window before, one frame on, is another guess.
        moves = (starts[1:] - starts[:-1]).tolist()
        phase = torch.cat([part[:-1][:, :, list(self.coordinates)] for part in estimate.motion], -1)
        shifted = torch.cat([estimate.x[:1], phase[torch.arange(len(moves)), moves]]) if moves else estimate.x
        costs = problem.costs_of(shifted[None], self.z)[0]
        if bool((costs < 0.5 * estimate.cost).any()):
            x = torch.where((costs < estimate.cost)[:, None], shifted, estimate.x)
            estimate = problem.fit(x, self.z, settings.state_iterations, self.covariance)
        index = ends - starts
        numbers = observed.isfinite().sum((1, 2))
        is_explained = (estimate.cost < settings.max_mean_cost * numbers) & (index > 0)
        row = torch.arange(len(ends))
        later_window = (row + length // 2).clamp_max(len(row) - 1)
        later_window = torch.where(is_explained[later_window], later_window, row)
        frame = ends - starts[later_window]
        filtered, covariance = self._window_state(estimate, row, index, encoder_q, v[ends], is_explained)
        smoothed, smoothed_covariance = self._window_state(
            estimate, later_window, frame, encoder_q, v[ends], is_explained[later_window]
        )
        std = smoothed_covariance.diagonal(dim1=1, dim2=2).clamp_min(0).sqrt()
        smoothed_std = self._full_state(std[:, :count], std[:, count:])
        return FittedStates(filtered, covariance, smoothed, smoothed_std, is_explained)

    def _window_state(
        self, estimate: WindowEstimate, row: Tensor, index: Tensor, q: Tensor, v: Tensor, is_explained: Tensor
    ) -> tuple[State, Tensor]:
        """State in a frame of windows with its covariance; the encoder's where a window is not explained."""
        coordinates = list(self.coordinates)
        fitted = [part[row, index][:, coordinates] for part in estimate.motion]
        q, v = (
            torch.where(is_explained[:, None], new, old.nan_to_num(0.0))
            for new, old in zip(fitted, (q, v), strict=True)
        )
        jacobian = estimate.motion_jacobian[row, index]
        covariance = jacobian @ estimate.joint_covariance()[row] @ jacobian.mT
        # The encoder's estimate from one window: positions with its noise, velocities by differences of positions.
        std = self.noise.std
        encoder_variance = torch.cat([std, std / self.engine.dt]).square()
        covariance = torch.where(is_explained[:, None, None], covariance, torch.diag(encoder_variance))
        return self._full_state(q, v), covariance

    def _full_state(self, q: Tensor, v: Tensor) -> State:
        """State of all coordinates; those that are not observed rest at zero."""
        state = State(*(part.new_zeros(len(part), self.engine.nq) for part in (q, v)))
        state.q[:, list(self.coordinates)], state.v[:, list(self.coordinates)] = q, v
        return state

    def leaves(self, worlds: int = 1) -> dict[str, Tensor] | None:
        """Leaves of the engine's properties that the clip contradicts; None if there are none."""
        return self.parameters.leaves(self.z.expand(worlds, -1)) if bool(self._is_fitted.any()) else None

    def spread(self, start: State, covariance: Tensor, path: Trajectory, count: int) -> Trajectory:
        """Standard deviations along motions: those of an ensemble, which the state, the parameters and chaos allow.

        Each is half the width that holds 68 % of `count` motions, which a few motions with another impact
        do not widen.

        Args:
            start: States that the motions start from, one a row.
            covariance: Their covariance, of the observed coordinates' positions and velocities.
            path: Motions from these states by the parameters in use.
            count: Number of draws of each.
        """
        rows, generator, coordinates = len(start.q), torch.Generator().manual_seed(0), list(self.coordinates)
        normal = torch.randn(count, rows, covariance.shape[-1], 1, generator=generator, dtype=torch.float64)
        draws = (_root(covariance) @ normal)[..., 0]
        noise = torch.randn(count, len(self.z), generator=generator, dtype=torch.float64) @ _root(self.covariance).mT
        q, v = (part.double().repeat(count, 1, 1) for part in (start.q, start.v))
        q[..., coordinates] += draws[..., : len(coordinates)]
        v[..., coordinates] += draws[..., len(coordinates) :]
        z = (self.z + noise).clamp(self.parameters.low, self.parameters.high).repeat_interleave(rows, 0)
        states = State(q.flatten(0, 1), v.flatten(0, 1))
        sampled = self.engine.rollout(states, path.steps, properties=self.parameters.leaves(z))
        stds = []
        for center, part in ((path.q, sampled.q), (path.v, sampled.v)):
            distances = (part.nan_to_num(0.0).unflatten(0, (count, rows)) - center).abs()
            stds.append(distances.quantile(_ONE_STD, dim=0).float())
        return Trajectory(*stds, dt=path.dt)

    @torch.no_grad()
    def future(self, steps: int) -> tuple[Trajectory, Trajectory]:
        """Most likely motion after the last frame, a batch of one, and the standard deviations of its states."""
        key = (self._frames, steps)
        if self._future is None or self._future[0] != key:
            assert self.recent is not None
            q, v = self.recent
            states = self._states(q, v, q[-1:])
            path = self.engine.rollout(states.filtered, steps, properties=self.leaves())
            spread = self.spread(states.filtered, states.filtered_covariance, path, self.settings.ensemble)
            ratio = self.settings.calibration
            std = Trajectory(ratio * spread.q, ratio * spread.v, dt=path.dt)
            self._future = key, (Trajectory(path.q.float(), path.v.float(), dt=path.dt), std)
        return self._future[1]

    def estimates(self) -> tuple[ParameterEstimate, ...]:
        """Parameters of the clip so far."""
        estimate = self.estimate
        if estimate is None:
            return self.parameters.estimates(self.z, torch.full_like(self.z, math.nan), self.z)
        std = self.settings.calibration * estimate.covariance.diagonal().sqrt()
        std = torch.where(self._is_determined(estimate), std, math.nan)
        return self.parameters.estimates(estimate.z, std, self.z)


def _root(covariance: Tensor) -> Tensor:
    """Square root of a covariance."""
    values, vectors = torch.linalg.eigh(covariance)
    return vectors * values.clamp_min(0).sqrt()[..., None, :]
