"""Motion along a straight line: sliding and rolling, on a slope or to a stop, oscillation on a spring, sinking."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import Samples, dominant_period, fit_polynomial, principal_direction
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.identification.parabolas import departure_index, parabola_window
from physvision.identification.settings import IdentificationSettings
from physvision.physics import rigid2d
from physvision.physics.particle import Particle


@dataclass(frozen=True)
class StraightTrack:
    """Track of an object that moves along a line.

    Attributes:
        times: Times of the observed samples, s.
        distances: Distances along the line from `center`, growing in the direction of `heading`, pixels.
        center: Point of the line, pixels.
        heading: Direction of the line, from x towards y, rad.
        noise: Standard deviation of a coordinate, pixels.
        indices: Index of each sample in the clip.
        from_table: If true, the track was read from a table, so that nothing is known of the object's size.
    """

    times: Samples
    distances: Samples
    center: Float[np.ndarray, "2"]
    heading: float
    noise: float
    indices: Int[np.ndarray, " samples"]
    from_table: bool

    @property
    def first(self) -> int:
        """Index of the first sample in the clip."""
        return int(self.indices[0])

    @property
    def end(self) -> int:
        """Index in the clip, one past the last sample."""
        return int(self.indices[-1]) + 1

    def cut(self, part: slice) -> StraightTrack:
        """Return a part of the track, about the same line."""
        return replace(self, times=self.times[part], distances=self.distances[part], indices=self.indices[part])


def fit_line(evidence: Evidence, min_samples: int, max_width: float) -> StraightTrack:
    """Fit a line to the track, headed in the direction of its mean motion.

    Args:
        evidence: Track of one object.
        min_samples: Smallest number of samples.
        max_width: Largest width across the line, relative to the spread along it.

    Raises:
        UnsuitableError: The track is not straight, or the object hardly moves.
    """
    indices, times, positions = evidence.samples(min_samples)
    min_spread = evidence.settings.line.min_spread
    # Where a hand covers a part of the object, its positions are off, and their sigma says so.
    sigma = evidence.tracks[0].sigma[indices]
    direction, width = principal_direction(positions, sigma)
    noise = evidence.noise(indices)
    center = np.average(positions, axis=0, weights=sigma**-2)
    distances = (positions - center) @ direction
    spread = float(np.ptp(distances))
    if spread < min_spread * noise:
        raise UnsuitableError("it hardly moves")
    if width > max(max_width, min_spread * noise / spread):
        raise UnsuitableError("it does not move along a straight line")
    if np.polyfit(times, distances, 1)[0] < 0:
        direction, distances = -direction, -distances
    heading, from_table = math.atan2(direction[1], direction[0]), evidence.tracks[0].radius is None
    return StraightTrack(times, distances, center, heading, noise, indices, from_table)


def steady_part(line: StraightTrack, settings: IdentificationSettings, speeding_up: bool = False) -> StraightTrack:
    """Return the stretch of a straight track with a constant acceleration, without rests before and after.

    Args:
        line: Straight track.
        settings: Tuning numbers.
        speeding_up: If true, only a stretch in which the object becomes faster counts, if there is one.

    Raises:
        UnsuitableError: There is no such stretch.
    """
    positions = np.stack([line.distances, np.zeros_like(line.distances)], 1)
    parabola = settings.parabola
    noise = parabola.noise_ratio * line.noise
    window = None
    if speeding_up:
        window = parabola_window(
            line.times, positions, noise, False, parabola, is_lawful=lambda part: not _decelerates(line.cut(part))
        )
    if window is None:
        window = parabola_window(line.times, positions, noise, False, parabola)
    min_spread = settings.line.min_moving_fraction * np.ptp(line.distances)
    if window is None or np.ptp(line.distances[slice(*window)]) < min_spread:
        raise UnsuitableError("no stretch of it moves with a constant acceleration")
    first, last = window
    if line.from_table:
        # Errors of a table that last for several samples end a parabolic window early.
        first = min(first, departure_index(line.times[:last], line.distances[:last, None], noise, parabola))
    return line.cut(slice(first, last))


def position_on_line(sampled: SampledState, origin: str) -> torch.Tensor:
    """Return the position of an object on the line, pixels; q is the distance from the unknown called `origin`."""
    heading = sampled.values["heading"]
    direction = torch.stack([heading.cos(), heading.sin()], 1)
    return sampled.values[origin] + sampled.state.q[:, :1] * direction


_UNITS = {"acceleration": "m/s²", "friction": "", "angle": "rad", "speed": "m/s", "gravity": "m/s²"}
_DISTINCTION = "whether it turns: marks on it would show that"
_ALTERNATIVES = {"slide": {"roll": _DISTINCTION}, "roll": {"slide": _DISTINCTION}}
_REST_SCATTER = 0.02  # scatter of the positions of a body at rest, relative to the distance that it moved before
_MAX_LATE_SPEED = 0.5  # mean speed of the second half over that of the first; a third of what friction stops
_MIN_GAIN = 1.1  # the same ratio, below which what moves along a steep slope is steady
_NEEDS_SCALE = "lengths are observed in pixels: needs scale"


def slide_models(evidence: Evidence) -> list[MotionModel]:
    """Return the model of sliding with friction, either to a stop or with a constant acceleration."""
    settings = evidence.settings.line
    line = fit_line(evidence, settings.min_samples, settings.max_width)
    moves_back = line.distances[-1] < line.distances.max() - _REST_SCATTER * np.ptp(line.distances)
    models, late_speed = [], _late_speed(line)
    max_slope = settings.max_steady_slope if late_speed < _MIN_GAIN else settings.max_slope
    if _is_vertical(line, max_slope) and late_speed > _MAX_LATE_SPEED:
        raise UnsuitableError("it moves down too steeply for a friction that would slow it: it falls or sinks")
    if _decelerates(line) and not moves_back:
        try:
            models.append(_stopping_model(evidence, line))
        except ValueError as error:
            raise UnsuitableError(str(error)) from error
    # A body that meets an obstacle becomes slower too, but not by friction.
    try:
        steady = steady_part(line, evidence.settings)
        if _decelerates(steady) and np.argmax(steady.distances) < len(steady.distances) - 2:
            raise UnsuitableError("it becomes slower, and then comes back")
        if not models or not _decelerates(steady):
            models.append(_accelerating_model(evidence, steady, "slide"))
    except UnsuitableError:
        if not models:
            raise
    return models


def roll_models(evidence: Evidence) -> list[MotionModel]:
    """Return the model of rolling down a slope."""
    settings = evidence.settings.line
    line = fit_line(evidence, settings.min_samples, settings.max_width)
    # At the foot of a slope it goes on, on level ground, where it may be seen for longer.
    line = steady_part(line, evidence.settings, speeding_up=True)
    if _decelerates(line):
        raise UnsuitableError("it becomes slower: what rolls down a slope becomes faster")
    return [_accelerating_model(evidence, line, "roll")]


def _decelerates(line: StraightTrack) -> bool:
    """Return whether the mean speed of the second half of the track is lower than that of the first."""
    return _late_speed(line) < 1


def _late_speed(line: StraightTrack) -> float:
    """Return the mean speed of the second half of the track, relative to that of the first."""
    middle = len(line.times) // 2
    halves = slice(middle), slice(middle, None)
    early_speed, late_speed = (np.polyfit(line.times[half], line.distances[half], 1)[0] for half in halves)
    return float(late_speed / early_speed) if early_speed > 0 else math.inf


def _is_vertical(line: StraightTrack, max_slope: float) -> bool:
    return math.atan2(abs(math.sin(line.heading)), abs(math.cos(line.heading))) > max_slope


def _line_unknowns(line: StraightTrack) -> list[Unknown]:
    # Any point of the line could be the origin; the position at the first sample is taken.
    return [
        Unknown("origin", line.center.tolist(), scale=float(np.ptp(line.distances)), unit="px"),
        Unknown("heading", line.heading, scale=0.05, unit="rad"),
    ]


def start_on_line(line: StraightTrack, distance: float) -> torch.Tensor:
    """Return the position at a distance along the line from its center, pixels."""
    return torch.from_numpy(line.center + distance * np.array([math.cos(line.heading), math.sin(line.heading)]))


def _accelerating_model(evidence: Evidence, line: StraightTrack, kind: str) -> MotionModel:
    if _is_vertical(line, evidence.settings.line.max_slope):
        raise UnsuitableError("it moves straight down: it falls")
    coefficients = fit_polynomial(line.times - line.times[0], line.distances[:, None], 2)[:, 0]
    acceleration = float(2 * coefficients[2])
    extent, duration = float(np.ptp(line.distances)), float(np.ptp(line.times))
    unknowns = [
        Unknown("acceleration", acceleration, scale=max(abs(acceleration), 0.05 * extent / duration**2), unit="px/s²"),
        *_line_unknowns(line),
        Unknown("speed", float(coefficients[1]), scale=0.1 * extent, unit="px/s"),
        evidence.view.roll_unknown(),
    ]

    def setup(values: Values) -> Setup:
        speed = values["speed"][:, None]
        return Setup(State(torch.zeros_like(speed), speed), {"acceleration": values["acceleration"][:, None]})

    return MotionModel(
        kind, Particle("line", dt=evidence.dt), unknowns, setup, lambda sampled: position_on_line(sampled, "origin"),
        partial(_slope_parameters, kind), _UNITS, line.first, line.end,
        starts={"origin": start_on_line(line, coefficients[0])}, length_powers={"acceleration": 1, "radius": 1},
        state_length_power=1, alternatives=_ALTERNATIVES[kind],
    )  # fmt: skip


def _slope_parameters(kind: str, values: Values, known_values: KnownTensors) -> ParameterValues:
    heading = values["heading"] - values["roll"]
    slope = torch.atan2(heading.sin().abs(), heading.cos().abs())
    parameters: ParameterValues = {"angle": slope, "acceleration": _NEEDS_SCALE, "speed": _NEEDS_SCALE}
    if kind == "slide":
        parameters["friction"] = "only gravity along the slope less friction is observable: needs gravity and scale"
    if "scale" in known_values:
        acceleration = values["acceleration"] / known_values["scale"]
        parameters |= {"acceleration": acceleration, "speed": values["speed"] / known_values["scale"]}
        if kind == "slide" and "gravity" in known_values:
            angle = known_values.get("angle", slope)
            parameters["friction"] = torch.tan(angle) - acceleration / (known_values["gravity"] * torch.cos(angle))
    return parameters


def _stopping_model(evidence: Evidence, line: StraightTrack) -> MotionModel:
    """Return the model on level ground: a block in the planar engine `rigid2d` that friction brings to a stop."""
    extent = float(np.ptp(line.distances))
    moving = line.distances < line.distances.max() - _REST_SCATTER * extent
    count = max(6, int(np.flatnonzero(moving)[-1]) + 1)
    coefficients = fit_polynomial(line.times[:count] - line.times[0], line.distances[:count, None], 2)[:, 0]
    deceleration = max(-2 * float(coefficients[2]), 1e-2 * extent)
    gravity = 4 * deceleration  # friction coefficient 1/4; only the ratio of deceleration to gravity matters
    block = rigid2d.Rectangle((0.08 * extent, 0.02 * extent), (0, 0), velocity=(1.0, 0), restitution=0.0, name="block")
    ground = rigid2d.Rectangle((40 * extent, extent), (0, 0.51 * extent), static=True, restitution=0.0, name="ground")
    unknowns = [
        Unknown("deceleration", deceleration, low=0.0, unit="px/s²"),
        *_line_unknowns(line),
        Unknown("speed", max(float(coefficients[1]), 0.1 * extent), low=0.0, unit="px/s"),
    ]

    def setup(values: Values) -> Setup:
        speed = values["speed"]
        zero = torch.zeros_like(speed)
        friction = (values["deceleration"] / gravity)[:, None].expand(-1, 2)
        state = State(torch.stack([zero, zero, zero], 1), torch.stack([speed, zero, zero], 1))
        return Setup(state, {"friction": friction})

    return MotionModel(
        "slide", rigid2d.World([block, ground], gravity=(0, gravity), dt=evidence.dt), unknowns, setup,
        lambda sampled: position_on_line(sampled, "origin"), _stopping_parameters, _UNITS, line.first, line.end,
        starts={"origin": start_on_line(line, coefficients[0])}, state_length_power=1,
    )  # fmt: skip


def _stopping_parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    if "scale" not in known_values:
        return dict.fromkeys(("acceleration", "speed", "friction"), _NEEDS_SCALE)
    acceleration = values["deceleration"] / known_values["scale"]
    friction = acceleration / known_values["gravity"] if "gravity" in known_values else "needs gravity"
    return {"acceleration": acceleration, "speed": values["speed"] / known_values["scale"], "friction": friction}


def spring_models(evidence: Evidence) -> list[MotionModel]:
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
        Unknown("restoring_coefficient", frequency**2, low=0.0, unit="1/s²"),
        Unknown("rest_position", line.center.tolist(), scale=amplitude, unit="px"),
        Unknown("heading", line.heading, scale=0.1, unit="rad"),
        Unknown("displacement", float(start[0]), scale=amplitude, unit="px"),
        Unknown("speed", float(start[1]), scale=amplitude * frequency, unit="px/s"),
        evidence.dissipation_unknown("damping", 0.05, 0.05 * frequency, unit="1/s"),
    ]

    def setup(values: Values) -> Setup:
        leaves = {"restoring_coefficient": values["restoring_coefficient"], "velocity_decay": values["damping"]}
        return Setup(State(values["displacement"][:, None], values["speed"][:, None]), leaves)

    return [
        MotionModel(
            "spring", Particle("line", dt=dt, substeps=substeps), unknowns, setup,
            lambda sampled: position_on_line(sampled, "rest_position"), _spring_parameters,
            {"stiffness": "N/m", "period": "s", "damping": "1/s", "mass": "kg"},
            line.first, line.end, horizon=max(1.5 * period, 10 * dt),
            starts={"restoring_coefficient": frequency**2 * torch.tensor([1.0, 0.98, 1.02], dtype=torch.float64)},
            length_powers={"rest_position": 1, "radius": 1}, state_length_power=1,
        )
    ]  # fmt: skip


def _spring_parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return the damped period and the damping, and the stiffness by the mass or the mass by the stiffness."""
    restoring, damping = values["restoring_coefficient"], values["damping"]
    frequency = (restoring - damping.square() / 4).clamp(min=1e-12).sqrt()
    parameters: ParameterValues = {"period": 2 * math.pi / frequency}
    if "damping" not in known_values:
        parameters["damping"] = damping
    if "mass" in known_values:
        parameters["stiffness"] = restoring * known_values["mass"]
    elif "stiffness" in known_values:
        parameters["mass"] = known_values["stiffness"] / restoring
    else:
        parameters["stiffness"] = "only stiffness over mass is observable: needs mass"
        parameters["mass"] = "only stiffness over mass is observable: needs stiffness"
    return parameters


