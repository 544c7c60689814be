"""Mass on a spring, hanging or on level ground."""

from __future__ import annotations

import math

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import dominant_period, fit_polynomial
from physvision.identification.kinds.line import fit_line, position_on_line
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.physics.particle import Particle


def candidate_models(evidence: Evidence) -> list[MotionModel]:
    """Return the model of a damped harmonic oscillation along a line."""
    settings, dt = evidence.settings.line, evidence.dt
    line = fit_line(evidence, settings.min_spring_samples, settings.max_spring_width)
    period = dominant_period(line.times, line.distances)
    if period is None or line.times[-1] - line.times[0] < period:
        raise UnsuitableError("less than one oscillation is observed")
    substeps = max(1, math.ceil(dt * settings.spring_steps_per_second * max(1.0, 0.3 / period)))
    amplitude, frequency = float(np.ptp(line.distances)) / 2, 2 * math.pi / period
    early = line.times - line.times[0] < max(period / 6, 3 * dt)
    start = fit_polynomial(line.times[early] - line.times[0], line.distances[early, None], 1)[:, 0]
    unknowns = [
        Unknown("restoring", frequency**2, low=0.0, unit="1/s²"),
        Unknown("rest_position", line.center.tolist(), scale=amplitude, unit="px"),
        Unknown("heading", line.heading, scale=0.1, unit="rad"),
        Unknown("displacement", float(start[0]), scale=amplitude, unit="px"),
        Unknown("speed", float(start[1]), scale=amplitude * frequency, unit="px/s"),
        Unknown("damping", 0.05, scale=0.05 * frequency, unit="1/s"),
    ]

    def setup(values: Values) -> Setup:
        leaves = {"restoring": values["restoring"], "velocity_decay": values["damping"]}
        return Setup(State(values["displacement"][:, None], values["speed"][:, None]), leaves)

    return [
        MotionModel(
            "spring", Particle("line", dt=dt, substeps=substeps), unknowns, setup,
            lambda sampled: position_on_line(sampled, "rest_position"), parameters,
            {"stiffness": "N/m", "period": "s", "damping": "1/s", "mass": "kg"},
            line.first, line.end, horizon=max(1.5 * period, 10 * dt),
            starts={"restoring": frequency**2 * torch.tensor([1.0, 0.98, 1.02], dtype=torch.float64)},
            length_powers={"rest": 1, "radius": 1}, state_length_power=1,
        )
    ]  # fmt: skip


def parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return the damped period and the damping, and the stiffness by the mass or the mass by the stiffness."""
    restoring, damping = values["restoring"], values["damping"]
    parameters: ParameterValues = {
        "period": 2 * math.pi / (restoring - damping.square() / 4).clamp(min=1e-12).sqrt(),
        "damping": damping,
    }
    if "mass" in known_values:
        parameters["stiffness"] = restoring * known_values["mass"]
    elif "stiffness" in known_values:
        parameters["mass"] = known_values["stiffness"] / restoring
    else:
        parameters["stiffness"] = "only stiffness over mass is observable: needs mass"
        parameters["mass"] = "only stiffness over mass is observable: needs stiffness"
    return parameters
