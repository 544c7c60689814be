"""Properties and state of a trial from the motion of an engine closest to its tracks.

Unknowns are the state at the first frame and the properties, with their prior z ~ N(0, 1) in units of its standard
deviation. The most likely ones minimize

    Σ ρ((q_k − q̂_k) / σ_k) + ½ |z|²

with ρ quadratic for small errors and linear beyond, by the Levenberg–Marquardt method with finite differences: an
engine has no forward mode, but simulates all perturbed worlds at once.
The minimum moves by −(JᵀJ)⁻¹ Jᵀ δ with errors δ of what is read, J the derivative of the terms, so its covariance is
(JᵀJ)⁻¹ Jᵀ R J (JᵀJ)⁻¹ with R that of δ: one for velocities and priors, and for positions, in units of σ,

    R_kl = a + (1 − a) c^|k − l|

between frames k and l, since errors of perception last: a part for all frames, the rest with correlation c from one
frame to the next. With independent errors it is the inverse of JᵀJ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Coordinates, InputError, State
from physvision.physics.engine import Engine

# Property values by name, and their standard deviations by name.
Priors = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]

# Samples of the parabola that first guesses are read from.
_START_SECONDS, _MIN_START_SAMPLES = 0.21, 4


@dataclass(frozen=True)
class TrackFitSettings:
    """Tuning numbers of fits to tracks.

    Attributes:
        iterations: Number of Levenberg–Marquardt steps; more take longer and help where the first guess is poor.
        outlier: Error, in standard deviations, from which its cost grows linearly.
        step: Relative step of finite differences.
        damping: Initial damping; raising it makes first steps more careful.
        velocity_std: Prior standard deviation of the velocities at the first frame, 1/s.
        constant_error: Part of the variance of errors of positions that is the same in all frames.
        correlation: Correlation of the rest of these errors from one frame to the next.
        growths: Ways to the fit of all frames: numbers of first frames that are fitted before, ascending, each fit from
            the one before. Impacts give the cost many minima; a motion that is right up to an impact starts near the
            right one, and of several ways, which end in different minima, the cheapest motion of each world counts.
    """

    iterations: int = 10
    outlier: float = 2.5
    step: float = 1e-4
    damping: float = 1e-2
    velocity_std: float = 10.0
    constant_error: float = 0.0
    correlation: float = 0.0
    growths: tuple[tuple[int, ...], ...] = ((),)


@dataclass(frozen=True)
class MotionTracks:
    """Positions that are read in some of consecutive frames, and perhaps a velocity in the last one.

    Attributes:
        positions: Positions in the frames that are read.
        std: Their standard deviations.
        times: Indices of these frames, ascending.
        count: Number of all frames.
        velocity: Velocity in the last frame.
        velocity_std: Its standard deviation.
        absolute: If true, positions and velocity are sums of the engine's coordinates up to each: the directions of
            links rather than the angles between them.
        points: Points in the frames that are read, (x, y), for fits that know where the engine has them.
        points_std: Standard deviation of each coordinate of the points.
        first_velocity: Velocity that was read at the first of them. Fits start from it, and from the slope to the
            second position: of an impact between them either knows one side alone. If not given, they start from a
            parabola through the first positions.
    """

    positions: Float[Tensor, "batch read q"]
    std: Float[Tensor, "batch read q"]
    times: tuple[int, ...]
    count: int
    velocity: Float[Tensor, "batch q"] | None = None
    velocity_std: Float[Tensor, "batch q"] | None = None
    absolute: bool = False
    points: Float[Tensor, "batch read 2"] | None = None
    points_std: float = 1.0
    first_velocity: Float[Tensor, "batch q"] | None = None

    def first(self, count: int) -> MotionTracks:
        """Tracks of the first `count` frames."""
        if count == self.count:
            return self
        read = sum(time < count for time in self.times)
        points = None if self.points is None else self.points[:, :read]
        return replace(
            self,
            positions=self.positions[:, :read],
            std=self.std[:, :read],
            times=self.times[:read],
            count=count,
            velocity=None,
            points=points,
        )


@dataclass(frozen=True)
class FittedMotion:
    """Motion of an engine that is closest to tracks, one world a row.

    Attributes:
        state: State at the last frame.
        state_std: Its standard deviations.
        properties: Most likely properties.
        property_std: Their standard deviations.
        positions: Positions in the frames that were read.
        cost: Cost of the motion and its properties, summed over all numbers that were read: about one for each.
    """

    state: State
    state_std: State
    properties: dict[str, Tensor]
    property_std: dict[str, Tensor]
    positions: Float[Tensor, "batch read q"]
    cost: Float[Tensor, " batch"]


class TrackFit:
    """Fits initial states and properties of an engine's worlds to tracks of its coordinates."""

    def __init__(
        self,
        engine: Engine,
        coordinates: Coordinates,
        leaves: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
        settings: TrackFitSettings | None = None,
        points: Callable[[Tensor, Mapping[str, Tensor]], Tensor] | None = None,
    ) -> None:
        """Choose the model of the motion.

        Args:
            engine: Engine, one step a frame.
            coordinates: Meaning of its positions: number of them, and which are angles.
            leaves: Function from properties of trials to leaves of the engine's properties.
            settings: Tuning numbers.
            points: Function from positions (worlds, read, q) and properties of trials to points (worlds, read, 2).
        """
        self.points = points
        self.engine, self.coordinates, self.leaves = engine, coordinates, leaves
        self.settings = settings or TrackFitSettings()

    @torch.no_grad()
    def __call__(
        self,
        tracks: MotionTracks,
        priors: Priors,
        iterations: int | None = None,
        known: Mapping[str, Tensor] | None = None,
    ) -> FittedMotion:
        """Fit tracks from the first to the last frame.

        Args:
            tracks: Positions in some frames.
            priors: Mean and standard deviation of each property, (batch, …); values stay above a fiftieth of the mean.
            iterations: Number of steps; that of the settings if not given.
            known: Properties of the trials that are not fitted.
        """
        if len(tracks.times) < 2:
            raise InputError(f"tracks: expected two frames or more, got {len(tracks.times)}")
        steps = self.settings.iterations if iterations is None else iterations
        problem = _Problem(self, tracks, priors, known or {})
        ways = product(problem.starts(), self.settings.growths)
        minima = [self._minimum(start, growth, problem, steps) for start, growth in ways]
        cheapest = torch.stack([cost for _, cost, *_ in minima]).argmin(0)
        rows = torch.arange(len(cheapest), device=cheapest.device)
        return problem.result(*(torch.stack(parts)[cheapest, rows] for parts in zip(*minima, strict=True)))

    def _minimum(
        self, x: Tensor, growth: tuple[int, ...], problem: _Problem, steps: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Fit the first frames, more and more, and then all, from `x` on; see `_Problem.descend`."""
        tracks = problem.tracks
        # Two positions determine a motion.
        for count in growth:
            if tracks.times[1] < count < tracks.count:
                x = problem.restricted(tracks.first(count)).descend(x, steps)[0]
        return problem.descend(x, steps)


class _Problem:
    """A batch of tracks whose unknowns are vectors: q and v at the first frame, then properties in units of std."""

    def __init__(self, fit: TrackFit, tracks: MotionTracks, priors: Priors, known: Mapping[str, Tensor]) -> None:
        self.fit, self.tracks = fit, tracks
        self.known = {name: value.double() for name, value in known.items()}
        self.read, self.std = tracks.positions.double(), tracks.std.double()
        self.means, self.stds = ({name: value.double() for name, value in part.items()} for part in priors)
        self.size = self.read.shape[-1]

    def restricted(self, tracks: MotionTracks) -> _Problem:
        """Problem of fewer frames with the same priors."""
        return _Problem(self.fit, tracks, (self.means, self.stds), self.known)

    def starts(self) -> list[Tensor]:
        """First guesses: the first position with one of its likely velocities, at the prior's means."""
        seconds = self.fit.engine.dt * torch.tensor(self.tracks.times).to(self.read)
        if self.tracks.first_velocity is None:
            return [self._guess(*self._parabola(seconds))]
        slope = (self.read[:, 1] - self.read[:, 0]) / (seconds[1] - seconds[0])
        return [self._guess(self.read[:, 0], v) for v in (self.tracks.first_velocity.double(), slope)]

    def _guess(self, q: Tensor, v: Tensor) -> Tensor:
        numbers = sum(mean[0].numel() for mean in self.means.values())
        return torch.cat([q, v, q.new_zeros(len(q), numbers)], 1)

    def _parabola(self, seconds: Tensor) -> tuple[Tensor, Tensor]:
        """Position and velocity at the first frame of a parabola through the first positions."""
        q = self.read.diff(dim=-1, prepend=torch.zeros_like(self.read[..., :1])) if self.tracks.absolute else self.read
        steps = self.fit.coordinates.difference(q[:, :-1], q[:, 1:])
        unwound = torch.cat([q[:, :1], q[:, :1] + steps.cumsum(1)], 1)
        count = max(min(len(seconds), _MIN_START_SAMPLES), int((seconds - seconds[0] <= _START_SECONDS).sum()))
        powers = seconds[:count, None] ** torch.arange(min(3, count)).to(seconds)
        weight = 1.0 / self.std[:, :count].mean(-1, keepdim=True)
        coefficients = torch.linalg.lstsq(powers * weight, unwound[:, :count] * weight).solution
        return coefficients[:, 0], coefficients[:, 1]

    def descend(self, x: Tensor, iterations: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Minimize the cost from `x` on: unknowns, cost, its Jacobian, and the last state with its derivative."""
        cost, residuals, jacobian, final = self.linearize(x)
        damping = torch.full_like(x[:, :1], self.fit.settings.damping)
        for _ in range(iterations):
            normal, gradient = jacobian.mT @ jacobian, (jacobian.mT @ residuals[..., None])[..., 0]
            scaled = normal + torch.diag_embed(damping * normal.diagonal(dim1=1, dim2=2))
            trial = x - torch.linalg.solve_ex(scaled, gradient).result
            outcome = self.linearize(torch.where(trial.isfinite().all(1, True), trial, x))
            better = outcome[0] < cost
            x = torch.where(better[:, None], trial, x)
            cost, residuals, jacobian, final = (
                torch.where(better.reshape(-1, *(1,) * (new.dim() - 1)), new, old)
                for new, old in zip(outcome, (cost, residuals, jacobian, final), strict=True)
            )
            damping = torch.where(better[:, None], 0.2 * damping, 5.0 * damping).clamp(1e-6, 1e4)
        return x, cost, jacobian, final

    def properties(self, x: Tensor) -> dict[str, Tensor]:
        """Values of the properties of some worlds, a multiple of the batch; never near zero."""
        values, at, repeats = {}, 2 * self.size, len(x) // len(self.read)
        for name, mean in self.means.items():
            width, tiles = mean[0].numel(), (repeats, *(1,) * (mean.dim() - 1))
            z = x[:, at : at + width].reshape(len(x), *mean.shape[1:])
            own, std = mean.repeat(tiles), self.stds[name].repeat(tiles)
            values[name], at = torch.maximum(own + std * z, 0.02 * own), at + width
        return values

    def leaves(self, values: Mapping[str, Tensor], worlds: int) -> Mapping[str, Tensor]:
        """Leaves of the engine's properties of some worlds, a multiple of the batch."""
        repeats = worlds // len(self.read)
        known = {name: part.repeat(repeats, *(1,) * (part.dim() - 1)) for name, part in self.known.items()}
        return self.fit.leaves({**values, **known})

    def linearize(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Cost, weighted residuals, their derivative by the unknowns, and the last state with its derivative.

        Residuals beyond the limit k of outliers have the weight k / |r|, held constant in the derivative.
        """
        settings, tracks, (batch, unknowns) = self.fit.settings, self.tracks, x.shape
        offsets = torch.cat([torch.zeros(1, unknowns).to(x), settings.step * torch.eye(unknowns).to(x)])
        worlds = (x + offsets[:, None]).flatten(0, 1)
        start = State(*worlds[:, : 2 * self.size].split(self.size, 1))
        values = self.properties(worlds)
        path = self.fit.engine.rollout(start, tracks.count - 1, properties=self.leaves(values, len(worlds)))
        final = torch.cat([path.q[:, -1], path.v[:, -1]], 1).unflatten(0, (-1, batch))
        predicted, rate = path.q[:, list(tracks.times)], path.v[:, -1]
        points = None if tracks.points is None or self.fit.points is None else self.fit.points(predicted, values)
        if tracks.absolute:
            predicted, rate = predicted.cumsum(-1), rate.cumsum(-1)
        error = self.fit.coordinates.unwind(predicted.unflatten(0, (-1, batch)) - self.read) / self.std
        error = error.flatten(2)
        if tracks.velocity is not None:
            assert tracks.velocity_std is not None
            error = torch.cat([error, (rate.unflatten(0, (-1, batch)) - tracks.velocity) / tracks.velocity_std], -1)
        if points is not None:
            assert tracks.points is not None
            apart = (points.unflatten(0, (-1, batch)) - tracks.points.double()) / tracks.points_std
            error = torch.cat([error, apart.flatten(2)], -1)
        error, limit = error.nan_to_num(1e6, 1e6, -1e6), settings.outlier
        size = error[0].abs()
        cost = torch.where(size <= limit, size.square(), 2.0 * limit * size - limit**2).sum(-1)
        weight = (limit / size.clamp_min(limit)).sqrt()
        unknown = worlds.unflatten(0, (-1, batch))
        prior = unknown[..., self.size : 2 * self.size] / settings.velocity_std
        residuals = torch.cat([weight * error, prior, unknown[..., 2 * self.size :]], -1)
        cost = cost + residuals[0, :, error.shape[-1] :].square().sum(-1)
        jacobian, by_start = (((part[1:] - part[:1]) / settings.step).movedim(0, -1) for part in (residuals, final))
        return cost, residuals[0], jacobian, torch.cat([final[0][..., None], by_start], -1).nan_to_num(0.0, 0.0, 0.0)

    def result(self, x: Tensor, cost: Tensor, jacobian: Tensor, final: Tensor) -> FittedMotion:
        """Fit in units of the quantities."""
        covariance = self._covariance(jacobian)
        variance = (final[..., 1:] @ covariance @ final[..., 1:].mT).diagonal(dim1=1, dim2=2)
        state, deviation = (State(*part.split(self.size, 1)) for part in (final[..., 0], variance.clamp_min(0).sqrt()))
        stds, at = {}, 2 * self.size
        relative = covariance.diagonal(dim1=1, dim2=2).clamp_min(0).sqrt()
        for name, mean in self.means.items():
            width = mean[0].numel()
            stds[name] = self.stds[name] * relative[:, at : at + width].reshape(mean.shape)
            at += width
        start, values = State(*x[:, : 2 * self.size].split(self.size, 1)), self.properties(x)
        path = self.fit.engine.rollout(start, self.tracks.count - 1, properties=self.leaves(values, len(x)))
        present = State(self.fit.coordinates.unwind(state.q), state.v)
        return FittedMotion(present, deviation, values, stds, path.q[:, list(self.tracks.times)], cost)

    def _covariance(self, jacobian: Tensor) -> Float[Tensor, "batch unknowns unknowns"]:
        """Covariance of the unknowns, see above."""
        settings, times = self.fit.settings, torch.tensor(self.tracks.times).to(jacobian)
        inverse = torch.linalg.pinv(jacobian.mT @ jacobian, hermitian=True)
        positions = jacobian[:, : len(times) * self.size].unflatten(1, (len(times), self.size))
        decaying = settings.correlation ** (times - times[:, None]).abs()
        between = settings.constant_error + (1.0 - settings.constant_error) * decaying - torch.eye(len(times)).to(times)
        added = torch.einsum("bkqi,kl,blqj->bij", positions, between, positions)
        return inverse + inverse @ added @ inverse