_DRAG_LAWS = {
    "quadratic": "The drag grows with the square of the speed, as at high Reynolds numbers.",
    "linear": "The drag grows with the speed, as in Stokes' law.",
}


def sink_models(evidence: Evidence) -> list[MotionModel]:
    """Return the models of sinking in a liquid to a steady speed, against quadratic and against linear drag.

    With the terminal speed u and the time constant τ, v' = (u/τ)(1 − (v/u)²) for quadratic drag, and v' = (u − v)/τ
    for linear drag. Gravity, buoyancy and the liquid that is carried along only appear in u and τ.
    """
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
        raise UnsuitableError("it moves at its terminal speed from the start: how it comes to that is not seen")
    return [_law_model(evidence, line, count, law, max(early, 0.0), late) for law in _DRAG_LAWS]


def _law_model(evidence: Evidence, line: StraightTrack, count: int, law: str, early: float, late: float) -> MotionModel:
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
        lambda sampled: position_on_line(sampled, "origin"), _sink_parameters,
        {"terminal_speed": "m/s", "time_constant": "s"},
        line.first, int(line.indices[count - 1]) + 1,
        starts={"origin": start_on_line(line, float(line.distances[0])), "time_constant": constants},
        length_powers={"acceleration": 1, "rest_position": 1, "drag": -1, "radius": 1}, state_length_power=1,
        notes=[_DRAG_LAWS[law]], alternatives={"fall": "whether it sinks in a liquid or falls in air"},
    )  # fmt: skip


def _sink_parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return the time constant, and the terminal speed by the scale."""
    speed = values["terminal_speed"] / known_values["scale"] if "scale" in known_values else _NEEDS_SCALE
    return {"terminal_speed": speed, "time_constant": values["time_constant"]}
