"""Flight with quadratic drag: a throw (projectile), or a fall straight down, also of what soon falls steadily."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.flight_segment import FlightSegment, expected_pull, flight_segments
from physvision.identification.initial_guesses import fit_polynomial
from physvision.identification.kind_settings import FlightSettings
from physvision.identification.kinds.straight import sink_models
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.physics.particle import Particle

_EARTH_GRAVITY = 9.81  # m/s², for the drag where gravity is unknown
_ENTERS_FLYING = "It flies already when it is first seen: speed and angle are those at that time, not at its release."


def candidate_models(evidence: Evidence, kind: str) -> list[MotionModel]:
    """Return the models of a "projectile" or a "fall": from a visible hand, and of an object that already flies."""
    models, reason = [], UnsuitableError("no stretch of the track is a parabola")
    for segment in flight_segments(evidence):
        try:
            models.append(_model(evidence, kind, segment))
        except UnsuitableError as error:
            reason = error
    if kind == "fall" and "drag" not in evidence.known_values:
        try:
            models.append(_braked_fall(evidence))
        except UnsuitableError as steady_reason:
            reason = reason if models else UnsuitableError(f"{reason}; {steady_reason}")
    if not models:
        raise reason
    return models


def _braked_fall(evidence: Evidence) -> MotionModel:
    """Return the model of a fall that reaches its terminal speed, as of paper: that of sinking with quadratic drag."""
    sinking = sink_models(evidence)[0]
    return replace(
        sinking, kind="fall", parameters=_braked_parameters, scale=_braked_scale,
        units={**sinking.units, "acceleration": "m/s²", "gravity": "m/s²"},
        alternatives={"sink": "whether it falls in air or sinks in a liquid: the picture shows it"},
    )  # fmt: skip


def _braked_scale(values: Values, known_values: KnownTensors) -> torch.Tensor | None:
    """Return the scale, pixels a meter, by the acceleration at rest, which is gravity, or known."""
    if "gravity" in known_values:
        return values["terminal_speed"] / values["time_constant"] / known_values["gravity"]
    return known_values.get("scale")


def _braked_parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return the terminal speed, the time constant, and the acceleration without air."""
    scale, speed, time = _braked_scale(values, known_values), values["terminal_speed"], values["time_constant"]
    parameters: ParameterValues = {"time_constant": time}
    parameters["terminal_speed"] = "needs gravity or scale" if scale is None else speed / scale
    if "gravity" not in known_values or "scale" in known_values:
        acceleration = speed / time / known_values["scale"] if "scale" in known_values else "needs scale"
        parameters |= dict.fromkeys(("acceleration", "gravity"), acceleration)
    return parameters


def _model(evidence: Evidence, kind: str, segment: FlightSegment) -> MotionModel:
    settings, dt = evidence.settings.flight, evidence.dt
    times = segment.times
    # Samples that a hand touches, or that lie beside the path, say nothing about the flight.
    free = slice(segment.samples_before, None)
    elapsed = times[free] - times[0]
    guess = fit_polynomial(elapsed, segment.positions[free], 2)
    launch = fit_polynomial(elapsed - elapsed[0], segment.positions[free], 2)
    gravity = 2 * float(np.linalg.norm(guess[2]))
    if gravity * (times[-1] - times[0]) ** 2 / 8 < settings.min_bend * segment.noise:
        raise UnsuitableError("the motion is uniform: nothing accelerates")
    if kind == "fall":
        if not _is_vertical(launch, float(elapsed[-1] - elapsed[0]), segment.noise, settings):
            raise UnsuitableError("it does not move straight down")
        if segment.is_flying_at_first and guess[1][1] < 0:
            raise UnsuitableError("a falling object does not move up before it falls: it was held")
    by_hand = segment.samples_before > 0 and not segment.is_flying_at_first
    pull, pull_std = expected_pull(launch[1], 2 * launch[2], evidence.settings)
    unknowns = _unknowns(evidence, kind, segment, guess, gravity)
    if segment.is_flying_at_first:
        radius = evidence.tracks[0].radius or evidence.pixel
        unknowns.append(Unknown("offset", [0.0, 0.0], scale=radius, std=settings.covered_std * radius, unit="px"))
    elif by_hand:
        unknowns.append(Unknown("pull", pull.tolist(), scale=gravity, std=pull_std, unit="px/s²"))
    known_gravity = evidence.known_values["gravity"].value if "gravity" in evidence.known_values else _EARTH_GRAVITY
    clear_time = float(elapsed[0]) - dt / 2  # from then on the observed position is that of the object

    def observe(sampled: SampledState) -> torch.Tensor:
        if segment.is_flying_at_first:
            return sampled.state.q + sampled.values["offset"] * (sampled.time < clear_time)[:, None]
        if not by_hand:
            return sampled.state.q
        # Before the release a constant pull leads it to the parabola of the flight.
        before = (sampled.values["release_time"] - sampled.time).clamp(min=0)
        return sampled.state.q + 0.5 * sampled.values["pull"] * before[:, None] ** 2

    notes, meanings = _describe_release(segment)
    if not {"gravity", "scale"} & evidence.known_values.keys():
        meanings["drag"] = f"if gravity is {_EARTH_GRAVITY} m/s²"
    return MotionModel(
        kind, Particle("plane", dt=dt, substeps=max(1, math.ceil(dt * settings.steps_per_second))), unknowns,
        partial(_setup, kind, known_gravity), observe, partial(_parameters, kind),
        {"speed": "m/s", "angle": "rad", "gravity": "m/s²", "acceleration": "m/s²", "drag": "1/m"},
        *segment.window, {"pull": torch.from_numpy(segment.pull)} if by_hand else {}, scale=_scale,
        length_powers={"acceleration": 1, "rest_position": 1, "drag": -1, "radius": 1}, state_length_power=1,
        notes=notes, meanings=meanings,
    )  # fmt: skip


