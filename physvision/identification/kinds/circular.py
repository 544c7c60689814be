"""Object on a circle at constant speed."""

from __future__ import annotations

import math

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import fit_circle
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.physics.particle import Particle


def candidate_models(evidence: Evidence) -> list[MotionModel]:
    """Return the model of uniform circular motion."""
    settings, dt = evidence.settings.circular, evidence.dt
    indices, times, positions = evidence.samples(settings.min_samples)
    center, radius = fit_circle(positions)
    errors = np.abs(np.linalg.norm(positions - center, axis=1) - radius)
    extent = float(np.linalg.norm(np.ptp(positions, axis=0)))
    if radius > settings.max_radius * extent or float(np.median(errors)) > settings.max_circle_error * radius:
        raise UnsuitableError("it does not move on a circle")
    angle = np.unwrap(np.arctan2(*(positions - center)[:, ::-1].T))
    rate, start = np.polyfit(times - times[0], angle, 1)
    if abs(angle[-1] - angle[0]) < settings.min_turn:
        raise UnsuitableError("less than a quarter of a turn is observed")
    unknowns = [
        Unknown("center", center.tolist(), scale=radius, unit="px"),
        Unknown("radius", radius, low=0.0, unit="px"),
        Unknown("angle", float(start), unit="rad"),
        Unknown("angular_velocity", float(rate), scale=abs(float(rate)), unit="rad/s"),
        # A circle seen at an angle is an ellipse, to second order of the angle.
        Unknown("flatness", [0.0, 0.0], scale=0.01, std=settings.flatness_std),
    ]

    def setup(values: Values) -> Setup:
        return Setup(State(values["angle"][:, None], values["angular_velocity"][:, None]))

    return [
        MotionModel(
            "circular", Particle("circle", dt=dt), unknowns, setup, _observe, parameters,
            {"period": "s", "radius": "m", "speed": "m/s"}, int(indices[0]), int(indices[-1]) + 1,
            horizon=max(1.5 * abs(2 * math.pi / float(rate)), 6 * dt),
        )
    ]  # fmt: skip


def _observe(sampled: SampledState) -> torch.Tensor:
    angle, values = sampled.state.q[:, 0], sampled.values
    x, y = angle.cos(), angle.sin()
    stretch, skew = values["flatness"].unbind(1)
    ellipse = torch.stack([x + stretch * x + skew * y, y - stretch * y + skew * x], 1)
    return values["center"] + values["radius"][:, None] * ellipse


def parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return the period, and radius and speed by the scale or the radius."""
    rate = values["angular_velocity"].abs()
    missing = "lengths are observed in pixels: needs scale or radius"
    parameters: ParameterValues = {"period": 2 * math.pi / rate, "radius": missing, "speed": missing}
    if "scale" in known_values:
        radius = values["radius"] / known_values["scale"]
    elif "radius" in known_values:
        radius = known_values["radius"].expand_as(rate)
    else:
        return parameters
    return parameters | {"radius": radius, "speed": radius * rate}
