"""Ball that falls on a floor and bounces."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.impacts import (
    AudioRestitution,
    BounceGuess,
    audio_restitution,
    find_bounces,
    guess_bounces,
)
from physvision.identification.initial_guesses import Samples
from physvision.identification.kind_settings import BounceSettings
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.identification.parabolas import departure_index, parabola_window
from physvision.identification.view import rotate
from physvision.physics import rigid2d

_MASS = 1.0  # of the engine's ball; its motion does not depend on it
_DIFFERING_NOTE = (
    "The impacts differ, as those of a ball that spins or moves in depth: each has its own restitution and push along "
    "the floor, and the restitution is their mean."
)


def candidate_models(evidence: Evidence) -> list[MotionModel]:
    """Return the model of all impacts, one without the first impact, and those of impacts that differ."""
    settings = evidence.settings
    indices, times, positions = evidence.samples(settings.bounce.min_samples)
    noise = evidence.noise(indices)
    bounces = find_bounces(times, positions[:, 1], noise, settings.bounce)
    if not bounces:
        raise UnsuitableError("it does not bounce")
    first = _fall_start(evidence, indices, times, positions, bounces)
    later_bounces = [bounce - first for bounce in bounces]
    if not _has_one_acceleration(times[first:], positions[first:], later_bounces, settings.bounce):
        raise UnsuitableError("between its turns it does not fall with one acceleration")
    extent = float(np.ptp(positions, axis=0).max())
    windows = [(first, bounces)]
    if len(bounces) >= 3:
        # Balls lose more in a hard impact: where the first one is much harder than the others it may be left out.
        windows.append((bounces[0] + 2, bounces[1:]))
    models = []
    for start, impacts in windows:
        samples, window_bounces = slice(start, None), [bounce - start for bounce in impacts]
        window = indices[samples], times[samples], positions[samples]
        models.append(_model(evidence, *window, window_bounces, extent))
        if _impacts_differ(*window[1:], window_bounces, settings.bounce):
            models.append(_model(evidence, *window, window_bounces, extent, impacts_differ=True))
    return models


def _fall_start(
    evidence: Evidence, indices: np.ndarray, times: np.ndarray, positions: np.ndarray, bounces: list[int]
) -> int:
    """Return the first sample of the fall to the first impact, before which it was held, or rolled on a table."""
    settings, parabola = evidence.settings.bounce, evidence.settings.parabola
    if bounces[0] < 8:
        return 0
    before, noise = slice(bounces[0]), parabola.noise_ratio * evidence.noise(indices)
    first = departure_index(times[before], positions[before], noise, parabola)
    later_bounces = [bounce - first for bounce in bounces]
    if _has_one_acceleration(times[first:], positions[first:], later_bounces, settings):
        return first
    # What came before took longer than the fall.
    sigma = evidence.tracks[0].sigma[indices]
    window = parabola_window(times[before], positions[before], noise, True, parabola, sigma[before])
    return first if window is None else window[0]


def _has_one_acceleration(
    times: np.ndarray, positions: np.ndarray, bounces: list[int], settings: BounceSettings
) -> bool:
    """Return whether the acceleration is the same between all impacts, for most of the path up and down."""
    guess = guess_bounces(times, positions, bounces)
    if guess is None:
        return False
    path_lengths, is_common = [], []
    for first, last in pairwise([0, *bounces, len(times)]):
        part = slice(first + 2 if first else 0, last - 1)
        if part.stop - part.start < settings.min_flight_samples:
            continue
        elapsed, heights = times[part] - times[part.start], positions[part, 1]
        parabola, covariance = np.polyfit(elapsed, heights, 2, cov="unscaled")
        error = float(np.std(heights - np.polyval(parabola, elapsed)))
        tolerance = max(0.5 * guess.gravity, 8 * error * math.sqrt(covariance[0, 0]))
        path_lengths.append(float(np.abs(np.diff(heights)).sum()))
        is_common.append(abs(2 * parabola[0] - guess.gravity) < tolerance)
    return float(np.dot(path_lengths, is_common)) >= settings.min_fall * sum(path_lengths)


def _impacts_differ(times: np.ndarray, positions: np.ndarray, bounces: list[int], settings: BounceSettings) -> bool:
    """Return whether the impacts of a ball differ, since it spins, meets a rough floor, or moves in depth.

    Under one law of all impacts, flights become shorter in proportion, however hard the impact, and the horizontal
    speed never grows.
    """
    guess = guess_bounces(times, positions, bounces)
    if guess is None or len(bounces) < settings.min_impacts:
        return False
    impacts = impact_restitutions(times, positions[:, 1], bounces, guess.floor, settings.min_flight_samples)
    if _restitution_notes(impacts, settings):
        return True
    speeds, falls = [], []
    for first, last in pairwise([0, *bounces, len(times)]):
        part = slice(first + 2 if first else 0, last - 1)
        if part.stop - part.start >= settings.min_flight_samples - 3:
            speeds.append(abs(np.polyfit(times[part] - times[part.start], positions[part, 0], 1)[0]))
            falls.append(guess.gravity * float(np.ptp(times[part])) / 2)
    gains = np.diff(speeds) / falls[:-1]
    scatter = float(impacts[:, 1].std()) if len(impacts) else 0.0
    return bool(scatter > settings.max_restitution_scatter or gains.max(initial=0.0) > settings.max_speed_gain)


def impact_restitutions(
    times: Samples, heights: Samples, bounces: list[int], floor: float, min_samples: int
) -> Float[np.ndarray, "impacts 2"]:
    """Return the duration of the flight before each impact, s, and the impact's restitution.

    A parabola through each flight, extrapolated to the floor, gives its duration, which is proportional to the speed.

    Args:
        times: Times of the samples, s.
        heights: Positions along the vertical, y down, pixels.
        bounces: Last samples before each impact.
        floor: Height at impact, y down, pixels.
        min_samples: Smallest number of samples of a flight.
    """
    edges, durations = [0, *bounces, len(times)], []
    for first, last in pairwise(edges):
        part = slice(first + 2 if first else 0, last - 1)
        if last - first < min_samples:
            durations.append(math.nan)
            continue
        a, b, c = np.polyfit(times[part] - times[part.start], heights[part] - floor, 2)
        discriminant = b**2 - 4 * a * c
        durations.append(math.sqrt(discriminant) / a if a > 0 and discriminant > 0 else math.nan)
    pairs = np.array([(before, after / before) for before, after in pairwise(durations)])
    return pairs[np.isfinite(pairs).all(1)]


def _restitution_notes(impacts: Float[np.ndarray, "impacts 2"], settings: BounceSettings) -> list[str]:
    """Return a warning if hard impacts have a lower restitution than soft ones."""
    if len(impacts) < settings.min_impacts:
        return []
    log_durations = np.log(impacts[:, 0])
    (slope, intercept), covariance = np.polyfit(log_durations, impacts[:, 1], 1, cov=True)
    hard_restitution, soft_restitution = intercept + slope * np.array([log_durations.max(), log_durations.min()])
    if soft_restitution - hard_restitution < settings.min_difference or -slope < 3 * math.sqrt(covariance[0, 0]):
        return []
    return [
        f"The restitution is {hard_restitution:.2f} in the hardest impact and {soft_restitution:.2f} in the softest, "
        "but the model has one restitution for all; --from and --to select impacts."
    ]


def _model(
    evidence: Evidence,
    indices: np.ndarray,
    times: np.ndarray,
    positions: np.ndarray,
    bounces: list[int],
    extent: float,
    impacts_differ: bool = False,
) -> MotionModel:
    """Return the model of a ball whose impacts follow one law, or differ from it by a push just after each."""
    settings = evidence.settings.bounce
    guess = guess_bounces(times, positions, bounces)
    if guess is None:
        raise UnsuitableError("between bounces it does not fly along parabolas")
    audio = audio_restitution(times[bounces], evidence.onsets, 1.5 * evidence.dt, evidence.settings.audio)
    restitutions = impact_restitutions(times, positions[:, 1], bounces, guess.floor, settings.min_flight_samples)
    notes = _restitution_notes(restitutions, settings)
    if audio is not None:
        notes.insert(0, f"{audio.num_bounces} bounces are heard, with a restitution of {audio.describe()}.")
    start = torch.tensor([float(guess.position[0])], dtype=torch.float64)
    substeps = min(settings.substeps, math.ceil(settings.min_steps / len(times)))
    engine = _engine(extent, guess.gravity, evidence.dt / substeps, settings.radius * evidence.pixel)
    push_steps = _push_steps(times, bounces, engine.dt, settings) if impacts_differ else []

    def setup(values: Values) -> Setup:
        zero = torch.zeros_like(values["floor"])
        origin = torch.stack([start.expand_as(zero), values["floor"]], 1)
        x, y = rotate(values["position"] - origin, -values["roll"]).unbind(1)
        vx, vy = rotate(values["velocity"], -values["roll"]).unbind(1)
        state = State(torch.stack([x, y, zero], 1), torch.stack([vx, vy, zero], 1))
        materials = {name: values[name][:, None].expand(-1, 2) for name in ("restitution", "friction")}
        properties = {**materials, "gravity": torch.stack([zero, values["gravity"]], 1)}
        return Setup(state, properties, _push_forces(values, push_steps, engine) if push_steps else None)

    def observe(sampled: SampledState) -> torch.Tensor:
        x, y = rotate(sampled.state.q[:, :2], sampled.values["roll"]).unbind(1)
        return torch.stack([x + start, y + sampled.values["floor"]], 1)

    radius = evidence.tracks[0].radius
    # The second flight shows whether the ball slid or stuck at the first impact; less of it is ambiguous.
    second_flight_middle = (bounces[0] + [*bounces, len(times) - 1][1]) // 2
    horizon_sample = max(second_flight_middle, min(bounces[0] + 3, len(times) - 1))
    return MotionModel(
        "bounce",
        engine,
        _unknowns(evidence, guess, audio, extent) + _pushes(guess, len(push_steps), settings),
        setup,
        observe,
        lambda values, known_values: _parameters(values, known_values, radius),
        {"restitution": "", "gravity": "m/s²", "radius": "m", "friction": ""},
        int(indices[0]),
        int(indices[-1]) + 1,
        # One start slides at impacts, one sticks: no gradient leads from the one to the other.
        starts={"friction": torch.tensor([0.003, 0.2], dtype=torch.float64)},
        horizon=float(times[horizon_sample] - times[0]),
        scale=lambda values, known_values: _scale(values, known_values, radius),
        length_powers={"gravity": 1, "radius": 1},
        state_length_power=1,
        notes=[_DIFFERING_NOTE] if impacts_differ else notes,
    )


def _engine(extent: float, gravity: float, dt: float, radius: float) -> rigid2d.World:
    ball = rigid2d.Circle(radius, (0, -10 * radius), mass=_MASS, restitution=0.5, friction=0.1, name="ball")
    size, center = (200 * extent, 10 * extent), (0, radius + 5 * extent)
    ground = rigid2d.Rectangle(size, center, static=True, restitution=0.5, friction=0.1, name="floor")
    return rigid2d.World([ball, ground], gravity=(0, gravity), dt=dt)


def _unknowns(evidence: Evidence, guess: BounceGuess, audio: AudioRestitution | None, extent: float) -> list[Unknown]:
    friction, restitution = evidence.settings.bounce.friction_std, guess.restitution
    if audio is not None:
        restitution = audio.restitution
    restitution = min(max(restitution, 0.05), 0.98)
    speed = math.sqrt(2 * guess.gravity * extent)
    return [
        Unknown("gravity", guess.gravity, low=0.0, unit="px/s²"),
        Unknown("floor", guess.floor, scale=2.0 * evidence.pixel, unit="px"),
        Unknown("restitution", restitution, 0.0, 1.0, std=None if audio is None else audio.std),
        evidence.view.roll_unknown(),
        Unknown("position", guess.position.tolist(), scale=5.0 * evidence.pixel, unit="px"),
        Unknown("velocity", guess.velocity.tolist(), scale=0.05 * speed, unit="px/s"),
        Unknown("friction", friction, low=0.0, std=friction),
    ]


def _pushes(guess: BounceGuess, count: int, settings: BounceSettings) -> list[Unknown]:
    """Return the changes of velocity, along the floor and upward, that impacts have beside the law of all."""
    fall_speed = abs(float(guess.velocity[1])) + 1e-9
    speed = max(fall_speed, guess.restitution * math.sqrt(2 * guess.gravity * abs(guess.floor - guess.position[1])))
    spreads = {"sideways_push": settings.sideways_push_std, "upward_push": settings.upward_push_std}
    return [
        Unknown(name, [0.0] * count, scale=0.1 * spread * speed, std=spread * speed, unit="px/s")
        for name, spread in spreads.items()
        if count
    ]


def _push_steps(times: np.ndarray, bounces: list[int], dt: float, settings: BounceSettings) -> list[int]:
    """Return the engine step of each push, just after the first sample after its impact."""
    delays = times[np.array(bounces) + 1] - times[0] + settings.push_delay * float(np.median(np.diff(times)))
    return np.ceil(delays / dt).astype(int).tolist()


def _push_forces(values: Values, steps: list[int], engine: rigid2d.World) -> Float[torch.Tensor, "batch steps nu"]:
    """Return the forces that change the velocity by each push within one step."""
    pushes = torch.stack([values["sideways_push"], -values["upward_push"]], 2)
    forces = pushes.new_zeros(len(pushes), steps[-1] + 2, engine.nu)
    index = torch.tensor(steps)
    return forces.index_add(1, index, torch.nn.functional.pad(pushes * _MASS / engine.dt, (0, engine.nu - 2)))


def _scale(values: Values, known_values: KnownTensors, radius: float | None) -> torch.Tensor | None:
    if "scale" in known_values:
        return known_values["scale"]
    if "gravity" in known_values:
        return values["gravity"] / known_values["gravity"]
    if "radius" in known_values and radius is not None:
        return radius / known_values["radius"]
    return None


def _parameters(values: Values, known_values: KnownTensors, radius: float | None) -> ParameterValues:
    scale = _scale(values, known_values, radius)
    parameters: ParameterValues = {"restitution": values["restitution"]}
    if "gravity" not in known_values:
        parameters["gravity"] = "needs radius or scale" if scale is None else values["gravity"] / scale
    if "radius" not in known_values:
        parameters["radius"] = "needs gravity or scale" if scale is None or radius is None else radius / scale
    return parameters