def _describe_release(segment: FlightSegment) -> tuple[list[str], dict[str, str]]:
    """Return a warning where the release is not visible, and of which time speed and angle are."""
    if segment.is_release_unobserved:
        return [_ENTERS_FLYING], dict.fromkeys(("speed", "angle"), "when first seen")
    if segment.hidden:
        note = (
            f"Its release is not visible: it is taken to be at most {segment.hidden:.2g} s before the object is first "
            "seen. If it was earlier, speed and angle are those at that time, and not at the release."
        )
        meaning = f"at a release at most {segment.hidden:.2g} s before it is first seen"
        return [note], dict.fromkeys(("speed", "angle"), meaning)
    return [], dict.fromkeys(("speed", "angle"), f"at the release, {segment.release:.2f} s")


def _unknowns(
    evidence: Evidence, kind: str, segment: FlightSegment, guess: np.ndarray, gravity: float
) -> list[Unknown]:
    settings, dt = evidence.settings.flight, evidence.dt
    speed = max(float(np.linalg.norm(guess[1])), gravity * dt)
    velocity = guess[1].tolist() if kind == "projectile" else float(guess[1][1])
    unknowns = [
        Unknown("gravity", gravity, low=0.0, unit="px/s²"),
        evidence.view.roll_unknown(),
        Unknown("position", guess[0].tolist(), scale=10.0 * evidence.pixel, unit="px"),
        # Drag has a prior: a short flight does not determine it.
        evidence.dissipation_unknown(
            "drag",
            settings.drag,
            settings.drag,
            settings.drag_std if evidence.view.has_camera else settings.table_drag_std,
            "1/m",
        ),
        Unknown("velocity", velocity, scale=0.1 * speed, unit="px/s"),
    ]
    if kind == "fall":
        duration = float(segment.times[-1] - segment.times[segment.samples_before])
        std = settings.sideways_std * gravity * duration
        unknowns.append(Unknown("sideways_velocity", 0.0, scale=std, std=std, unit="px/s"))
    by_hand = segment.samples_before > 0 and not segment.is_flying_at_first
    release_std = settings.hand_release_std_frames * dt if by_hand else segment.release_std
    release = segment.release - segment.times[0]
    return [*unknowns, Unknown("release_time", release, scale=dt, std=release_std, unit="s")]


def _setup(kind: str, known_gravity: float, values: Values) -> Setup:
    down = torch.stack([-values["roll"].sin(), values["roll"].cos()], 1)
    velocity = values["velocity"]
    if kind == "fall":
        right = torch.stack([down[:, 1], -down[:, 0]], 1)
        velocity = velocity[:, None] * down + values["sideways_velocity"][:, None] * right
    leaves = {"acceleration": values["gravity"][:, None] * down, "drag": _pixel_drag(values, known_gravity)}
    return Setup(State(values["position"], velocity), leaves)


def _is_vertical(coefficients: np.ndarray, duration: float, noise: float, settings: FlightSettings) -> bool:
    """Return whether a parabola of these coefficients is a fall."""
    (sideways, down), speed = coefficients[1] * duration + coefficients[2] * duration**2, coefficients[1][1]
    straight = abs(sideways) < settings.max_sideways * abs(down) + 5 * noise
    return bool(coefficients[2][1] > 0 and straight and speed > -0.15 * down / duration)


def _scale(values: Values, known_values: KnownTensors) -> torch.Tensor | None:
    """Return the scale, pixels a meter, by gravity or known."""
    if "gravity" in known_values:
        return values["gravity"] / known_values["gravity"]
    return known_values.get("scale")


def _pixel_drag(values: Values, gravity: torch.Tensor | float) -> torch.Tensor:
    """Return the drag, 1/px: that in 1/m over the scale that gravity implies."""
    return values["drag"] * gravity / values["gravity"]


def _launch_velocity(values: Values, gravity: torch.Tensor | float) -> torch.Tensor:
    """Return the velocity at the release, px/s, by one midpoint step along the path of the flight."""
    gravity_vector = values["gravity"][:, None] * torch.stack([-values["roll"].sin(), values["roll"].cos()], 1)
    drag, duration = _pixel_drag(values, gravity)[:, None], values["release_time"][:, None]

    def acceleration(velocity: torch.Tensor) -> torch.Tensor:
        return gravity_vector - drag * velocity.norm(dim=1, keepdim=True) * velocity

    start = values["velocity"]
    return start + duration * acceleration(start + duration / 2 * acceleration(start))


def _parameters(kind: str, values: Values, known_values: KnownTensors) -> ParameterValues:
    scale = _scale(values, known_values)
    parameters: ParameterValues = {}
    if "gravity" not in known_values or "scale" in known_values:
        gravity = values["gravity"] / known_values["scale"] if "scale" in known_values else "needs scale"
        names = ("acceleration", "gravity") if kind == "fall" else ("gravity",)
        parameters |= dict.fromkeys(names, gravity)
    if kind == "projectile":
        launch = _launch_velocity(values, known_values.get("gravity", _EARTH_GRAVITY))
        x, y = launch.unbind(1)
        roll = values["roll"]
        down, across = y * roll.cos() - x * roll.sin(), x * roll.cos() + y * roll.sin()
        parameters["angle"] = torch.atan2(-down, across.abs())
        speed = launch.norm(dim=1)
    else:
        speed = values["velocity"]
    parameters["speed"] = "needs gravity or scale" if scale is None else speed / scale
    return parameters if "drag" in known_values else {**parameters, "drag": values["drag"]}
