"""Two bodies at rest that push off from each other, on a table seen from above or in one line."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from physvision.estimation import Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import fit_polynomial
from physvision.identification.kinds.collision import observe_pair, sliding_directions, state_of_pair
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.physics import rigid2d

_NEEDS_SCALE = "lengths are observed in pixels: needs scale"


def candidate_models(evidence: Evidence) -> list[MotionModel]:
    """Return the model of two discs that fly apart along one line, with momenta that add up to zero, and friction.

    The mass ratio is that of the slower body to the faster one.
    """
    settings, dt = evidence.settings.explosion, evidence.dt
    indices, times, positions = evidence.samples(settings.min_samples)
    lines = fit_polynomial(times - times[0], positions, 2)
    velocities = lines[1].reshape(2, 2)
    speeds = np.linalg.norm(velocities, axis=1)
    spread = np.linalg.norm(np.ptp(positions, axis=0).reshape(2, 2), axis=1)
    if spread.min() < evidence.settings.line.min_spread * evidence.noise(indices):
        raise UnsuitableError("one of the two objects hardly moves")
    directions = velocities / np.maximum(speeds, 1e-9)[:, None]
    if float(directions[0] @ directions[1]) > -math.cos(settings.max_angle):
        raise UnsuitableError("the two objects do not move in opposite directions")
    offset = positions[:, 2:] - positions[:, :2]
    distance = np.linalg.norm(offset, axis=1)
    size = sum(track.radius or math.inf for track in evidence.tracks)
    if distance[0] > settings.max_distance_ratio * size or distance[-1] < distance[0] or not np.isfinite(size):
        raise UnsuitableError("the two objects do not fly apart from where they touched")
    slower = int(speeds.argmin())
    engine = _engine(float(np.abs(positions).max()), dt)
    steps, duration = math.ceil((times[-1] - times[0]) / dt), float(times[-1] - times[0])
    speed, ratio = float(speeds[0]), float(speeds[0] / speeds[1])
    unknowns = [
        # The second mass over the first; momentum makes the speeds inversely proportional.
        Unknown("mass_ratio", ratio, low=0.0),
        Unknown("positions", lines[0].tolist(), scale=0.05 * float(spread.max()), unit="px"),
        Unknown("velocity", velocities[0].tolist(), scale=0.05 * speed, unit="px/s"),
        Unknown("deceleration", 0.05 * speed / duration, scale=0.2 * speed / duration, std=speed / duration,
                unit="px/s²"),
        # The first frames, in which they hardly move, are cut off as rest: they push off a little before the first
        # sample.
        Unknown("elapsed", settings.elapsed_frames * dt, low=0.0, std=settings.elapsed_frames * dt, unit="s"),
    ]  # fmt: skip

    def setup(values: Values) -> Setup:
        velocities, deceleration = _first_velocities(values), values["deceleration"]
        state = state_of_pair(values["positions"], velocities.flatten(1))
        elapsed = dt * torch.arange(steps, dtype=velocities.dtype)
        directions = sliding_directions(velocities, deceleration, elapsed[None], dt)
        friction = -deceleration[:, None, None, None] * directions
        return Setup(state, {}, functional.pad(friction, (0, 1)).flatten(2))

    def parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
        ratio = values["mass_ratio"]
        relative_speed = values["velocity"].norm(dim=1) * (1 + 1 / ratio)
        speed = relative_speed / known_values["scale"] if "scale" in known_values else _NEEDS_SCALE
        return {"mass_ratio": ratio if slower == 1 else 1 / ratio, "relative_speed": speed}

    names = [track.name for track in evidence.tracks]
    return [
        MotionModel(
            "explosion", engine, unknowns, setup, observe_pair, parameters, {"mass_ratio": "", "relative_speed": "m/s"},
            int(indices[0]), int(indices[-1]) + 1, state_length_power=1,
            meanings={"mass_ratio": f"{names[slower]} (slower) over {names[1 - slower]}",
                      "relative_speed": "at the beginning"},
        )
    ]  # fmt: skip


def _first_velocities(values: Values) -> Tensor:
    """Return the velocities of both discs at the first sample, (worlds, discs, 2), slowed down since they pushed off.

    Their momenta add up to zero when they push off only, since friction slows both down alike.
    """
    velocity = values["velocity"]
    velocities = torch.stack([velocity, -velocity / values["mass_ratio"][:, None]], 1)
    speed = (velocities.square().sum(2) + 1e-9).sqrt()
    loss = (values["deceleration"] * values["elapsed"])[:, None]
    return velocities * ((speed - loss).clamp(min=0.0) / speed)[..., None]


def _engine(extent: float, dt: float) -> rigid2d.World:
    """Return two discs of unit mass that are too small to touch."""
    radius = 1e-3 * extent
    discs = [
        rigid2d.Circle(radius, (x * extent, 0), mass=1.0, restitution=0.0, friction=0.0, name=name)
        for name, x in (("first", -1), ("second", 1))
    ]
    return rigid2d.World(discs, gravity=(0, 0), dt=dt)
