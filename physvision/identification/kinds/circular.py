"""Motion on a circle: a pendulum of any amplitude (a bob, or a rod that swings about its end), and uniform motion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import (
    Positions,
    Samples,
    dominant_period,
    fit_circle,
    principal_direction,
)
from physvision.identification.kind_settings import PendulumSettings
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.identification.parabolas import departure_index
from physvision.physics.particle import Particle


def pendulum_models(evidence: Evidence) -> list[MotionModel]:
    """Return the models of a damped pendulum: of the whole track, and of that after a string was slack at first."""
    settings = evidence.settings.pendulum
    indices, times, positions = evidence.samples(settings.min_samples)
    models = [_pendulum_model(evidence, indices, times, positions)]
    start = _taut_start(positions, evidence.noise(indices), settings)
    if start and len(times) - start >= settings.min_samples:
        note = f"The string is slack in the first {times[start] - times[0]:.2g} s, up to a turn; they are left out."
        try:
            taut = _pendulum_model(evidence, indices[start:], times[start:], positions[start:], (note,))
            models.append(taut)
        except UnsuitableError:
            pass
    return models


def _taut_start(positions: Positions, noise: float, settings: PendulumSettings) -> int:
    """Return the first turn after a bob was inside the circle of its later swings; zero if it never was.

    A bob that is let go with a slack string, or above its pivot, falls freely until the string pulls.
    """
    late = positions[len(positions) // 2 :]
    center, radius = fit_circle(late)
    scatter = float(np.median(np.abs(np.linalg.norm(late - center, axis=1) - radius)))
    if not 0 < radius < settings.max_slack_radius * float(np.linalg.norm(np.ptp(late, axis=0))):
        return 0
    depth = radius - np.linalg.norm(positions - center, axis=1)
    threshold = max(settings.min_slack * radius, settings.min_slack_ratio * max(noise, scatter))
    slack = np.flatnonzero(depth[: int(settings.max_slack_fraction * len(depth))] > threshold)
    if len(slack) < settings.min_slack_samples:
        return 0
    angle = np.unwrap(np.arctan2(*(positions - center).T))
    step = np.diff(np.convolve(angle[slack[-1] :], np.ones(3) / 3, "valid"))
    turns = np.flatnonzero(step[1:] * step[:-1] < 0)
    return int(slack[-1] + turns[0] + 2) if len(turns) else 0


def _pendulum_model(
    evidence: Evidence, indices: np.ndarray, times: Samples, positions: Positions, notes: Sequence[str] = ()
) -> MotionModel:
    """Return the model of a damped pendulum; its relaxation has a pivot that drifts."""
    settings, dt = evidence.settings.pendulum, evidence.dt
    direction, _ = principal_direction(positions)
    period = dominant_period(times, (positions - positions.mean(0)) @ direction)
    if period is None or times[-1] - times[0] < settings.min_periods * period:
        raise UnsuitableError("less than about one swing is observed")
    frequency = 2 * math.pi / period
    unknowns = [
        Unknown("restoring_coefficient", frequency**2, low=0.0, unit="1/s²"),
        Unknown("arm_length", 100.0 * evidence.pixel, low=0.0, unit="px"),
        Unknown("pivot", positions.mean(0).tolist(), scale=50.0 * evidence.pixel, unit="px"),
        evidence.view.roll_unknown(),
        Unknown("angle", 0.0, unit="rad"),
        Unknown("angular_velocity", 0.0, scale=frequency, unit="rad/s"),
        evidence.dissipation_unknown("damping", 0.05, 0.1, unit="1/s"),
        # Without a known value in 1/m, it is fitted in 1/rad.
        evidence.dissipation_unknown("drag", 0.05, 0.1),
    ]
    known_tensors, duration = evidence.known_tensors, float(times[-1] - times[0])
    if known_tensors.get("drag", torch.zeros(())) != 0 and not {"gravity", "length", "scale"} & known_tensors.keys():
        raise UnsuitableError("a known drag, 1/m, needs gravity, length or scale")
    model = MotionModel(
        "pendulum", Particle("circle", dt=dt, substeps=max(1, math.ceil(dt * settings.steps_per_second))), unknowns,
        partial(_pendulum_setup, known_tensors), _observe_bob, partial(_pendulum_parameters, duration),
        {"length": "m", "gravity": "m/s²", "damping": "1/s", "drag": "1/m", "period": "s", "swing_period": "s",
         "amplitude": "rad", "mass": "kg"},
        int(indices[0]), int(indices[-1]) + 1, _pendulum_starts(times, positions, period), horizon=max(period, 8 * dt),
        scale=_pendulum_scale, length_powers={"length": 1, "radius": 1},
        meanings={"period": "of small swings", "swing_period": "mean of the clip's swings, as a stopwatch shows it",
                  "amplitude": "at the beginning"}, notes=notes,
    )  # fmt: skip
    drift = Unknown("drift", [0.0, 0.0], scale=evidence.pixel, unit="px/s")
    note = "The pivot, or the camera, moves slowly and evenly; that motion is fitted too."
    drifting = replace(model, unknowns=[*unknowns, drift], observe=_observe_drifting, notes=[*notes, note])
    return replace(model, relaxations=[drifting])


def _pendulum_setup(known_values: KnownTensors, values: Values) -> Setup:
    leaves = {"restoring_coefficient": values["restoring_coefficient"], "velocity_decay": values["damping"]}
    leaves["drag"] = _angular_drag(values, known_values)
    leaves["length"] = values["arm_length"]
    return Setup(State(values["angle"][:, None], values["angular_velocity"][:, None]), leaves)


def _observe_bob(sampled: SampledState) -> torch.Tensor:
    """Return the position of the bob in the picture of a tilted camera, y down."""
    angle = sampled.state.q[:, 0] - sampled.values["roll"]
    arm = torch.stack([angle.sin(), angle.cos()], 1)
    return sampled.values["pivot"] + sampled.values["arm_length"][:, None] * arm


def _observe_drifting(sampled: SampledState) -> torch.Tensor:
    """Return the position of the bob where the pivot or the camera drifts at a constant velocity."""
    return _observe_bob(sampled) + sampled.values["drift"] * sampled.time[:, None]


def _pendulum_starts(times: Samples, positions: Positions, period: float) -> dict[str, object]:
    """Return starts from the circle fitted to the track and from circles of other radii, each with its frequency."""
    center, radius = fit_circle(positions)
    mean = positions.mean(0)
    lowest_position = positions[np.argsort(positions[:, 1])[-max(3, len(positions) // 20) :]].mean(0)
    extent = float(np.linalg.norm(np.ptp(positions, axis=0)))
    circles = [(center, radius)] if 0.3 * extent < radius < 20 * extent else []
    for ratio in (0.6, 1.0, 2.0, 5.0):
        trial_radius = ratio * extent
        x = mean[0] if trial_radius > extent else lowest_position[0]
        circles.append((np.array([x, lowest_position[1] - trial_radius]), trial_radius))
    starts = []
    for pivot, circle_radius in circles:
        angle = np.unwrap(np.arctan2(*(positions - pivot).T))
        amplitude = min(float(np.ptp(angle)) / 2, 3.0)
        # The period of a pendulum grows with its amplitude; the series has an error of 1 % at an amplitude of 120°.
        period_ratio = 1 + amplitude**2 / 16 + 11 * amplitude**4 / 3072
        count = min(len(times), 5)
        angular_velocity, start = np.polyfit(times[:count] - times[0], angle[:count], 1)
        starts.append(((2 * math.pi * period_ratio / period) ** 2, circle_radius, pivot, start, angular_velocity))
    names = ("restoring_coefficient", "arm_length", "pivot", "angle", "angular_velocity")
    columns = zip(names, zip(*starts, strict=True), strict=True)
    return {name: torch.tensor(np.array(values), dtype=torch.float64) for name, values in columns}


def _pendulum_scale(values: Values, known_values: KnownTensors) -> torch.Tensor | None:
    """Return the scale, pixels per meter: known, or for a bob on a massless arm by gravity or the length."""
    if "scale" in known_values:
        return known_values["scale"]
    if "gravity" in known_values:
        return values["arm_length"] * values["restoring_coefficient"] / known_values["gravity"]
    return values["arm_length"] / known_values["length"] if "length" in known_values else None


def _pendulum_length(values: Values, known_values: KnownTensors) -> torch.Tensor | None:
    """Return the length in meters: known, or by gravity or the scale."""
    restoring = values["restoring_coefficient"]
    if "length" in known_values:
        return known_values["length"].expand_as(restoring)
    if "gravity" in known_values:
        return known_values["gravity"] / restoring
    return values["arm_length"] / known_values["scale"] if "scale" in known_values else None


def _angular_drag(values: Values, known_values: KnownTensors) -> torch.Tensor:
    """Return the drag in 1/rad; a known one is in 1/m."""
    length = _pendulum_length(values, known_values) if "drag" in known_values else None
    return values["drag"] if length is None else values["drag"] * length


def swing_amplitudes(values: Values, drag: torch.Tensor, duration: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the amplitude of a pendulum at the beginning and in the middle of a clip, rad; π where it turns over.

    The energy at the beginning gives the first one: 1 − cos A = 1 − cos θ + ω² / 2k with the restoring coefficient k.
    Averaged over a swing, a linear damping c and a drag d take A' = −c A / 2 − (4 / 3π) √k d A² from it (Bernoulli's
    equation), so that with α = c / 2 and β = (4 / 3π) √k d

        A(t) = A e^{−αt} / (1 + β A (1 − e^{−αt}) / α)

    Args:
        values: Values of the unknowns.
        drag: Drag, 1/rad.
        duration: Duration of the clip, s.
    """
    restoring, angle, rate = values["restoring_coefficient"], values["angle"], values["angular_velocity"]
    cosine = angle.cos() - rate.square() / (2 * restoring)
    # Near cos A = ±1 the arc cosine has no derivative.
    initial = torch.acos(cosine.clamp(-1 + 1e-9, 1 - 1e-9))
    middle = duration / 2
    exponent = values["damping"] * middle / 2
    small = exponent.abs() < 1e-6
    divisor = torch.where(small, 1.0, exponent)
    mean_decay = middle * torch.where(small, 1 - exponent / 2, -torch.expm1(-divisor) / divisor)
    drag_decay = 4 / (3 * math.pi) * restoring.sqrt() * drag
    return initial, initial * (-exponent).exp() / (1 + drag_decay * initial * mean_decay)


