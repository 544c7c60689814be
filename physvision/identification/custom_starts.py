"""Starts of the search for a custom scene's motion: random states, cameras and properties, simulated and compared.

Each draw's velocities follow from those in the picture, its camera position from the first stretch of the motion. The
draws whose simulated motion is closest to the tracks become starts.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from physvision.core import State
from physvision.estimation import Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import fit_polynomial
from physvision.identification.model import Evidence
from physvision.identification.scene_names import TrackedPoints
from physvision.identification.view import rotate


@dataclass(frozen=True)
class StartSearch:
    """Random search for starts.

    Attributes:
        evidence: Tracks to match.
        points: Tracked points of the scene.
        plane: Directions of the scene to the right and up in the picture, (2, 3).
        unknowns: Unknowns of the properties.
        property_values: Function from their values to property leaves.
        is_top_view: If true, nothing determines the camera's roll.
    """

    evidence: Evidence
    points: TrackedPoints
    plane: Tensor
    unknowns: Sequence[Unknown]
    property_values: Callable[[Values], dict[str, Tensor]]
    is_top_view: bool

    def observable_coordinates(self, horizon: float) -> tuple[Tensor, Tensor]:
        """Return masks of the initial positions and velocities that change the picture beyond a shift.

        Each coordinate is perturbed in some random states; the camera's position makes up for a shift of everything.
        """
        engine, settings = self.points.engine, self.evidence.settings.custom
        num_velocities, draws = engine.nv, 8
        generators = [torch.Generator().manual_seed(seed) for seed in range(2 * num_velocities)]
        base = torch.stack([self._uniform(generator, -1, 1)[:draws] for generator in generators], 1)
        steps = settings.finite_difference_step * torch.eye(2 * num_velocities, dtype=base.dtype)
        perturbed = torch.cat([base, *(base + step for step in steps)])
        q = engine.integrate(engine.initial_state(len(perturbed), torch.float64).q, perturbed[:, :num_velocities])
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            motion = engine.rollout(State(q, perturbed[:, num_velocities:]), max(2, math.ceil(horizon / engine.dt)))
            times = [0, motion.steps // 2, motion.steps]
            states = State(motion.q[:, times].flatten(0, 1), motion.v[:, times].flatten(0, 1))
            positions = (self.points.positions(states) @ self.plane.T).unflatten(0, (-1, draws, len(times)))
        change = (positions[1:] - positions[:1]) / settings.finite_difference_step
        shift = change.mean((2, 3), keepdim=True)
        parts = change - shift, change
        has_deformation, has_motion = (part.abs().amax((1, 2, 3, 4)) > settings.min_sensitivity for part in parts)
        return has_deformation[:num_velocities], has_motion[num_velocities:]

    def best_starts(
        self, first: int, end: int, horizon: float, position_mask: Tensor
    ) -> tuple[dict[str, Tensor], float]:
        """Return the best draws as values of every unknown, one a row, and the error of the best one, pixels.

        Args:
            first: First sample of the motion.
            end: One past its last sample.
            horizon: Duration that is compared, s.
            position_mask: Mask of the positions that are drawn.
        """
        engine, settings = self.points.engine, self.evidence.settings.custom
        times = (self.evidence.times[first:end] - self.evidence.times[first]).numpy()
        early = np.flatnonzero(times <= horizon * (1 + 1e-9))
        compared_indices = early[
            np.unique(np.linspace(0, len(early) - 1, settings.compared_samples).round().astype(int))
        ]
        observed = self.evidence.observed[first:end].unflatten(1, (-1, 2))
        generator = torch.Generator().manual_seed(0)
        values = {unknown.name: self._draw(unknown, generator) for unknown in self.unknowns}
        scale, displacement, roll = self._draw_scenes(observed, generator)
        displacement = torch.where(position_mask, displacement, 0.0)
        q = engine.integrate(engine.initial_state(settings.draws, torch.float64).q, displacement)
        leaves = self.property_values(values)
        velocities = self._match_velocities(q, leaves, (scale, roll), times, observed, generator)
        simulated = self._simulate(State(q, velocities), leaves, times[compared_indices])
        flipped = simulated * simulated.new_tensor([1.0, -1.0])
        projected = scale[:, None, None, None] * rotate(flipped, roll[:, None, None])
        errors = observed[compared_indices] - projected
        origin = errors.nanmean((1, 2))
        cost = (errors - origin[:, None, None]).square().nanmean((1, 2, 3)).nan_to_num(nan=math.inf, posinf=math.inf)
        features = torch.cat([displacement, 2 * scale.log()[:, None]], 1)
        rows = _distinct_rows(cost, features, settings.starts, settings.min_start_distance)
        values |= {"scale": scale, "roll": roll, "origin": origin}
        values |= {"displacement": displacement, "velocities": velocities}
        return {name: value[rows] for name, value in values.items()}, math.sqrt(float(cost[rows[0]]))

    def _simulate(self, start: State, leaves: dict[str, Tensor], times: np.ndarray) -> Tensor:
        """Return the points in the plane at the engine steps nearest to the times, (draws, times, points, 2), m."""
        engine = self.points.engine
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # some draws diverge
            steps = max(1, math.ceil(times[-1] / engine.dt))
            motion = engine.rollout(start, steps, properties=leaves)
            index = torch.from_numpy(np.minimum(np.rint(times / engine.dt), steps)).long()
            states = State(motion.q[:, index].flatten(0, 1), motion.v[:, index].flatten(0, 1))
            repeated = {name: value.repeat_interleave(len(index), 0) for name, value in leaves.items()}
            positions = self.points.positions(states, repeated) @ self.plane.T
        return positions.unflatten(0, (start.batch, len(index)))

    def _draw_scenes(self, observed: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Draw scales, pixels a meter, displacements of the initial position, and rolls of the camera."""
        engine = self.points.engine
        complete = observed[torch.isfinite(observed).flatten(1).all(1)]
        extent = float((complete.amax(0) - complete.amin(0)).norm(dim=-1).max())
        rotational, radius = self._rotational_coordinates()
        low, high = (0.3 * extent / radius, 10 * extent / radius) if rotational.any() else (extent / 10, extent * 20)
        scale = torch.exp(self._uniform(generator, math.log(low), math.log(high)))
        known_value = self.evidence.known_values.get("scale")
        if known_value is not None:
            max_error = min(0.5, known_value.std / known_value.value)
            scale = known_value.value * (1 + self._uniform(generator, -1, 1) * max_error)
        lengths = (extent / scale)[:, None]
        unit = torch.stack([self._uniform(generator, -1, 1) for _ in range(engine.nv)], 1)
        displacement = torch.where(rotational, math.pi * unit, lengths * unit)
        roll = self._uniform(generator, -math.pi, math.pi) if self.is_top_view else torch.zeros_like(scale)
        return scale, displacement, roll

    def _rotational_coordinates(self) -> tuple[Tensor, float]:
        """Return a mask of the coordinates that turn the points, and the largest radius, m."""
        engine = self.points.engine
        basis = torch.eye(engine.nv, dtype=torch.float64)
        start = engine.initial_state(engine.nv, torch.float64)
        with torch.no_grad():
            forward, center, backward = (
                self.points.positions(State(engine.integrate(start.q, step * basis), start.v)) for step in (1, 0, -1)
            )
        curvature = (forward + backward - 2 * center).norm(dim=2).amax(1)
        # On a circle of radius r, turns by one radian forward and back have the second difference r (2 − 2 cos 1).
        return curvature > 1e-9, max(float(curvature.max()) / (2 - 2 * math.cos(1.0)), 1e-9)

    def _match_velocities(
        self,
        q: Tensor,
        leaves: dict[str, Tensor],
        camera: tuple[Tensor, Tensor],
        times: np.ndarray,
        observed: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Return joint velocities that give those in the picture, with random components that it does not show."""
        engine, step_size = self.points.engine, self.evidence.settings.custom.finite_difference_step
        scale, roll = camera
        count = min(6, len(times))
        positions = observed[:count].flatten(1).numpy()
        valid = np.isfinite(positions).all(1)
        degree = 1 if valid.sum() < 5 else 2
        velocity = fit_polynomial(times[:count][valid], positions[valid], degree)[1].reshape(-1, 2)
        plane_velocity = (
            rotate(torch.from_numpy(velocity).expand(len(q), -1, -1), -roll[:, None]) / scale[:, None, None]
        )
        plane_velocity = plane_velocity * plane_velocity.new_tensor([1.0, -1.0])
        columns = []
        with torch.no_grad():
            for axis in range(engine.nv):
                step = torch.zeros(len(q), engine.nv, dtype=q.dtype)
                step[:, axis] = step_size
                sides = (State(engine.integrate(q, side), torch.zeros_like(step)) for side in (step, -step))
                forward, backward = (self.points.positions(side, leaves) for side in sides)
                columns.append(((forward - backward) @ self.plane.T / (2 * step_size)).flatten(1))
        jacobian = torch.stack(columns, 2)
        inverse = torch.linalg.pinv(jacobian, rtol=0.05)
        velocities = (inverse @ plane_velocity.flatten(1).unsqueeze(-1)).squeeze(-1)
        null_space = torch.eye(engine.nv, dtype=q.dtype) - inverse @ jacobian
        random = torch.stack([self._uniform(generator, -3, 3) for _ in range(engine.nv)], 1)
        return velocities + (null_space @ random.unsqueeze(-1)).squeeze(-1)

    def _draw(self, unknown: Unknown, generator: torch.Generator) -> Tensor:
        """Draw values of an unknown: half of them at its start, half spread out."""
        draws = self.evidence.settings.custom.draws
        start = torch.as_tensor(unknown.start, dtype=torch.float64).expand(draws, *unknown.shape)
        normal = torch.randn(draws, *unknown.shape, generator=generator, dtype=torch.float64)
        at_start = torch.arange(draws).reshape(-1, *[1] * len(unknown.shape)) % 2 == 0
        if unknown.std is not None or (math.isinf(unknown.high) and math.isinf(unknown.low)):
            scattered = start + 0.3 * normal * (unknown.scale if unknown.std is None else unknown.std)
        else:
            scattered = unknown.constrain(unknown.unconstrain(start) + normal)
        return torch.where(at_start, start, scattered)

    def _uniform(self, generator: torch.Generator, low: float, high: float) -> Tensor:
        draws = self.evidence.settings.custom.draws
        return low + (high - low) * torch.rand(draws, generator=generator, dtype=torch.float64)


def _distinct_rows(cost: Tensor, features: Tensor, count: int, min_distance: float) -> Tensor:
    """Return the rows with the smallest cost, no two of them closer than a distance."""
    rows: list[int] = []
    for row in cost.argsort().tolist():
        if not rows or float((features[rows] - features[row]).norm(dim=1).min()) > min_distance:
            rows.append(row)
        if len(rows) == count:
            break
    return torch.tensor(rows)
