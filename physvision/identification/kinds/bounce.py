"""A ball that falls on a floor and bounces."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import arcs, impacts
from physvision.identification.hearing import heard
from physvision.identification.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.identification.view import TILT
from physvision.physics import rigid2d

_FLIGHT = 6  # samples from which a parabola tells how long a flight lasts
_IMPACTS, _DIFFERENT = 4, 0.05  # from how many on it is said that restitution differs, and by how much at least
_RADIUS = 10.0  # px, of the ball in the engine: what is sought is the height at which its middle turns round


def propose(case: Case) -> list[Model]:
    """The model to try."""
    seen = case.seen().numpy()
    there = np.flatnonzero(np.isfinite(seen).all(1))
    if len(there) < 12:
        raise UnsuitableError("fewer than twelve places were seen")
    times, places = case.times.numpy()[there], seen[there]
    noise = max(float(np.median(case.tracks[0].sigma[there])), 0.15)
    hits = impacts.bounces(times, places[:, 1], noise)
    if not hits:
        raise UnsuitableError("it does not bounce")
    first = arcs.departure(times[: hits[0]], places[: hits[0]], 1.3 * noise) if hits[0] >= 8 else 0
    models = [_model(case, there, times, places, hits, first)]
    if len(hits) >= 3:
        # Balls lose more in a hard impact: where the first is much harder than all others it may be left out.
        models.append(_model(case, there, times, places, hits[1:], hits[0] + 2))
    return models


def kept(times: np.ndarray, down: np.ndarray, hits: list[int], floor: float) -> np.ndarray:
    """For each impact the flight before it, s, and the share of its speed that the ball keeps, (impacts, 2).

    A parabola through each flight, led on to the floor, says how long that was; the speed grows in proportion.
    """
    edges, lasts = [0, *hits, len(times)], []
    for first, last in pairwise(edges):
        part = slice(first + 2 if first else 0, last - 1)
        if last - first < _FLIGHT:
            lasts.append(math.nan)
            continue
        bend, slope, level = np.polyfit(times[part] - times[part.start], down[part] - floor, 2)
        square = slope**2 - 4 * bend * level
        lasts.append(math.sqrt(square) / bend if bend > 0 and square > 0 else math.nan)
    found = np.array([(before, after / before) for before, after in pairwise(lasts)])
    return found[np.isfinite(found).all(1)]


def _harder(found: np.ndarray) -> list[str]:
    """That hard impacts keep less than soft ones, where they do: a note for people."""
    if len(found) < _IMPACTS:
        return []
    size = np.log(found[:, 0])
    (slope, level), covariance = np.polyfit(size, found[:, 1], 1, cov=True)
    hardest, softest = level + slope * size.max(), level + slope * size.min()
    if softest - hardest < _DIFFERENT or -slope < 3 * math.sqrt(covariance[0, 0]):
        return []
    return [
        f"It keeps {hardest:.2f} of its speed in the hardest impact and {softest:.2f} in the softest: one restitution "
        "stands for all of them; --from and --to say which ones."
    ]


def _model(case: Case, there: np.ndarray, times: np.ndarray, places: np.ndarray, hits: list[int], first: int) -> Model:
    flights = impacts.flights(times[first:], places[first:], [hit - first for hit in hits])
    if flights is None:
        raise UnsuitableError("between bounces it does not fly along parabolas")
    weight, floor, restitution, place, velocity = flights
    sound = heard(times[hits], case.knocks, 1.5 * case.dt)
    restitution = restitution if sound is None else sound.restitution
    notes = [] if sound is None else [
        f"{sound.count} bounces are heard: they tell a restitution of {sound.restitution:.4f} ± {sound.deviation:.4f}."
    ]  # fmt: skip
    dt = case.dt / 3  # an impact blurs the step that it is in
    size = float(np.ptp(places, axis=0).max())
    ball = rigid2d.Circle(_RADIUS, (0, -100), restitution=0.5, friction=0.1, name="ball")
    ground = rigid2d.Rectangle(
        (200 * size, 10 * size), (0, _RADIUS + 5 * size), static=True, restitution=0.5, friction=0.1, name="floor"
    )
    engine = rigid2d.World([ball, ground], gravity=(0, weight), dt=dt)
    speed = math.sqrt(2 * weight * size)
    unknowns = [
        Unknown("weight", weight, low=0.0, unit="px/s²"),
        Unknown("floor", floor, scale=2.0, unit="px"),
        Unknown(
            "restitution",
            min(max(restitution, 0.05), 0.98),
            0.0,
            1.0,
            std=None if sound is None else sound.deviation,
        ),
        Unknown("tilt", 0.0, scale=TILT, std=TILT, unit="rad"),
        Unknown("place", place.tolist(), scale=5.0, unit="px"),
        Unknown("velocity", velocity.tolist(), scale=0.05 * speed, unit="px/s"),
        Unknown("friction", 0.1, low=0.0, std=0.1),
    ]
    start = torch.tensor([float(place[0])], dtype=torch.float64)

    def setup(values: Values) -> Setup:
        none = torch.zeros_like(values["floor"])
        x, y = _turned(values["place"] - torch.stack([start.expand_as(none), values["floor"]], 1), -values["tilt"])
        u, w = _turned(values["velocity"], -values["tilt"])
        state = State(torch.stack([x, y, none], 1), torch.stack([u, w, none], 1))
        both = {name: values[name][:, None].expand(-1, 2) for name in ("restitution", "friction")}
        return Setup(state, {**both, "gravity": torch.stack([none, values["weight"]], 1)})

    def places_of(seen: SampledState) -> torch.Tensor:
        x, y = _turned(seen.state.q[:, :2], seen.values["tilt"])
        return torch.stack([x + start, y + seen.values["floor"]], 1)

    radius = case.tracks[0].radius

    def parameters(values: Values, known: Knowns) -> Parameters:
        return _parameters(values, known, radius)

    # The second flight tells whether the ball rubbed or gripped: over less of it nothing leads to the right one.
    tells = (hits[0] + [*hits, len(times) - 1][1]) // 2
    notes += _harder(kept(times[first:], places[first:, 1], [hit - first for hit in hits], floor))
    return Model(
            "bounce", engine, unknowns, setup, places_of, parameters,
            {"restitution": "", "gravity": "m/s²", "radius": "m", "friction": ""},
            int(there[first]), int(there[-1]) + 1,
            # Rubbing or gripping at an impact: the one has no slope that leads to the other.
            starts={"friction": torch.tensor([0.003, 0.2], dtype=torch.float64)},
            horizon=float(times[max(tells, min(hits[0] + 3, len(times) - 1))] - times[first]),
            scale=lambda values, known: _scale(values, known, radius), metric={"gravity": 1, "radius": 1},
            state_metric=1, notes=notes,
        )  # fmt: skip


def _turned(pair: torch.Tensor, angle: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = pair.unbind(1)
    return x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()


def _scale(values: Values, known: Knowns, radius: float | None) -> torch.Tensor | None:
    if "scale" in known:
        return known["scale"]
    if "gravity" in known:
        return values["weight"] / known["gravity"]
    if "radius" in known and radius is not None:
        return radius / known["radius"]
    return None


def _parameters(values: Values, known: Knowns, radius: float | None) -> Parameters:
    pixels = _scale(values, known, radius)
    found: Parameters = {"restitution": values["restitution"]}
    if "gravity" not in known:
        found["gravity"] = "needs radius or scale" if pixels is None else values["weight"] / pixels
    if "radius" not in known:
        found["radius"] = "needs gravity or scale" if pixels is None or radius is None else radius / pixels
    return found
