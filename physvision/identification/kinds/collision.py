"""Two bodies that collide on a table, seen from above."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.impacts import Impact, find_impact
from physvision.identification.kind_settings import CollisionSettings
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.physics import rigid2d


def candidate_models(evidence: Evidence) -> list[MotionModel]:
    """Return the model of two discs with friction.

    Its mass ratio is that of the initially slower body to the initially faster one.
    """
    settings, dt = evidence.settings.collision, evidence.dt
    indices, times, positions = evidence.samples(settings.min_samples)
    impact = find_impact(times, positions, settings)
    if impact is None:
        raise UnsuitableError("no velocity changes as in an impact")
    velocity_change = impact.after - impact.before
    speed_changes = np.linalg.norm(velocity_change[:2]), np.linalg.norm(velocity_change[2:])
    if min(speed_changes) * 0.2 < 3 * evidence.noise(indices):
        raise UnsuitableError("one of the two objects does not change its motion")
    duration = min(settings.max_duration, settings.max_samples * dt)
    window = np.flatnonzero((times > impact.time - duration) & (times < impact.time + duration))
    first, end = int(window[0]), int(window[-1]) + 1
    impact_time = float(impact.time - times[first])
    unknowns = _unknowns(impact, float(speed_changes[0] / speed_changes[1]), impact_time, settings)
    restitution = unknowns[1].start
    distance = float(np.linalg.norm(impact.positions[2:] - impact.positions[:2]))
    engine = _engine(distance, dt / settings.substeps)
    friction = _TableFriction(engine.dt, math.ceil((times[end - 1] - times[first]) / engine.dt), impact_time, settings)
    first_is_slower = bool(np.linalg.norm(impact.before[:2]) < np.linalg.norm(impact.before[2:]))

    slower, faster = (track.name for track in evidence.tracks[:: 1 if first_is_slower else -1])

    def parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
        ratio = values["mass_ratio"]
        return {"mass_ratio": 1 / ratio if first_is_slower else ratio, "restitution": values["restitution"]}

    return [
        MotionModel(
            "collision", engine, unknowns, partial(_setup, friction), observe_pair, parameters,
            {"mass_ratio": "", "restitution": ""}, int(indices[first]), int(indices[end - 1]) + 1,
            # The contact slides or sticks, and gradients do not cross from one mode to the other: start from both.
            starts={
                "restitution": torch.tensor([restitution, restitution, 0.5, 0.9], dtype=torch.float64),
                "friction": torch.tensor([0.003, 0.2, 0.003, 0.003], dtype=torch.float64),
            },
            state_length_power=1,
            meanings={"mass_ratio": f"{slower} (slower before the impact) over {faster}"},
        )
    ]  # fmt: skip


def _unknowns(impact: Impact, mass_ratio: float, impact_time: float, settings: CollisionSettings) -> list[Unknown]:
    before, after = impact.before, impact.after
    center_offset = impact.positions[2:] - impact.positions[:2]
    distance = float(np.linalg.norm(center_offset))
    normal = center_offset / np.linalg.norm(center_offset)
    approach_speed = float((before[:2] - before[2:]) @ normal)
    separation_speed = float((after[2:] - after[:2]) @ normal)
    restitution = min(max(separation_speed / max(approach_speed, 1e-9), 0.05), 0.97)
    speed = float(max(np.linalg.norm(before[:2]), np.linalg.norm(before[2:])))
    start = impact.positions - before * impact_time
    return [
        Unknown("mass_ratio", mass_ratio, low=0.0),
        Unknown("restitution", restitution, low=0.0, high=1.0),
        Unknown("contact_distance", distance, low=0.0, unit="px"),
        Unknown("positions", start.tolist(), scale=0.1 * distance, unit="px"),
        Unknown("velocities", before.tolist(), scale=0.05 * speed, unit="px/s"),
        Unknown("deceleration", 0.02 * speed, scale=0.1 * speed, std=speed, unit="px/s²"),
        Unknown("friction", settings.friction_std, low=0.0, std=settings.friction_std),
    ]


def _setup(friction: _TableFriction, values: Values) -> Setup:
    zero = torch.zeros_like(values["mass_ratio"])[:, None]
    leaves = {name: values[name][:, None].expand(-1, 2) for name in ("restitution", "friction")}
    leaves["mass"] = torch.cat([torch.ones_like(zero), values["mass_ratio"][:, None]], 1)
    leaves["radius"] = values["contact_distance"][:, None].expand(-1, 2) / 2
    leaves["gyration"] = leaves["radius"] / 2**0.5
    return Setup(state_of_pair(values["positions"], values["velocities"]), leaves, friction.forces(values))


def state_of_pair(positions: Float[Tensor, "worlds 4"], velocities: Float[Tensor, "worlds 4"]) -> State:
    """Return the state of two discs in the plane that do not rotate."""
    parts = (functional.pad(part.unflatten(1, (2, 2)), (0, 1)).flatten(1) for part in (positions, velocities))
    return State(*parts)


def sliding_directions(
    velocities: Float[Tensor, "worlds bodies 2"],
    deceleration: Float[Tensor, " worlds"],
    elapsed: Float[Tensor, "#worlds steps"],
    dt: float,
) -> Float[Tensor, "worlds steps bodies 2"]:
    """Return unit directions of motion in each step, scaled down in the step in which a body stops, then zero."""
    speed = (velocities.square().sum(2) + 1e-9).sqrt()
    duration = speed / deceleration.clamp(min=1e-6)[:, None]
    fraction = ((duration[:, None] - elapsed[..., None]) / dt).clamp(0, 1)
    return fraction[..., None] * (velocities / speed[..., None])[:, None]


@dataclass(frozen=True)
class _TableFriction:
    """Friction of the table as a prescribed force that opposes each body's motion.

    It acts before and after the impact, until the body comes to rest.

    Attributes:
        dt: Step of the engine, s.
        steps: Number of engine steps.
        impact_time: Estimated time of the impact after the first sample, s.
        settings: Settings with the iterations and limits of the search for the time of impact.
    """

    dt: float
    steps: int
    impact_time: float
    settings: CollisionSettings

    def forces(self, values: Values) -> Float[Tensor, "worlds steps 6"]:
        """Return the forces and torques on both bodies in each step."""
        deceleration, before = values["deceleration"], values["velocities"].unflatten(1, (2, 2))
        impact_time, after = self._impact(values)
        start_times = self.dt * torch.arange(self.steps, dtype=before.dtype)
        # The step that contains the impact keeps the force from before the impact, and the next step compensates for
        # it, so that the velocities are correct at the impact and again at the end of the next step.
        steps_after = (start_times - impact_time[:, None]) / self.dt
        before_weight = torch.where(steps_after <= 0, 1.0, torch.where(steps_after < 1, -steps_after, 0.0))
        before_weight = before_weight[..., None, None]
        direction_before = sliding_directions(before, deceleration, start_times[None], self.dt)
        direction_after = sliding_directions(after, deceleration, start_times - impact_time[:, None], self.dt)
        mass = torch.stack([torch.ones_like(deceleration), values["mass_ratio"]], 1)
        direction = before_weight * direction_before + (1 - before_weight) * direction_after
        force = -(deceleration[:, None] * mass)[:, None, :, None] * direction
        return functional.pad(force, (0, 1)).flatten(2)

    def _impact(self, values: Values) -> tuple[Float[Tensor, " worlds"], Float[Tensor, "worlds bodies 2"]]:
        """Return the time of impact and the velocities of both bodies after it.

        Newton's method on the distance between the centers gives the time. Along the normal, the separation speed is
        the approach speed times the restitution. The tangential impulse has two upper limits: μ times the normal
        impulse (Coulomb's law), and the impulse at which the rims stick. For discs, whose inertia is m r²/2, the latter
        is a third of the impulse that would stop the sliding if they could not rotate.
        """
        mass_ratio, max_shift = values["mass_ratio"], self.settings.max_shift
        time = torch.full_like(mass_ratio, self.impact_time)
        for _ in range(self.settings.newton_iterations):
            center_offset, velocities = _state_at(values, time)
            approach_speed = self._approach_velocity(center_offset, velocities)[1]
            step = (center_offset.norm(dim=1) - values["contact_distance"]) / approach_speed
            time = (time + step).clamp(self.impact_time - max_shift, self.impact_time + max_shift)
        center_offset, velocities = _state_at(values, time)
        normal, approach_speed, tangential = self._approach_velocity(center_offset, velocities)
        normal_impulse = (1 + values["restitution"]) * approach_speed / (1 + 1 / mass_ratio)
        tangential_speed = (tangential.square().sum(1) + 1e-9).sqrt()
        sticking_impulse = tangential_speed / (3 * (1 + 1 / mass_ratio))
        friction_impulse = torch.minimum(values["friction"] * normal_impulse, sticking_impulse)
        impulse = normal_impulse[:, None] * normal + (friction_impulse / tangential_speed)[:, None] * tangential
        return time, velocities + torch.stack([-impulse, impulse / mass_ratio[:, None]], 1)

    def _approach_velocity(self, center_offset: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the normal, the approach speed along it, and the tangential relative velocity of the first body."""
        normal = center_offset / center_offset.norm(dim=1, keepdim=True)
        relative = -velocities.diff(dim=1)[:, 0]
        speed = (relative * normal).sum(1)
        min_speed = self.settings.min_approach * relative.detach().norm(dim=1)
        return normal, torch.maximum(speed, min_speed), relative - speed[:, None] * normal


def _state_at(values: Values, time: Tensor) -> tuple[Tensor, Tensor]:
    """Return the vector from the first body's center to the second's, and both velocities, without an impact."""
    positions, velocities = (values[name].unflatten(1, (2, 2)) for name in ("positions", "velocities"))
    speed = (velocities.square().sum(2) + 1e-9).sqrt()
    duration = torch.minimum(time[:, None], speed / values["deceleration"].clamp(min=1e-6)[:, None])[..., None]
    deceleration = values["deceleration"][:, None, None] * velocities / speed[..., None]
    shifted = positions + velocities * duration - deceleration * duration**2 / 2
    return shifted.diff(dim=1)[:, 0], velocities - deceleration * duration


def _engine(distance: float, dt: float) -> rigid2d.World:
    positions = {"first": (-2 * distance, 0), "second": (2 * distance, 0)}
    radius, pairs = distance / 2, positions.items()
    discs = [rigid2d.Circle(radius, center, restitution=0.5, friction=0.0, name=name) for name, center in pairs]
    return rigid2d.World(discs, gravity=(0, 0), dt=dt)


def observe_pair(sampled: SampledState) -> Float[Tensor, "worlds 4"]:
    """Return the positions of two discs in the plane."""
    return sampled.state.q[:, [0, 1, 3, 4]]
