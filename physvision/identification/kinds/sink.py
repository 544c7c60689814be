"""Object that sinks in a liquid to a steady speed, against quadratic drag or Stokes' linear drag.

With the terminal speed u and the time constant τ, v' = (u/τ)(1 − (v/u)²) for quadratic drag, and v' = (u − v)/τ for
linear drag. Gravity, buoyancy and the liquid that is carried along only appear in u and τ.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import fit_polynomial
from physvision.identification.kinds.straight import StraightTrack, fit_line, position_on_line, start_on_line
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.physics.particle import Particle

_LAWS = {
    "quadratic": "The drag grows with the square of the speed, as at high Reynolds numbers.",
    "linear": "The drag grows with the speed, as in Stokes' law.",
}


def candidate_models(evidence: Evidence) -> list[MotionModel]:
    """Return the models of quadratic and of linear drag."""
    settings = evidence.settings.sink
    line = fit_line(evidence, settings.min_samples, settings.max_width)
    if abs(math.sin(line.heading)) < math.cos(settings.max_tilt) or math.sin(line.heading) < 0:
        raise UnsuitableError("it does not move straight down")
    remaining = line.distances[-1] - line.distances
    moving = np.flatnonzero(remaining > settings.rest_distance * np.ptp(line.distances))
    count = min(int(moving[-1]) + 2, len(line.times))
    if count < settings.min_samples:
        raise UnsuitableError("it moves in too few frames")
    times, distances = line.times[:count] - line.times[0], line.distances[:count]
    thirds = np.array_split(np.arange(count), 3)
    early, middle, late = (float(fit_polynomial(times[part], distances[part, None], 1)[1, 0]) for part in thirds)
    if late - middle > settings.max_late_gain * late:
        raise UnsuitableError("it does not reach a steady speed")
    if early > settings.max_early_speed * late:
        raise UnsuitableError("its speed is steady from the start")
    return [_model(evidence, line, count, law, max(early, 0.0), late) for law in _LAWS]


def _model(evidence: Evidence, line: StraightTrack, count: int, law: str, early: float, late: float) -> MotionModel:
    duration, extent = float(line.times[count - 1] - line.times[0]), float(np.ptp(line.distances))
    unknowns = [
        Unknown("terminal_speed", late, low=0.0, unit="px/s"),
        Unknown("time_constant", duration / 6, low=0.0, unit="s"),
        Unknown("origin", line.center.tolist(), scale=extent, unit="px"),
        Unknown("heading", line.heading, scale=0.05, unit="rad"),
        Unknown("speed", early / 2, scale=0.1 * late, unit="px/s"),
    ]

    def setup(values: Values) -> Setup:
        speed, time = values["terminal_speed"], values["time_constant"]
        drag = {"drag": 1 / (speed * time)} if law == "quadratic" else {"velocity_decay": 1 / time}
        start = values["speed"][:, None]
        return Setup(State(torch.zeros_like(start), start), {"acceleration": (speed / time)[:, None], **drag})

    settings = evidence.settings.sink
    constants = torch.tensor([duration / 20, duration / 6, duration / 3], dtype=torch.float64)
    return MotionModel(
        "sink", Particle("line", dt=evidence.dt, substeps=settings.substeps), unknowns, setup,
        lambda sampled: position_on_line(sampled, "origin"), _parameters,
        {"terminal_speed": "m/s", "time_constant": "s"},
        line.first, int(line.indices[count - 1]) + 1,
        starts={"origin": start_on_line(line, float(line.distances[0])), "time_constant": constants},
        length_powers={"acceleration": 1, "rest_position": 1, "drag": -1, "radius": 1}, state_length_power=1,
        notes=[_LAWS[law]],
    )  # fmt: skip


def _parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return the time constant, and the terminal speed by the scale."""
    speed = "lengths are observed in pixels: needs scale"
    if "scale" in known_values:
        speed = values["terminal_speed"] / known_values["scale"]
    return {"terminal_speed": speed, "time_constant": values["time_constant"]}