def swing_period_ratio(amplitude: torch.Tensor) -> torch.Tensor:
    """Return the period of a pendulum relative to that of small swings, by the arithmetic–geometric mean."""
    arithmetic, geometric = torch.ones_like(amplitude), (amplitude / 2).cos()
    for _ in range(6):  # converges quadratically
        arithmetic, geometric = (arithmetic + geometric) / 2, (arithmetic * geometric).sqrt()
    return 1 / arithmetic


def _pendulum_parameters(duration: float, values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return periods, amplitude and damping, and the length from gravity or gravity from the length."""
    restoring = values["restoring_coefficient"]
    amplitude, middle_amplitude = swing_amplitudes(values, _angular_drag(values, known_values), duration)
    reason = "only length over gravity is observable: needs gravity, length or scale"
    period = 2 * math.pi / restoring.sqrt()
    parameters: ParameterValues = {
        "period": period,
        "swing_period": period * swing_period_ratio(middle_amplitude),
        "amplitude": amplitude,
        "damping": values["damping"],
        "mass": "the motion of a pendulum does not depend on its mass",
        "length": reason,
    }
    length = _pendulum_length(values, known_values)
    if float(amplitude.detach().max()) > math.pi - 1e-3:
        parameters |= dict.fromkeys(("swing_period", "amplitude"), "it turns over the top")
    if length is not None:
        parameters["length"] = length
    if "gravity" not in known_values:
        parameters["gravity"] = reason if length is None else length * restoring
    parameters["drag"] = "needs gravity, length or scale" if length is None else values["drag"] / length
    return {name: value for name, value in parameters.items() if name not in {"damping", "drag"} & known_values.keys()}


def circular_models(evidence: Evidence) -> list[MotionModel]:
    """Return the models of circular motion: of the whole track, and of that after a hand has let go of what it spins.

    The motion is uniform or, where the rate changes, slowed down by dry friction on an axis, by viscous friction, or by
    both.
    """
    settings = evidence.settings.circular
    indices, times, positions = evidence.samples(settings.min_samples)
    center, radius = fit_circle(positions)
    errors = np.abs(np.linalg.norm(positions - center, axis=1) - radius)
    extent = float(np.linalg.norm(np.ptp(positions, axis=0)))
    if radius > settings.max_radius * extent or float(np.median(errors)) > settings.max_circle_error * radius:
        raise UnsuitableError("it does not move on a circle")
    angle = np.unwrap(np.arctan2(*(positions - center)[:, ::-1].T))
    if abs(angle[-1] - angle[0]) < settings.min_turn:
        raise UnsuitableError("less than a quarter of a turn is observed")
    step = max(1, len(times) // settings.max_release_samples)
    arc, parabola = radius * angle[::step, None], evidence.settings.parabola
    release = step * departure_index(times[::step], arc, parabola.noise_ratio * evidence.noise(indices), parabola)
    is_long = len(times) - release >= settings.min_samples and abs(angle[-1] - angle[release]) > settings.min_turn
    if not release or not is_long:
        return _rotation_models(evidence, (center, radius), indices, times, angle)
    note = f"It is spun in the first {times[release] - times[0]:.2g} s; they are left out."
    free = slice(release, None)
    models = _rotation_models(evidence, (center, radius), indices[free], times[free], angle[free], (note,))
    # In a steady rotation, errors that recur with each turn may be taken for the end of the spin, so that the whole
    # track is a candidate too.
    models += _rotation_models(evidence, (center, radius), indices, times, angle)[:1]
    return models


def _rotation_models(
    evidence: Evidence,
    circle: tuple[np.ndarray, float],
    indices: np.ndarray,
    times: Samples,
    angle: Samples,
    notes: Sequence[str] = (),
) -> list[MotionModel]:
    """Return the models of samples on a circle, given by its center and radius, at these angles."""
    window = (int(indices[0]), int(indices[-1]) + 1)
    rate, start = np.polyfit(times - times[0], angle, 1)
    models = [_circular_model(evidence, circle, window, (float(start), float(rate)))]
    half_change, initial_rate, start = np.polyfit(times - times[0], angle, 2)
    duration = float(times[-1] - times[0])
    if abs(2 * half_change * duration) > evidence.settings.circular.min_slowing * abs(rate):
        guess = float(start), float(initial_rate)
        friction = Unknown("angular_acceleration", 2 * float(half_change), scale=abs(rate) / duration, unit="rad/s²")
        decay = Unknown("damping", max(-2 * float(half_change / rate), 0.0), scale=1 / duration, unit="1/s")
        changes = ([friction], [decay], [friction, replace(decay, start=0.0)])
        models += [_circular_model(evidence, circle, window, guess, change) for change in changes]
    return [replace(model, notes=notes) for model in models]


def _circular_model(
    evidence: Evidence,
    circle: tuple[np.ndarray, float],
    window: tuple[int, int],
    guess: tuple[float, float],
    changes: Sequence[Unknown] = (),
) -> MotionModel:
    """Return the model of circular motion whose rate is constant or changed by some unknowns."""
    (center, radius), (start, rate), dt = circle, guess, evidence.dt
    flatness_std = evidence.settings.circular.flatness_std
    unknowns = [
        Unknown("center", center.tolist(), scale=radius, unit="px"),
        Unknown("radius", radius, low=0.0, unit="px"),
        Unknown("angle", start, unit="rad"),
        Unknown("angular_velocity", rate, scale=abs(rate), unit="rad/s"),
        # A circle that is viewed at an angle is an ellipse; its flatness is of second order in the angle.
        Unknown("flatness", [0.0, 0.0], scale=0.01, std=flatness_std),
        *changes,
    ]

    def setup(values: Values) -> Setup:
        leaves = {}
        if "angular_acceleration" in values:
            leaves["acceleration"] = values["angular_acceleration"][:, None]
        if "damping" in values:
            leaves["velocity_decay"] = values["damping"]
        return Setup(State(values["angle"][:, None], values["angular_velocity"][:, None]), leaves)

    units = {"period": "s", "angular_speed": "rad/s", "angular_acceleration": "rad/s²", "damping": "1/s"}
    return MotionModel(
        "circular", Particle("circle", dt=dt), unknowns, setup, _observe_circle, _circular_parameters,
        {**units, "radius": "m", "speed": "m/s"}, *window,
        horizon=max(1.5 * abs(2 * math.pi / rate), 6 * dt),
    )  # fmt: skip


def _observe_circle(sampled: SampledState) -> torch.Tensor:
    """Return the position of the object in the picture, on a circle that the camera shows as an ellipse."""
    angle, values = sampled.state.q[:, 0], sampled.values
    x, y = angle.cos(), angle.sin()
    stretch, skew = values["flatness"].unbind(1)
    ellipse = torch.stack([x + stretch * x + skew * y, y - stretch * y + skew * x], 1)
    return values["center"] + values["radius"][:, None] * ellipse


def _circular_parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return the period, or the rate at first and how it changes, and radius and speed by the scale or the radius."""
    rate = values["angular_velocity"].abs()
    reason = "lengths are observed in pixels: needs scale or radius"
    parameters: ParameterValues = {"period": 2 * math.pi / rate}
    changes = {name: values[name] for name in ("angular_acceleration", "damping") if name in values}
    if changes:
        parameters = {"angular_speed": rate, **changes}
    if "scale" in known_values:
        radius = values["radius"] / known_values["scale"]
    elif "radius" in known_values:
        radius = known_values["radius"].expand_as(rate)
    else:
        return parameters | {"radius": reason, "speed": reason}
    return parameters | {"radius": radius, "speed": radius * rate}
